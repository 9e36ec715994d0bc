"""Kueue's objects: queues with quotas, workloads that wait or are admitted, the assignments of their pods."""

from kant_opt.io.kubernetes.kueue.queues import Queues
from kant_opt.io.kubernetes.kueue.workloads import Workload, WorkloadReader

__all__ = ["Queues", "Workload", "WorkloadReader"]
