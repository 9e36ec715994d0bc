"""Job sizes in classes, so that waits and stretches of small and large jobs are not averaged away."""

from __future__ import annotations

from bisect import bisect_left

SIZE_CLASSES = ("0", "1", "2-7", "8", "9-64", "65-256", "257-1024", ">1024")
"""GPUs per job: part of a node, a node of 8, up to 8 nodes, and so on; "0" are jobs without GPUs."""
_LARGEST = (0, 1, 7, 8, 64, 256, 1024)


def size_class(gpus: int) -> str:
    """Return the class of a job by its GPUs.

    >>> [size_class(gpus) for gpus in (1, 7, 8, 9, 1024, 2048)]
    ['1', '2-7', '8', '9-64', '257-1024', '>1024']
    """
    return SIZE_CLASSES[bisect_left(_LARGEST, gpus)]
