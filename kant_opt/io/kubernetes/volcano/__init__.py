"""Volcano's objects: HyperNodes, PodGroups, Queues, Jobs."""

from kant_opt.io.kubernetes.volcano.gangs import VolcanoGangs, read_queues
from kant_opt.io.kubernetes.volcano.hypernodes import HyperNodes
from kant_opt.io.kubernetes.volcano.jobs import VolcanoJobReader

__all__ = ["HyperNodes", "VolcanoGangs", "VolcanoJobReader", "read_queues"]
