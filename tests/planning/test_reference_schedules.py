"""Published schedules, job by job: hand-made cases with known ends, and archive logs under EASY backfilling.

The cases are those of the simulator pyss, the schedules those of Gaussier, Glesser, Reis and Trystram (SC'15,
doi:10.1145/2807591.2807646). Means over asked times differ by the rule of when to schedule: theirs after every single
event, here once per instant; that one pass per instant gives the means below was found by an independent simulator.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kant_opt.planning.ticket import Ticket
from tests.planning.logs import PROCESSORS, mean_wait, read_log, starts_under, tickets_of

POLICY_OF = {"fcfs": "fifo", "conservative": "conservative", "easy": "easy", "easy_sjbf": "easy-sjbf"}


def test_hand_made_cases_end_when_they_should(shared: Path) -> None:
    cases = json.loads((shared / "traces" / "pyss_fixtures" / "cases.json").read_text())["cases"]
    assert len(cases) == 58
    tried = 0
    for name, case in cases.items():
        jobs = case["jobs"]
        tickets = [
            Ticket(str(i), i, submit, asked, processors, run=run)
            for i, (submit, asked, processors, run, _) in enumerate(jobs)
        ]
        for policy in case["valid_for"]:
            starts = starts_under(POLICY_OF[policy], tickets, 100)
            ends = [start + job[3] for start, job in zip(starts, jobs, strict=True)]
            assert ends == [job[4] for job in jobs], f"{name} under {policy}"
            tried += 1
    assert tried == 39 + 42 + 45 + 3


def _log(shared: Path, name: str) -> Path:
    return shared / "traces" / "pyss_easy_results" / f"{name}.swf.gz"


@pytest.mark.parametrize(
    ("log", "most"),
    [
        pytest.param("KTH-SP2", 28_481, id="KTH"),
        pytest.param("CTC-SP2", 3_000, id="CTC, its beginning"),
        pytest.param("CTC-SP2", 77_199, id="CTC", marks=pytest.mark.slow),
        pytest.param("SDSC-SP2", 54_006, id="SDSC", marks=pytest.mark.slow),
    ],
)
def test_clairvoyant_easy_starts_every_job_when_published(shared: Path, log: str, most: int) -> None:
    """Of the beginning of a log the starts before the next job came are compared: later ones may depend on it."""
    everyone = read_log(_log(shared, f"{log}_easy_clairvoyant"))
    jobs, rest = everyone[:most], everyone[most:]
    starts = starts_under("easy", tickets_of(jobs, clairvoyant=True), PROCESSORS[log])
    published = [job.submit + job.wait for job in jobs]
    until = rest[0].submit if rest else max(published) + 1
    settled = [i for i, start in enumerate(published) if start < until]
    assert len(settled) > 0.95 * most
    assert [starts[i] for i in settled] == [published[i] for i in settled]


MEANS = [
    # log, policy, mean wait of the independent simulator (one pass per instant), published mean (None: none), tolerance
    ("KTH-SP2", "easy", 6834.5873, 15696.7982, 0.005),
    ("KTH-SP2", "fifo", 353776.4091, None, 0.0),
    pytest.param("KTH-SP2", "easy-sjbf", 5903.6864, 14764.0026, 0.005, marks=pytest.mark.slow),
    pytest.param("KTH-SP2", "conservative", 7316.24, None, 0.0, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("log", "policy", "wait", "flow", "tolerance"), MEANS, ids=lambda value: str(value))
def test_means_over_asked_times(
    shared: Path, log: str, policy: str, wait: float, flow: float | None, tolerance: float
) -> None:
    jobs = read_log(_log(shared, f"{log}_easy_reqtime"))
    starts = starts_under(policy, tickets_of(jobs, clairvoyant=False), PROCESSORS[log])
    mean = mean_wait(jobs, starts)
    assert mean == pytest.approx(wait, abs=0.01)
    if flow is not None:
        assert mean + sum(job.run for job in jobs) / len(jobs) == pytest.approx(flow, rel=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "tolerance"), [("CTC-SP2", 0.025), ("SDSC-SP2", 0.005), ("SDSC-BLUE", 0.025)], ids=lambda value: str(value)
)
def test_means_over_asked_times_of_long_logs(shared: Path, log: str, tolerance: float) -> None:
    jobs = read_log(_log(shared, f"{log}_easy_reqtime"))
    starts = starts_under("easy", tickets_of(jobs, clairvoyant=False), PROCESSORS[log])
    published = sum(job.wait for job in jobs) / len(jobs)
    run = sum(job.run for job in jobs) / len(jobs)
    if log == "SDSC-BLUE":  # here the published figure is a mean wait, within 2.5 %
        assert mean_wait(jobs, starts) == pytest.approx(published, rel=tolerance)
    else:
        assert mean_wait(jobs, starts) + run == pytest.approx(published + run, rel=tolerance)
