"""Why a job does not start at once: one cause and one sentence for each, found after the plan is made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property

from kant_opt.backends import Answer
from kant_opt.engine.reasons import Explainer
from kant_opt.planning.board import Board, Run
from kant_opt.planning.queue import Queue
from kant_opt.planning.registry import Policy
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace
from kant_opt.schema import Wait
from kant_opt.schema.plan import WaitKind
from kant_opt.view import Free

_SHOWN = 3


class Waits:
    """Explains the runs of one plan, told on a space of nodes as the plan's first instant left it."""

    def __init__(self, queue: Queue, board: Board, policy: Policy, horizon: int) -> None:
        self.queue, self.board, self.policy, self.horizon = queue, board, policy, horizon
        self.now = queue.request.now_s
        self.later = [run for run in board.runs if run.start > self.now]
        self._ending: dict[int, list[Run]] = defaultdict(list)
        for run in board.runs:
            if run.end < FOREVER:
                self._ending[run.end].append(run)
        index = queue.cluster.tree.index
        self._nodes_held = {claim.ticket: {index[h.node] for h in alloc.holds} for claim, alloc in queue.running}
        self._spaces: dict[bool, TopologicalSpace] = {}

    # -- jobs with a start -------------------------------------------------------------------------

    def of_run(self, run: Run) -> Wait | None:
        """Return why a run starts when it does, None where that is at once."""
        ticket = run.ticket
        if run.start <= max(self.now, ticket.submit):
            return None
        if ticket.after and run.start == max(self._ends_of(ticket.after), default=0):
            return self._wait("after", ticket, run.start, ticket.after, "it starts after {jobs}, over at {until}")
        found = self._could_start_now(ticket) if ticket.submit <= self.now else None
        if found is not None:
            return self._held(run, found)
        if ticket.submit <= self.now and (found := self._but_for(ticket, "reserved")) is not None:
            return self._reserved(ticket, run.start, found)
        if ticket.submit <= self.now and self._but_for(ticket, "quota") is not None:
            text = f"its queue has not that much quota left before {run.start}"
            ending = [other.ticket.name for other in self._ending[run.start]]
            return self._wait("quota", ticket, run.start, ending, text + ", the end of {jobs}")
        ending = self._gone_before(run)
        if ending:
            return self._wait("room", ticket, run.start, ending, "its room is in use until {until}, the end of {jobs}")
        return self._wait("room", ticket, run.start, (), "no room for it comes free before {until}")

    def _gone_before(self, run: Run) -> list[str]:
        """Return whose end lets the run start: those on its nodes, else whoever ends then."""
        ending = [other for other in self._ending[run.start] if other.ticket is not run.ticket]
        nodes = _nodes(run.claim)
        here = [o for o in ending if nodes & (self._nodes_held.get(o.ticket) or _nodes(o.claim))]
        return [other.ticket.name for other in here or ending]

    def _ends_of(self, names: Iterable[str]) -> Iterator[int]:
        wanted = set(names)
        return (run.end for run in self.board.runs if run.ticket.name in wanted)

    def _held(self, run: Run, claim: Claim) -> Wait:
        """Explain a run for which there is room now: the policy keeps it for others."""
        ticket = run.ticket
        if self.policy.keeps_order:
            ahead = next((r.ticket.name for r in self.later if r.start <= run.start and r is not run), "")
            return self._wait(
                "order", ticket, run.start, [ahead] if ahead else (), "it could start now, but not before {jobs}"
            )
        nodes = _nodes(claim)
        within = [r for r in self.later if r is not run and r.start < claim.end]
        names = {node: self.queue.cluster.nodes[node].name for node in nodes}
        keepers = [r for r in within if nodes & _nodes(r.claim)] or within
        shown = [names[node] for node in sorted(nodes)]
        if not keepers:
            text = "it could start now; its place at {until} is better"
            return self._wait("choice", ticket, run.start, (), text, shown)
        first = min(keepers, key=lambda r: (r.start, r.ticket.position))
        text = f"nodes are free now, but held for job {first.ticket.name!r} from {first.start}"
        return self._wait("held", ticket, run.start, [r.ticket.name for r in keepers], text, shown)

    def _reserved(self, ticket: Ticket, start: int | None, claim: Claim) -> Wait:
        nodes = {self.queue.cluster.nodes[t.node].name for t in claim.taken or ()}
        names = [r.name for r in self.queue.request.reservations if not nodes.isdisjoint(r.nodes)]
        text = f"nodes are free now, but closed to it by reservation {_some(names)} within its run time"
        return self._wait("reserved", ticket, start, (), text, sorted(nodes))

    # -- jobs without a start ----------------------------------------------------------------------

    def of_waiting(self, ticket: Ticket, behind: str) -> Wait:
        """Return why a ticket got no start at all; `behind` is the first ticket that waits, for strict orders."""
        if ticket.submit >= self.horizon:
            return self._wait("horizon", ticket, None, (), f"it is submitted after the plan's end at {self.horizon}")
        missing = [name for name in ticket.after if name not in self.board.ended]
        if missing:
            return self._wait("after", ticket, None, missing, "it is to start after {jobs}, of which no end is known")
        promise = self.board.promises.get(ticket)
        if promise is not None or self.horizon < FOREVER:
            start = None if promise is None else promise.start
            text = f"it does not start before the plan's end at {self.horizon}"
            return self._wait("horizon", ticket, start, (), text)
        if ticket.name in self._limited():
            text = "no place was found within the limit, which does not prove that there is none: raise search_states"
            return self._wait("not_found", ticket, None, (), text)
        if self.policy.keeps_order and behind != ticket.name:
            return self._wait("order", ticket, None, [behind], "it may not start before {jobs}, which has no start")
        unknown = [r.ticket.name for r in self.board.running.values() if r.end >= FOREVER]
        claim = self._but_for(ticket, "reserved")
        if claim is not None:
            return self._reserved(ticket, None, claim)
        if unknown:
            text = "its room is in use by {jobs}, whose end is unknown: give them a walltime"
            return self._wait("unknown_end", ticket, None, unknown, text)
        text = "no room for it comes free: reservations without end, or rules towards jobs that stay, are in the way"
        return self._wait("reserved" if self.queue.request.reservations else "room", ticket, None, (), text)

    def of_impossible(self, ticket: Ticket) -> dict[str, Wait]:
        """Return why each job of a ticket cannot start even on the empty fabric."""
        assert ticket.gang is not None, "tickets of a request have gangs"
        closed = [node for node in self.queue.request.nodes if not node.schedulable]
        found = {}
        for reason in self._explainer.explain(Answer(taken=[], failed=[(ticket.gang, "no_room")])):
            kind: WaitKind = "quota" if reason.kind == "quota" else "impossible"
            returning = bool(closed) and self.queue.fits_with_all_nodes(ticket)
            names = tuple(node.name for node in closed[:_SHOWN]) if returning else ()
            text = reason.sentence
            if names:
                text = f"{text.split(';')[0]}; impossible until {_some([n.name for n in closed])} returns to service"
            found[reason.job] = Wait(kind=kind, nodes=names, sentence=text)
        return found

    @cached_property
    def _explainer(self) -> Explainer:
        return Explainer(self.queue.cluster, Free(self.queue.cluster), self.queue.request.limits.search_states)

    # -- the first instant -------------------------------------------------------------------------

    def _could_start_now(self, ticket: Ticket) -> Claim | None:
        return self._space_now().at(ticket, self.now)

    def _space_now(self, *, backfilled: bool = True) -> TopologicalSpace:
        """Return the nodes with the jobs that run now or start now (backfilled ones too, or not), and nobody else."""
        if backfilled not in self._spaces:
            space = self._spaces[backfilled] = self.queue.topological()
            for run in self.board.runs:
                if run.start == self.now and run.claim.taken and (backfilled or not run.backfilled):
                    space.reserve(Claim(run.ticket, run.start, max(run.end, run.start + 1), run.claim.taken))
        return self._spaces[backfilled]

    def _but_for(self, ticket: Ticket, kind: WaitKind) -> Claim | None:
        """Return where the ticket could start now if there were no reservations, or no quotas."""
        request = self.queue.request
        if not (request.reservations if kind == "reserved" else request.queues):
            return None
        space = copy(self._space_now(backfilled=False))
        if kind == "reserved":
            space.open_all()
        else:
            space.ignore_quotas()
        return space.at(ticket, self.now)

    def _limited(self) -> set[str]:
        space = self.board.space
        return space.limited if isinstance(space, TopologicalSpace) else set()

    # -- the sentence ------------------------------------------------------------------------------

    def _wait(
        self,
        kind: WaitKind,
        ticket: Ticket,
        until: int | None,
        jobs: Sequence[str],
        text: str,
        nodes: Sequence[str] = (),
    ) -> Wait:
        told = text.replace("{jobs}", _some(jobs)).replace("{until}", str(until))
        return Wait(
            kind=kind,
            until_s=until,
            jobs=tuple(dict.fromkeys(jobs))[:_SHOWN],
            nodes=tuple(nodes)[:_SHOWN],
            sentence=f"job {ticket.name!r} waits: {told}",
        )


def of_member(wait: Wait | None, ticket: Ticket, job: str) -> Wait | None:
    """Return the wait of a ticket as told of one job of its gang."""
    if wait is None or job == ticket.name:
        return wait
    sentence = wait.sentence.replace(f"job {ticket.name!r}", f"job {job!r}", 1)
    return wait.model_copy(update={"sentence": sentence})


def _nodes(claim: Claim) -> set[int]:
    return {t.node for t in claim.taken or ()}


def _some(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
