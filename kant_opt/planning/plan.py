"""When and where does each queued job start? One verified plan, with a reason for every job that waits."""

from __future__ import annotations

from time import perf_counter

from kant_opt.backends import Deadline
from kant_opt.engine.place import placed_job
from kant_opt.errors import InputError, WrongAnswer
from kant_opt.planning.board import Board, Run
from kant_opt.planning.cuts import settle_cuts
from kant_opt.planning.evicting import Evicting
from kant_opt.planning.places import give_places
from kant_opt.planning.queue import Queue, read_queue
from kant_opt.planning.registry import ORDERS, Policy, make_policy
from kant_opt.planning.running import overdue
from kant_opt.planning.score import score
from kant_opt.planning.ticket import FOREVER, Ticket
from kant_opt.planning.timeline import run_timeline
from kant_opt.planning.waits import Waits, of_member
from kant_opt.planning.window import Patience
from kant_opt.schema import (
    Eviction,
    Limits,
    Plan,
    PlannedJob,
    Request,
    RunRecord,
    Status,
    UnplannedJob,
    Wait,
)
from kant_opt.verify import verify_plan
from kant_opt.view import Free


def plan(
    request: Request,
    *,
    policy: str | Policy = "conservative",
    order: str = "priority",
    horizon_s: int | None = None,
    head_timeout_s: int | None = None,
    patience: Patience | None = None,
    limits: Limits | None = None,
) -> Plan:
    """Plan the request's queue from `now_s` on, jobs running as long as they may, and return a verified plan.

    `policy` is a name in POLICIES ("depth-8" with a number) or an object, `order` a name in ORDERS. No job starts at
    or after `now_s + horizon_s`. With `head_timeout_s` backfilled and running preemptible jobs are evicted for a head
    that has waited longer. With `patience` a job waits for a better place, see `Patience`. Never raises for bad
    luck: a job without a start has a reason, and one that can never start holds up nobody. Raises InputError or
    UnknownName for data or names that cannot be meant, WrongAnswer for a bug of ours.

    >>> from kant_opt.schema import Job, Node, PodSet
    >>> jobs = [Job(name=n, walltime_s=60, podsets=(PodSet(count=2, gpus=8),)) for n in "ab"]
    >>> found = plan(Request(nodes=tuple(Node(name=f"n{i}", gpus=8) for i in range(2)), jobs=tuple(jobs)))
    >>> [(run.job, run.start_s, run.nodes) for run in found.jobs]
    [('a', 0, ('n0', 'n1')), ('b', 60, ('n0', 'n1'))]
    """
    started = perf_counter()
    if limits is not None:
        request = request.model_copy(update={"limits": limits})
    if horizon_s is not None and horizon_s < 1:
        raise InputError(f"a horizon of {horizon_s} s", way_out="give at least 1, or none")
    if head_timeout_s is not None and head_timeout_s < 0:
        raise InputError(f"a head time-out of {head_timeout_s} s", way_out="give at least 0, or none")
    deadline = Deadline(request.limits.deadline_ms)
    chosen = make_policy(policy) if isinstance(policy, str) else policy
    ordered = ORDERS[order]()
    queue = read_queue(request)
    possible = [ticket for ticket in queue.tickets if queue.is_possible(ticket) is not False]
    space = queue.space(patience, by_number=not chosen.looks_at_places)
    claims = [claim for claim, _ in queue.running]
    board = Board(space, ordered, claims, limits=request.limits, deadline=deadline)
    board.queued = frozenset(name for ticket in queue.tickets for name in ticket.jobs)
    horizon = FOREVER if horizon_s is None else request.now_s + horizon_s
    acting = chosen if head_timeout_s is None else Evicting(chosen, head_timeout_s)
    run_timeline(board, acting, possible, start=request.now_s, until=horizon)
    settle_cuts(board, frozenset(reservation.name for reservation in request.reservations))
    if space.counts:
        give_places(queue, board)
    found = _Told(queue, board, chosen, horizon).plan(possible)
    found = found.model_copy(
        update={
            "order": order,
            "horizon_s": None if horizon_s is None else horizon,
            "levels": score(queue, board, chosen),
            "run": RunRecord(
                backend="planning",
                seconds=round(perf_counter() - started, 4),
                seed=request.limits.seed,
                limit_hit=chosen.limit_hit,
                notes=chosen.notes,
            ),
        }
    )
    found = found.model_copy(update={"status": _status(found)})
    if broken := verify_plan(request, found, queue.fabric):
        raise WrongAnswer(
            f"policy {chosen.name!r} broke a rule: {'; '.join(str(v) for v in broken[:3])}; please report the request"
        )
    return found


