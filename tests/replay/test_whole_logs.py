"""Whole logs under every policy of which an independent simulator left figures: means, percentiles, makespan."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from kant_opt.io.traces import Trace, read_trace
from kant_opt.replay import replay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]  # thousands wait at once, each with a promise

POLICIES = {"fcfs": "fifo", "easy": "easy", "easy_sjbf": "easy-sjbf", "cons": "conservative"}
FILES = {
    "lublin_256": "pwa_swf/lublin_256.swf",
    "NASA-iPSC (run>0)": "pwa_swf/NASA-iPSC-1993-3.1-cln.swf.gz",
    "acme kalos 319": "acme/kalos_319jobs.csv",
    "CEA-curie": "pyss_easy_results/CEA-curie_easy_reqtime.swf.gz",
    **{f"muri {name}": f"muri_philly/{name}.csv" for name in ("trace1", "trace3", "trace4")},
}
QUEUES = ("103959", "2869ce", "7f04ca", "ee9e8c", "b436b2", "0e4a51")
NAMES = (*FILES, *(f"philly vc {queue}" for queue in QUEUES))
TIES = {"easy_sjbf"}
"""Policies whose means may differ a little: equally long jobs may be backfilled in either order."""


def _trace(shared: Path, name: str) -> Trace:
    if name.startswith("philly vc "):
        return read_trace(shared / "traces" / "philly" / "philly_jobs.csv.gz").of_queue(name.rpartition(" ")[2])
    return read_trace(shared / "traces" / FILES[name])


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_an_independent_simulator_is_met(shared: Path, name: str) -> None:
    with (shared / "traces" / "pyss_easy_results" / "computed_here.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["log"] == name and row["policy"] in POLICIES]
    if name == "CEA-curie":
        rows = [row for row in rows if row["policy"] == "easy"]
    assert rows
    trace = _trace(shared, name)
    for row in rows:
        (run,) = replay(
            trace,
            int(row["capacity"]),
            policies=[POLICIES[row["policy"]]],
            walltimes="asked" if row["estimates"] == "requested" else "exact",
        ).runs
        waits = run.waits[0]
        assert waits.jobs == int(row["n_jobs"])
        loose = row["policy"] in TIES
        assert waits.mean_s == pytest.approx(float(row["mean_wait_s"]), rel=0.005 if loose else 0, abs=1e-3), row
        assert run.bounded_slowdown == pytest.approx(float(row["avg_bsld10"]), rel=0.01 if loose else 0, abs=1e-3)
        if not loose:
            assert waits.max_s == float(row["max_wait_s"])
            assert run.makespan_s == float(row["makespan_s"])
            assert run.shares.sor == pytest.approx(float(row["utilisation_over_makespan"]), abs=2e-5)


def test_ricc_is_replayed_whole(shared: Path) -> None:
    """447,794 jobs; those that were cancelled or have no run time are counted."""
    found = replay(shared / "traces" / "pwa_swf" / "RICC-2010-2.swf.gz", policies=["easy"])
    assert sum(n for what, n in found.counts.items() if what != "too_large") == 447_794
    assert {job.fate for job in found.runs[0].jobs} == {"ended"}
