"""A node: where it hangs, what it has, whether it takes new pods."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from kant_opt.schema.base import Bytes, Count, Frozen, GpuCount, Mib, MilliCpu, Name
from kant_opt.schema.fabric import Taint


class Gpu(Frozen):
    """What is known of one GPU of a node."""

    index: GpuCount
    healthy: bool = True
    numa: Count | None = None
    """NUMA node it is attached to."""
    island: Count | None = None
    """NVLink island inside the node: GPUs of one island reach each other fastest."""
    nic: str = ""
    """Nearest NIC, e.g. mlx5_0."""


class Node(Frozen):
    """One host. Capacities are what pods may take in all (allocatable), not what is free now."""

    name: Name
    path: tuple[Name | None, ...] = ()
    """Its domain on each level of the fabric, outermost first; None where unknown: then it shares that level's
    domain with no other node. Empty in a graph fabric."""
    pools: tuple[Name, ...] = ("default",)
    """GPU models or flavors it belongs to; a pod that names pools needs one of them."""
    gpus: GpuCount = 0
    """GPUs installed, healthy or not."""
    gpu_memory_mib: Mib | None = None
    """Memory of each GPU, MiB; needed where pods ask for MiB of GPU memory."""
    gpu_details: tuple[Gpu, ...] = ()
    """Only for GPUs of which something is known; the others are healthy."""
    cpu_milli: MilliCpu | None = None
    """None: CPU is not counted on this node."""
    memory_bytes: Bytes | None = None
    """None: memory is not counted on this node."""
    max_pods: Count | None = None
    """None: any number of pods."""
    labels: dict[Name, str] = {}
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True
    """False: cordoned, drained, down or powered off; running pods stay, new ones do not come."""
    why_closed: str = ""
    """Why it is not schedulable, in the words of its cluster."""

    @property
    def healthy_gpus(self) -> int:
        """Number of GPUs that are not marked unhealthy."""
        return self.gpus - sum(not g.healthy for g in self.gpu_details)

    @model_validator(mode="after")
    def _gpu_details_fit(self) -> Self:
        seen = [g.index for g in self.gpu_details]
        if len(seen) != len(set(seen)):
            raise ValueError(f"node {self.name!r}: a GPU index occurs twice in gpu_details")
        if bad := [i for i in seen if i >= self.gpus]:
            raise ValueError(f"node {self.name!r}: GPU index {bad[0]} with {self.gpus} GPUs (indices start at 0)")
        if not self.pools:
            raise ValueError(f"node {self.name!r}: pools is empty; leave it out for 'default'")
        return self
