"""Nodes that fail and come back: what runs on them is lost and queued again, and nobody knew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from kant_opt.errors import InputError, UnknownName
from kant_opt.planning.board import Board
from kant_opt.planning.holdings import Row
from kant_opt.planning.ticket import Claim, Ticket
from kant_opt.planning.topological import TopologicalSpace


@dataclass(frozen=True, slots=True)
class Outage:
    """A node that takes nothing in [start_s, end_s)."""

    node: str
    start_s: int
    end_s: int


def drawn_outages(
    nodes: Sequence[str], span: tuple[int, int], *, mtbf_s: float, repair_s: int, seed: int = 0
) -> tuple[Outage, ...]:
    """Return failures that begin in `span`, each node's apart by an exponential time of mean `mtbf_s` after a repair.

    Raises InputError for times that are not positive.
    """
    if not (mtbf_s > 0 and repair_s > 0):
        raise InputError(f"failures every {mtbf_s} s, repaired in {repair_s} s", way_out="give positive times")
    draw = Random(seed)  # noqa: S311 - an experiment, not a secret
    found = []
    for node in nodes:
        time = span[0] + draw.expovariate(1 / mtbf_s)
        while time < span[1]:
            found.append(Outage(node, int(time), int(time) + repair_s))
            time = found[-1].end_s + draw.expovariate(1 / mtbf_s)
    return tuple(sorted(found, key=lambda outage: (outage.start_s, outage.node)))


def check_outages(outages: Sequence[Outage], nodes: Sequence[str]) -> None:
    """Raise InputError or UnknownName unless each outage is of a known node, forward, and apart from its others."""
    last: dict[str, Outage] = {}
    for outage in sorted(outages, key=lambda outage: outage.start_s):
        if outage.node not in nodes:
            raise UnknownName("node", outage.node, nodes, place="outages")
        if outage.end_s <= outage.start_s:
            raise InputError(
                f"node {outage.node!r} from {outage.start_s} to {outage.end_s}",
                place="outages",
                way_out="the end comes after the start",
            )
        before = last.get(outage.node)
        if before is not None and outage.start_s < before.end_s:
            raise InputError(
                f"node {outage.node!r} fails at {outage.start_s} while it is out until {before.end_s}",
                place="outages",
                way_out="join the two",
            )
        last[outage.node] = outage


def striker(outages: Sequence[Outage], board: Board, space: TopologicalSpace, after: int) -> Callable[[int], None]:
    """Return what has to be called at every instant before the policy decides: it lets due outages happen.

    Those that began up to `after` have happened; nodes still out then are closed anew. All promises fall with a node:
    the policy makes new ones.
    """
    coming = [outage for outage in outages if outage.start_s > after]
    for outage in outages:
        if outage.start_s <= after < outage.end_s:
            _close(space, outage, after)
        for time in (outage.start_s, outage.end_s):
            board.wake(time)

    def strike(now: int) -> None:
        while coming and coming[0].start_s <= now:
            outage = coming.pop(0)
            node = space.cluster.tree.index[outage.node]
            cause = Ticket(f"failure of {outage.node}", -1)
            for ticket in list(board.promises):
                board.withdraw(ticket)
            for run in [r for r in board.running.values() if any(t.node == node for t in r.claim.taken or ())]:
                board.evict(run, cause)
            board.freed = board.left = True
            if now < outage.end_s:
                _close(space, outage, now)

    return strike


def _close(space: TopologicalSpace, outage: Outage, now: int) -> None:
    """Hold all of a node until its outage ends."""
    cluster = space.cluster
    node = cluster.tree.index[outage.node]
    unit = int(cluster.unit[node])
    units = dict.fromkeys(cluster.gpu_units[node].nonzero()[0].tolist(), unit)
    ticket = Ticket(f"outage of {outage.node}", -1, length=outage.end_s - now)
    whole = len(units) if cluster.schedulable[node] else 0
    space.hold(Claim(ticket, now, outage.end_s), [Row(node, units, 0, 0, 0)], whole, ())
