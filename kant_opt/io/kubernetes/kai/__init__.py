"""KAI's objects: PodGroups with sub-groups, Queues; its Topology is read with the levels."""

from kant_opt.io.kubernetes.kai.gangs import KaiGangs, read_queues

__all__ = ["KaiGangs", "read_queues"]
