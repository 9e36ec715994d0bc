"""The term `traffic` of pods that a backend placed, from their nodes; metrics.traffic measures it from a placement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from kant_opt.backends.placer import Taken
from kant_opt.schema import Job
from kant_opt.view import Cluster, Gang, Ints, domain_counts


def traffic_of(cluster: Cluster, gang: Gang, taken: Iterable[Taken]) -> int:
    """Return the traffic of a gang's jobs that have pods in `taken`, their living pods included."""
    pods: dict[str, dict[int, int]] = {}
    for t in taken:
        nodes = pods.setdefault(t.part.job.name, defaultdict(int))
        nodes[t.node] += t.pods
    total = 0
    for job in gang.jobs:
        if job.name in pods and job.communication != "none":
            for part in gang.parts:
                if part.job is job:
                    for node, number in part.living.items():
                        pods[job.name][node] += number
            for depth, weight in enumerate(cluster.traffic_weights):
                if weight:
                    total += weight * _crossings(job, domain_counts(cluster.tree, pods[job.name], depth))
    return total


def _crossings(job: Job, pods: Ints) -> int:
    """Return domains beyond the first, or pairs of pods in different domains, from pods per domain."""
    if job.communication == "ring":
        return int(np.count_nonzero(pods)) - 1
    total = int(pods.sum())
    return (total * total - int((pods * pods).sum())) // 2
