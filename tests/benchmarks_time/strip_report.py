"""Measure makespans over the area bound: `python -m tests.benchmarks_time.strip_report [--most 100] [--work 1]`.

Per policy and set of instances: the mean of makespan / height, the worst, and how many reach the height. The queue is
planned in the order of the file, and shuffled by seed 1: the files list some instances in the order of their making.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from random import Random

from kant_opt.planning import plan
from kant_opt.schema import Limits
from tests.benchmarks_time.strip import Strip, read_strips

POLICIES = ("fifo", "easy", "conservative", "optimal-makespan", "optimal-batch")


def shuffled(strip: Strip) -> Strip:
    """Return the same gangs in an order that knows nothing of their places."""
    gangs = list(strip.gangs)
    Random(1).shuffle(gangs)
    return replace(strip, gangs=tuple(gangs))


def makespan(strip: Strip, policy: str, work: float) -> int:
    """Return the last end of the plan."""
    limits = Limits(search_states=int(work * 1_000_000))
    found = plan(strip.request(), policy=policy, order="fifo", limits=limits)
    (level,) = [level for level in found.levels if level.name == "makespan"]
    assert level.bound is not None
    assert level.bound >= strip.height, "the area bound is the height"
    return level.value


def main() -> None:
    """Print a line per instance as it is done, and the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("../shared/data/benchmarks/strip_zero_waste"))
    parser.add_argument("--most", type=int, default=100, help="gangs of the largest instance taken")
    parser.add_argument("--work", type=float, default=1.0)
    asked = parser.parse_args()
    strips = [strip for strip in read_strips(asked.folder) if len(strip.gangs) <= asked.most]
    ratios: dict[tuple[str, str], list[float]] = {}
    for strip in strips:
        for order, taken in (("file", strip), ("shuffled", shuffled(strip))):
            ends = {policy: makespan(taken, policy, asked.work) for policy in POLICIES}
            print(strip.name, len(strip.gangs), strip.height, order, *ends.values(), flush=True)
            for policy, end in ends.items():
                ratios.setdefault((order, policy), []).append(end / strip.height)
    for (order, policy), found in ratios.items():
        met = sum(ratio == 1 for ratio in found)
        print(f"| {order} | {policy} | {len(found)} | {sum(found) / len(found):.4f} | {max(found):.3f} | {met} |")


if __name__ == "__main__":
    main()