class _Told:
    """The plan's document, from what the timeline came to."""

    def __init__(self, queue: Queue, board: Board, policy: Policy, horizon: int) -> None:
        self.queue, self.board, self.policy = queue, board, policy
        self.waits = Waits(queue, board, policy, horizon)
        self.running = {claim.ticket for claim, _ in queue.running}

    def plan(self, possible: list[Ticket]) -> Plan:
        """Return the plan; the caller adds what it knows better."""
        runs = sorted(
            (run for run in self.board.runs if run.ticket not in self.running),
            key=lambda run: (run.start, run.ticket.position),
        )
        started = {run.ticket for run in runs if not run.evicted_for}
        rest = [ticket for ticket in possible if ticket not in started]
        behind = self.board.waiting[0].name if self.board.waiting else ""
        unplanned = {job: wait for ticket in rest for job, wait in self._reasons(ticket, behind)}
        doomed = [ticket for ticket in self.queue.tickets if ticket not in set(possible)]
        for ticket in doomed:
            unplanned |= self.waits.of_impossible(ticket)
        return Plan(
            status="FEASIBLE",
            policy=self.policy.name,
            order="",
            now_s=self.queue.request.now_s,
            jobs=tuple(planned for run in runs for planned in self._planned(run)),
            unplanned=tuple(
                UnplannedJob(job=job.name, wait=unplanned[job.name])
                for job in self.queue.request.jobs
                if job.name in unplanned
            ),
            evictions=tuple(self._evictions()),
            flags=(*Free(self.queue.cluster).flags, *overdue(self.queue.cluster)),
            run=RunRecord(backend="planning"),
        )

    def _reasons(self, ticket: Ticket, behind: str) -> list[tuple[str, Wait]]:
        assert ticket.gang is not None, "tickets of a request have gangs"
        wait = self.waits.of_waiting(ticket, behind)
        return [(job.name, of_member(wait, ticket, job.name) or wait) for job in ticket.gang.jobs]

    def _planned(self, run: Run) -> list[PlannedJob]:
        """Return one planned run per job of the gang."""
        gang = run.ticket.gang
        assert gang is not None, "tickets of a request have gangs"
        wait = self.waits.of_run(run)
        found = []
        for job in gang.jobs:
            taken = [t for t in run.claim.taken or () if t.part.job.name == job.name]
            if not taken and not any(part.job is job and part.target for part in gang.parts):
                continue
            end = None if job.walltime_s is None else run.start + max(1, job.walltime_s)
            evicted = run.evicted_for if end is None or run.end < end else ""
            found.append(
                PlannedJob(
                    job=job.name,
                    start_s=run.start,
                    end_s=run.end if evicted else end,
                    pods=placed_job(self.queue.cluster, job.name, taken).pods,
                    evicted_for=evicted,
                    backfilled=run.backfilled,
                    wait=of_member(wait, run.ticket, job.name),
                )
            )
        return found

    def _evictions(self) -> list[Eviction]:
        since = {alloc.job: alloc.since_s for _, alloc in self.queue.running}
        found = []
        for run in self.board.runs:
            if run.ticket in self.running and run.evicted_for:
                begun = since[run.ticket.name]
                lost = 0 if begun is None else run.ticket.gpus * (run.end - begun)
                found.append(
                    Eviction(job=run.ticket.name, at_s=run.end, for_job=run.evicted_for, lost_gpu_s=max(0, lost))
                )
        return found


def _status(found: Plan) -> Status:
    if found.unplanned and not found.jobs:
        return "UNKNOWN" if any(u.wait.kind == "not_found" for u in found.unplanned) else "INFEASIBLE"
    return "OPTIMAL" if all(level.proven for level in found.levels) else "FEASIBLE"
