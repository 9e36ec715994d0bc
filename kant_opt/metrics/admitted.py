"""Term `admitted`: GPUs of the new pods, per priority class."""

from __future__ import annotations

from kant_opt.metrics.placed import NewPods, Placed
from kant_opt.schema import Node, PodSet


def admitted(placed: Placed) -> dict[str, int]:
    """Return `admitted[p]`, thousandths of a GPU, for every priority class p of the request's jobs, highest first."""
    milli = dict.fromkeys(sorted({job.priority for job in placed.request.jobs}, reverse=True), 0)
    for new in placed.new_pods:
        milli[new.job.priority] += _worth(new, placed.request.nodes[new.node])
    return {f"admitted[{priority}]": value for priority, value in milli.items()}


def _worth(new: NewPods, node: Node) -> int:
    """Return thousandths of a GPU; a pod without GPUs counts one, so that placing it is worth something."""
    return new.entry.count * max(1, pod_gpu_milli(new.podset, node))


def pod_gpu_milli(podset: PodSet, node: Node) -> int:
    """Return what one pod takes on `node`, thousandths of a GPU; m MiB of M rounds up, and of unknown M is a GPU."""
    if podset.gpu_milli is not None:
        return podset.gpu_milli
    if podset.gpu_memory_mib is not None:
        return -(-1000 * podset.gpu_memory_mib // node.gpu_memory_mib) if node.gpu_memory_mib else 1000
    return 1000 * podset.gpus
