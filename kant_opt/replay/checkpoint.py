"""A replay's state as a file, so that one that is killed goes on where it was, and comes to the same end.

Kept between two instants: all runs, promises, the waiting queue, what wakes the policy, and what the policy remembers.
The room over time follows from these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kant_opt.backends import Taken
from kant_opt.planning import Policy
from kant_opt.planning.board import Board, Run
from kant_opt.planning.ticket import Claim, Ticket

Row = list[Any]


@dataclass(frozen=True)
class Kept:
    """One state of the loop. Tickets are numbers: their position in the stage."""

    now_s: int
    next_s: int
    """The instant it goes on at."""
    come: int
    """Tickets that have come."""
    seconds: float
    runs: list[Row]
    """[ticket, start, end, end of its claim, backfilled, evicted for, runs still, taken]"""
    waiting: list[int]
    promises: list[Row]
    """[ticket, start, end, taken]"""
    wakes: list[int]
    usage: dict[str, int]
    memory: dict[str, Any]

    def going_on_at(self, next_s: int) -> Kept:
        """Return the same with the instant that follows."""
        return replace(self, next_s=next_s)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def keep(board: Board, policy: Policy, position: Mapping[Ticket, int], *, come: int, seconds: float) -> Kept | None:
    """Return the state of a settled board; None where the policy remembers what cannot be written down."""
    memory = _memory(policy, position)
    if memory is None:
        return None
    return Kept(
        now_s=board.now,
        next_s=board.now,
        come=come,
        seconds=seconds,
        runs=[_run_row(run, board.running.get(run.ticket) is run, position) for run in board.runs],
        waiting=[position[ticket] for ticket in board.waiting],
        promises=[[position[t], c.start, c.end, _taken_row(t, c.taken)] for t, c in board.promises.items()],
        wakes=board.wakes,
        usage=dict(board.usage),
        memory=memory,
    )


def resume(kept: Kept, board: Board, policy: Policy, tickets: Sequence[Ticket]) -> None:
    """Bring a fresh board and policy into a state that was kept."""
    for at, start, end, claim_end, backfilled, evicted_for, runs_still, row in kept.runs:
        ticket = tickets[at]
        claim = Claim(ticket, start, claim_end, _taken(ticket, row))
        if runs_still:
            board.now = start
            board.start(claim, backfilled=backfilled)
        else:
            board.runs.append(Run(ticket, claim, start, end, backfilled, evicted_for))
            if not evicted_for:
                board.ended.update(ticket.jobs)
    board.now = kept.now_s
    board.waiting = [tickets[at] for at in kept.waiting]
    board.settle()
    board.usage = dict(kept.usage)
    for at, start, end, row in kept.promises:
        board.promise(Claim(tickets[at], start, end, _taken(tickets[at], row)))
    for time in kept.wakes:
        board.wake(time)
    _remember(policy, kept.memory, tickets)


def _run_row(run: Run, runs_still: bool, position: Mapping[Ticket, int]) -> Row:
    taken = _taken_row(run.ticket, run.claim.taken, named=runs_still)
    return [
        position[run.ticket], run.start, run.end, run.claim.end, run.backfilled, run.evicted_for, runs_still, taken
    ]  # fmt: skip


def _taken_row(ticket: Ticket, taken: Sequence[Taken] | None, *, named: bool = True) -> list[Row] | None:
    """Return what is taken; GPUs are named only where they are still held."""
    if taken is None:
        return None
    assert ticket.gang is not None, "only gangs take nodes"
    parts = {id(part): i for i, part in enumerate(ticket.gang.parts)}
    return [[parts[id(t.part)], t.node, t.pods, [list(g) for g in t.gpus] if named else []] for t in taken]


def _taken(ticket: Ticket, rows: list[Row] | None) -> list[Taken] | None:
    if rows is None:
        return None
    assert ticket.gang is not None, "only gangs take nodes"
    parts = ticket.gang.parts
    return [Taken(parts[part], node, pods, tuple(tuple(g) for g in gpus)) for part, node, pods, gpus in rows]


def _memory(policy: Policy, position: Mapping[Ticket, int]) -> dict[str, Any] | None:
    """Return what the policy remembers of tickets and numbers, by attribute; None where there is something else."""
    found: dict[str, Any] = {}
    for name, value in vars(policy).items():
        if isinstance(value, (int, str)) or value is None:
            found[name] = value
        elif isinstance(value, Policy):
            inner = _memory(value, position)
            if inner is None:
                return None
            found[name] = {"inner": inner}
        elif isinstance(value, dict) and all(isinstance(k, Ticket) and isinstance(v, int) for k, v in value.items()):
            found[name] = {"numbers": [[position[k], v] for k, v in value.items()]}
        elif isinstance(value, set) and all(isinstance(k, Ticket) for k in value):
            found[name] = {"tickets": sorted(position[k] for k in value)}
        elif not callable(value):
            return None
    return found


def _remember(policy: Policy, memory: Mapping[str, Any], tickets: Sequence[Ticket]) -> None:
    for name, value in memory.items():
        if not isinstance(value, dict):
            setattr(policy, name, value)
        elif "inner" in value:
            _remember(getattr(policy, name), value["inner"], tickets)
        elif "numbers" in value:
            setattr(policy, name, {tickets[at]: number for at, number in value["numbers"]})
        else:
            setattr(policy, name, {tickets[at] for at in value["tickets"]})
