"""Prints the tables of docs/benchmarks/backfill.md.

`python -m tests.bench.backfill_report logs` replays archive logs beside the published schedules, `queue` plans up to
2,000 gangs on up to 8,192 nodes. The first needs the logs of `tests/planning/test_reference_schedules.py`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from random import Random
from time import process_time, process_time_ns

from kant_opt.planning import plan
from kant_opt.schema import Allocation, FabricSpec, Hold, Job, Node, PodSet, Request
from tests.planning.logs import PROCESSORS, mean_wait, read_log, starts_under, tickets_of

ROOT = Path(__file__).resolve().parents[2]
LOGS = Path(os.environ.get("KANT_OPT_SHARED", ROOT.parent / "shared" / "data")) / "traces" / "pyss_easy_results"
DAY = 86_400


def logs() -> None:
    """Print starts equal to the published ones, and means beside the published means."""
    print("| log | jobs | policy, run times | starts equal | mean flow s | published | difference | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for log in ("KTH-SP2", "SDSC-SP2", "CTC-SP2"):
        _replay(log, "easy", "easy_clairvoyant", clairvoyant=True)
    for log in ("KTH-SP2", "SDSC-SP2", "CTC-SP2", "SDSC-BLUE"):
        _replay(log, "easy", "easy_reqtime", clairvoyant=False)
    for policy in ("easy-sjbf", "conservative", "fifo"):
        _replay("KTH-SP2", policy, "easy_reqtime", clairvoyant=False)


def _replay(log: str, policy: str, file: str, *, clairvoyant: bool) -> None:
    jobs = read_log(LOGS / f"{log}_{file}.swf.gz")
    begun = process_time()
    starts = starts_under(policy, tickets_of(jobs, clairvoyant=clairvoyant), PROCESSORS[log])
    seconds = process_time() - begun
    run = sum(job.run for job in jobs) / len(jobs)
    flow = mean_wait(jobs, starts) + run
    published = sum(job.wait for job in jobs) / len(jobs) + run
    equal = sum(start == job.submit + job.wait for job, start in zip(jobs, starts, strict=True))
    known = policy == "easy"
    told = (
        f"{equal:,} | {flow:,.2f} | {published:,.2f} | {flow / published - 1:+.2%}"
        if known
        else f"- | {flow:,.2f} | - | -"
    )
    times = "real" if clairvoyant else "asked"
    print(f"| {log} | {len(jobs):,} | {policy}, {times} | {told} | {seconds:.1f} |")


def queue() -> None:
    """Print seconds to plan gangs on a full cluster, as its size and the queue grow."""
    print("| nodes | gangs | kind | policy | starts | makespan h | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for nodes, gangs in ((2048, 250), (2048, 500), (2048, 1000), (2048, 2000), (512, 1000), (8192, 1000)):
        for mixed in (False, True):
            request = full_cluster(nodes, gangs, mixed=mixed)
            for policy in ("easy", "conservative"):
                begun = process_time_ns()
                found = plan(request, policy=policy)
                seconds = (process_time_ns() - begun) / 1e9
                span = next(level.value for level in found.levels if level.name == "makespan") / 3600
                kind = "mixed" if mixed else "whole nodes"
                cells = (
                    f"{nodes:,}",
                    f"{gangs:,}",
                    kind,
                    policy,
                    f"{len(found.jobs):,}",
                    f"{span:.1f}",
                    f"{seconds:.1f}",
                )
                print(f"| {' | '.join(cells)} |", flush=True)


def full_cluster(nodes: int, gangs: int, *, mixed: bool, seed: int = 1) -> Request:
    """Return a cluster whose nodes of 8 GPUs are all in use for up to a day, and gangs that wait.

    `mixed`: also single pods of 1, 2 and 4 GPUs, and gangs that must lie in one spine; then nodes are looked at.
    """
    draw = Random(seed)
    names = [f"n{i:05}" for i in range(nodes)]
    parts = tuple(Node(name=n, path=(f"s{i // 256}", f"l{i // 16}"), gpus=8) for i, n in enumerate(names))
    held, at = [], 0
    while at < nodes:
        size = min(draw.choice([1, 1, 2, 4, 8, 16, 32]), nodes - at)
        holds = tuple(Hold(node=n, gpus=8) for n in names[at : at + size])
        held.append(Allocation(job=f"run{at}", holds=holds, since_s=0, until_s=draw.randint(60, DAY)))
        at += size
    jobs = []
    for i in range(gangs):
        count = draw.choice([1, 1, 2, 4, 8, 8, 16, 16, 32, 64, 128])
        gpus = draw.choice([1, 2, 4, 8]) if mixed and count == 1 else 8
        required = draw.choice([None, None, "spine"]) if mixed and 1 < count <= 64 else None
        podset = PodSet(count=count, gpus=gpus, required_level=required)
        walltime = draw.choice([600, 3600, 7200, 14_400, 43_200, DAY])
        jobs.append(Job(name=f"j{i:04}", priority=draw.choice([0, 0, 1]), walltime_s=walltime, podsets=(podset,)))
    return Request(
        now_s=100,
        fabric=FabricSpec(levels=("spine", "leaf")),
        nodes=parts,
        allocations=tuple(held),
        jobs=tuple(jobs),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["logs", "queue"])
    {"logs": logs, "queue": queue}[parser.parse_args().what]()
