"""What holds room on the cluster: running jobs, reservations, quotas, the zone for inference."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from kant_opt.schema.base import (
    Bytes,
    Count,
    Frozen,
    GpuCount,
    Integer,
    Mib,
    MilliCpu,
    MilliGpu,
    Name,
    Seconds,
    check_unique,
)


class Hold(Frozen):
    """What one job holds on one node. GPUs are named by index where known, else counted."""

    node: Name
    pods: Count = 1
    podset: str = ""
    """The podset these pods belong to; empty: the job's first."""
    gpus: GpuCount = 0
    """Whole GPUs held in all; with `gpu_indices` their number."""
    gpu_indices: tuple[GpuCount, ...] = ()
    gpu_milli: MilliGpu | None = None
    """A share of the GPU `gpu_indices[0]`, thousandths."""
    gpu_memory_mib: Mib | None = None
    """A share of the GPU `gpu_indices[0]`, MiB of its memory."""
    cpu_milli: MilliCpu = 0
    memory_bytes: Bytes = 0

    @model_validator(mode="after")
    def _gpus_fit(self) -> Self:
        share = self.gpu_milli is not None or self.gpu_memory_mib is not None
        if share and (self.gpus or len(self.gpu_indices) != 1):
            raise ValueError(f"hold on node {self.node!r}: a share names its one GPU in gpu_indices, and no gpus")
        if self.gpu_milli is not None and self.gpu_memory_mib is not None:
            raise ValueError(f"hold on node {self.node!r}: a share is in thousandths or in MiB, not both")
        if not share and self.gpu_indices and len(self.gpu_indices) != self.gpus:
            raise ValueError(f"hold on node {self.node!r}: {len(self.gpu_indices)} indices for {self.gpus} GPUs")
        if len(set(self.gpu_indices)) != len(self.gpu_indices):
            raise ValueError(f"hold on node {self.node!r}: a GPU index occurs twice")
        return self


class Allocation(Frozen):
    """A running job and what it holds."""

    job: Name
    holds: tuple[Hold, ...]
    queue: str = ""
    tenant: str = ""
    priority: Integer = 0
    since_s: Seconds | None = None
    until_s: Seconds | None = None
    """Start plus walltime; None: unknown."""
    movable: bool = False
    preemptible: bool = False
    exclusive_level: Name | None = None
    """No other job comes into the domains of this level that it uses."""


class Reservation(Frozen):
    """Nodes kept for `jobs` in [start_s, end_s): maintenance where `jobs` is empty."""

    name: Name
    nodes: tuple[Name, ...]
    start_s: Seconds
    end_s: Seconds | None = None
    """None: until further notice."""
    jobs: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _window_is_forward(self) -> Self:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise ValueError(
                f"reservation {self.name!r}: end {self.end_s} is not after start {self.start_s} (windows are half open)"
            )
        return self


class Quota(Frozen):
    """What a queue may use of one resource in one pool (in all pools where empty)."""

    resource: Literal["gpu", "cpu_milli", "memory_bytes"] = "gpu"
    pool: str = ""
    guaranteed: Count | Bytes = 0
    """Its own share, in units of the resource."""
    limit: Count | Bytes | None = None
    """Most it may use, borrowing included; None: its share, and in a cohort whatever the others leave."""


class Queue(Frozen):
    """A queue with quotas; queues of one cohort lend each other what they do not use."""

    name: Name
    cohort: str = ""
    """Empty: isolated, it borrows nothing."""
    quotas: tuple[Quota, ...] = ()

    @model_validator(mode="after")
    def _one_quota_each(self) -> Self:
        check_unique(f"quota of queue {self.name!r}", (f"{q.resource}/{q.pool}" for q in self.quotas))
        for quota in self.quotas:
            if quota.limit is not None and quota.limit < quota.guaranteed:
                raise ValueError(f"queue {self.name!r}: limit {quota.limit} is below the guaranteed {quota.guaranteed}")
        return self


class Zone(Frozen):
    """Nodes set aside for inference: those named and those whose labels match (any value listed)."""

    nodes: tuple[Name, ...] = ()
    selector: dict[Name, tuple[str, ...]] = {}

    @field_validator("selector", mode="before")
    @classmethod
    def _one_value_is_a_list(cls, value: object) -> object:
        if isinstance(value, dict):
            return {k: (v,) if isinstance(v, str) else v for k, v in value.items()}
        return value
