"""What is used of each GPU of one node, exact for shares in thousandths and in MiB side by side."""

from __future__ import annotations

from collections.abc import Iterable

from kant_opt.schema import Hold, Node, PodSet

MILLI = 1000


class GpuLedger:
    """Use per healthy GPU in units of 1 / (1000 M) of a GPU, M being its memory in MiB (1 where unknown).

    In these units a share of t thousandths is t M, one of m MiB is 1000 m, and a whole GPU is `full` = 1000 M: all
    whole numbers, so sums compare exactly.
    """

    def __init__(self, node: Node, used: dict[int, int]) -> None:
        self.node = node
        self.memory = node.gpu_memory_mib or 1
        self.full = MILLI * self.memory
        self.used = used

    @classmethod
    def of(cls, node: Node, holds: Iterable[Hold]) -> GpuLedger:
        """Return the ledger of what runs: GPUs named first, then the lowest free ones for holds that name none.

        Named GPUs that are unhealthy or gone do not count. Where holds without names exceed the free GPUs, the node
        is over-committed and nothing of it is free.
        """
        sick = {gpu.index for gpu in node.gpu_details if not gpu.healthy}
        ledger = cls(node, {i: 0 for i in range(node.gpus) if i not in sick})
        unnamed = 0
        for hold in holds:
            if not hold.gpu_indices:
                unnamed += hold.gpus
            for index in hold.gpu_indices:
                if index in ledger.used:
                    ledger.used[index] += ledger.units_of(hold)
        ledger._take_lowest(unnamed)
        return ledger

    def copy(self) -> GpuLedger:
        """Return a ledger that may be changed."""
        return GpuLedger(self.node, dict(self.used))

    def units_of(self, asks: Hold | PodSet) -> int:
        """Return the share that one pod (or hold) asks of each GPU it names; a whole GPU where it asks for no share.

        A share in MiB on GPUs of unknown memory counts as a whole GPU: nothing may be put beside it.
        """
        if asks.gpu_milli is not None:
            return asks.gpu_milli * self.memory
        if asks.gpu_memory_mib is not None and self.node.gpu_memory_mib is not None:
            return MILLI * asks.gpu_memory_mib
        return self.full

    def milli_of(self, asks: Hold | PodSet) -> int:
        """Return the GPUs asked for in all, in thousandths, shares in MiB rounded up."""
        if asks.gpu_milli is not None or asks.gpu_memory_mib is not None:
            return -(-self.units_of(asks) // self.memory)
        return MILLI * asks.gpus

    @property
    def free(self) -> list[int]:
        """Indices of healthy GPUs of which nothing is used, ascending."""
        return [index for index, used in self.used.items() if used == 0]

    @property
    def total_used(self) -> int:
        """Use of all healthy GPUs in units; an over-committed GPU counts as full."""
        return sum(min(used, self.full) for used in self.used.values())

    @property
    def total(self) -> int:
        """All healthy GPUs in units."""
        return self.full * len(self.used)

    def _take_lowest(self, count: int) -> None:
        free = self.free
        for index in free[:count]:
            self.used[index] = self.full
        if count > len(free):
            self.used = {index: max(used, self.full) for index, used in self.used.items()}
