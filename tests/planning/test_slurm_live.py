"""The queue of a real Slurm controller, 2,048 nodes: every gang that waits there gets a start."""

from __future__ import annotations

from pathlib import Path

import pytest

from kant_opt.io import read_request
from kant_opt.planning import plan
from kant_opt.planning.queue import read_queue
from kant_opt.schema import Request


@pytest.fixture(scope="module")
def request_of_slurm(shared: Path) -> Request:
    return read_request(shared / "slurm_live")[0]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_waiting_gangs_get_starts(request_of_slurm: Request, policy: str) -> None:
    """All running jobs have a walltime and every gang fits on the empty cluster, so each has a start; the first in the
    queue no later than when it would start alone."""
    request = request_of_slurm
    assert len(request.jobs) == 10
    found = plan(request, policy=policy)
    assert {run.job for run in found.jobs} == {job.name for job in request.jobs}
    assert all(run.wait for run in found.jobs if run.start_s > request.now_s)
    head = min(request.jobs, key=lambda job: (-job.priority, job.submit_s))
    alone = plan(request.model_copy(update={"jobs": (head,)}))
    assert found.of(head.name) is not None
    assert found.jobs[[run.job for run in found.jobs].index(head.name)].start_s == alone.jobs[0].start_s
    assert not read_queue(request).space().counts, "nodes are looked at"
