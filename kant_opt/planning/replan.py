"""Planning again: what was promised stays unless it has to give way, and the changes are told as data."""

from __future__ import annotations

from kant_opt.planning.board import Board
from kant_opt.planning.plan import plan
from kant_opt.planning.policies.conservative import Conservative, promise_earliest
from kant_opt.planning.ticket import Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.schema import Limits, Plan, PlanChange, PlanDiff, PlannedJob, Request
from kant_opt.schema.plan import ChangeKind


def replan(previous: Plan, request: Request, *, order: str = "priority", limits: Limits | None = None) -> Plan:
    """Plan `request`, the state of things now, so that nobody starts later than `previous` promised without need.

    A promise gives way only to what runs longer or is new, to nodes that left, and to jobs of higher priority if the
    order minds it. Jobs keep their nodes where these are still free. Where room came free, everybody is pulled forward
    as under conservative backfilling. `plan_diff` tells what changed. Raises what `plan` raises.
    """
    return plan(request, policy=Stable(previous), order=order, limits=limits)


def plan_diff(before: Plan, after: Plan) -> PlanDiff:
    """Return what became of each job between two plans, by the last run of each."""
    old = {run.job: run for run in before.jobs if not run.evicted_for}
    new = {run.job: run for run in after.jobs if not run.evicted_for}
    known = {*old, *(entry.job for entry in before.unplanned)}
    waits = {entry.job: entry.wait for entry in after.unplanned}
    changes = []
    for job in dict.fromkeys((*new, *waits, *old)):
        kind = _kind(old.get(job), new.get(job), known=job in known, queued=job in new or job in waits)
        if kind is None:
            continue
        wait = new[job].wait if job in new else waits.get(job)
        changes.append(
            PlanChange(
                job=job,
                kind=kind,
                before_s=old[job].start_s if job in old else None,
                after_s=new[job].start_s if job in new else None,
                why="" if wait is None else wait.sentence,
            )
        )
    unchanged = sum(1 for job in new if job in old) - sum(c.kind in ("earlier", "later", "moved") for c in changes)
    return PlanDiff(changes=tuple(changes), unchanged=unchanged)


def _kind(old: PlannedJob | None, new: PlannedJob | None, *, known: bool, queued: bool) -> ChangeKind | None:
    if not queued:
        return "gone"
    if not known:
        return "new"
    if old is None or new is None:
        return None if old is new else "won" if old is None else "lost"
    if new.start_s != old.start_s:
        return "earlier" if new.start_s < old.start_s else "later"
    return "moved" if new.pods != old.pods else None


class Stable(Conservative):
    """Conservative backfilling that begins with the promises of an earlier plan."""

    name = "stable"
    looks_at_places = True

    def __init__(self, previous: Plan) -> None:
        self._promised = {run.job: run for run in previous.jobs if not run.evicted_for}
        self._begun = False

    def decide(self, board: Board) -> None:
        if not self._begun:
            self._begun = True
            self._keep_promises(board)
            promise_earliest(board, board.still_waiting())
        super().decide(board)

    def _keep_promises(self, board: Board) -> None:
        """Promise again what was promised, the highest priority first, and lay the others where room is left.

        A ticket without a promise that can be kept takes room from those of lower priority, as these come after it.
        """
        queue = board.still_waiting()
        ranks = {ticket: ticket.priority if board.order.by_priority else 0 for ticket in queue}
        for rank in sorted(set(ranks.values()), reverse=True):
            tickets = [ticket for ticket in queue if ranks[ticket] == rank]
            promised = sorted(tickets, key=lambda t: (self._start_of(t, board.now), t.position))
            for same_nodes in (True, False):
                for ticket in promised:
                    if ticket not in board.promises and (claim := self._again(board, ticket, same_nodes)):
                        board.promise(claim)
            promise_earliest(board, [ticket for ticket in tickets if ticket not in board.promises])

    def _start_of(self, ticket: Ticket, now: int) -> int:
        run = self._promised.get(ticket.name)
        return now if run is None else max(now, run.start_s)

    def _again(self, board: Board, ticket: Ticket, same_nodes: bool) -> Claim | None:
        """Return room at the promised start, on the nodes promised or on any; None where there is none."""
        run, ready = self._promised.get(ticket.name), board.ready_at(ticket)
        start = self._start_of(ticket, board.now)
        if run is None or ready is None or ready > start:
            return None
        space = board.space
        assert isinstance(space, TopologicalSpace), "places were asked for"
        return space.on_nodes(ticket, start, run.nodes) if same_nodes else space.at(ticket, start)
