"""How long a job may run, guessed from its user's last jobs instead of what the user asks for.

Tsafrir, Etsion and Feitelson, IEEE TPDS 18 (2007), doi:10.1109/TPDS.2007.70606, take the mean of the user's last two
run times and extend a guess that proves too short while the job runs. Two departures here: (1) a guess never exceeds
what was asked for, as theirs; (2) a guess below the run time is replaced by the run time from the beginning, because
promises of this planner never slip. So the figures are somewhat better than a real predictor's.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from kant_opt.io.traces import TraceJob

_LAST = 2
"""Run times of a user that are looked at."""


def predicted_lengths(jobs: Sequence[TraceJob]) -> list[int]:
    """Return a guess per job, at least its run time: jobs in order of submission, all with a run time.

    A user's run time is known from the job's recorded end on (its submission + run where the wait is not recorded).
    Without such a job the guess is what was asked for, or the run time where nothing was.
    """
    known: dict[str, list[int]] = {}
    ending: list[tuple[int, int, str, int]] = []
    found = []
    for i, job in enumerate(jobs):
        while ending and ending[0][0] <= job.submit_s:
            _, _, user, run = heappop(ending)
            known.setdefault(user, []).append(run)
        run = job.run_s or 0
        asked = run if job.asked_s is None else job.asked_s
        last = known.get(job.user, [])[-_LAST:]
        guess = -(-sum(last) // len(last)) if last else asked
        found.append(max(run, min(guess, asked)))
        heappush(ending, (job.submit_s + (job.wait_s or 0) + run, i, job.user, run))
    return found
