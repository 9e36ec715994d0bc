"""Plan gangs of whole nodes on 2,048 nodes: `python -m tests.benchmarks_time.queue_report 60 --seconds 30`.

Gangs of 1 to 512 nodes, equal weight to each doubling, for 10 minutes to a day, all there at 0. The first 60 of 1,000
are the same as 60.
"""

from __future__ import annotations

import argparse
from random import Random
from time import perf_counter, process_time

from kant_opt.planning import plan
from kant_opt.schema import FabricSpec, Job, Limits, Node, PodSet, Request

NODES = 2_048
POLICIES = ("easy", "conservative", "optimal", "optimal-makespan", "optimal-batch")


def request(gangs: int, seed: int = 1) -> Request:
    """Return the queue on leaves of 16 nodes, 16 leaves a spine."""
    draw = Random(seed)
    nodes = tuple(Node(name=f"n{i:05}", path=(f"s{i // 256:02}", f"l{i // 16:03}"), gpus=8) for i in range(NODES))
    jobs = tuple(
        Job(
            name=f"g{i:04}",
            podsets=(PodSet(count=round(2 ** draw.uniform(0, 9)), gpus=8),),
            walltime_s=600 * draw.randint(1, 144),
        )
        for i in range(gangs)
    )
    return Request(fabric=FabricSpec(levels=("spine", "leaf")), nodes=nodes, jobs=jobs)


def main() -> None:
    """Print a line per policy and level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gangs", type=int)
    parser.add_argument("--seconds", type=float, help="deadline; else a limit of work of 2 units")
    parser.add_argument("--policies", nargs="*", default=POLICIES)
    asked = parser.parse_args()
    deadline = None if asked.seconds is None else int(1000 * asked.seconds)
    limits = Limits(deadline_ms=deadline, search_states=2_000_000)
    for policy in asked.policies:
        wall, own = perf_counter(), process_time()
        found = plan(request(asked.gangs), policy=policy, order="fifo", limits=limits)
        wall, own = perf_counter() - wall, process_time() - own
        print(f"{policy}: {wall:.1f} s, of it {own:.1f} s of this process; {'; '.join(found.run.notes)}")
        for level in found.levels:
            gap = "" if level.relative_gap is None else f"{100 * level.relative_gap:.1f} %"
            print(f"  {level.name} {level.value}, bound {level.bound} by {level.bound_source}, gap {gap}", flush=True)


if __name__ == "__main__":
    main()
