"""Both spaces against naive twins that count second by second: claims made, undone, cut and lengthened."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kant_opt.planning.counting import CountingSpace
from kant_opt.planning.profile import Profile
from kant_opt.planning.queue import read_queue
from kant_opt.planning.ticket import FOREVER, Claim, Ticket
from kant_opt.schema import FabricSpec, Job, Node, PodSet, Request, Reservation

END = 40
"""Seconds that the twins look at; all windows drawn end before."""
UNITS = 6

times = st.integers(0, 19)
lengths = st.integers(1, 20)
units = st.integers(0, UNITS)


class ProfileMachine(RuleBasedStateMachine):
    """A profile beside one number per second."""

    def __init__(self) -> None:
        super().__init__()
        self.profile = Profile(UNITS, 0)
        self.free = [UNITS] * END
        self.held: list[tuple[int, int, int]] = []

    @rule(start=times, length=lengths, amount=units)
    def take(self, start: int, length: int, amount: int) -> None:
        self.profile.take(start, start + length, amount)
        self.held.append((start, start + length, amount))
        self._count(start, start + length, -amount)

    @rule(which=st.integers(0, 99))
    def give_back(self, which: int) -> None:
        if self.held:
            start, end, amount = self.held.pop(which % len(self.held))
            self.profile.take(start, end, -amount)
            self._count(start, end, amount)

    @rule(amount=units, length=lengths, after=times)
    def earliest(self, amount: int, length: int, after: int) -> None:
        tries = (t for t in range(after, END + 1) if all(free >= amount for free in self.free[t : t + length]))
        assert self.profile.earliest(amount, length, after) == next(tries, None)

    @rule(start=times, length=lengths)
    def least(self, start: int, length: int) -> None:
        assert self.profile.least(start, start + length) == min(self.free[start : start + length])

    @rule(start=times, amount=units)
    def until(self, start: int, amount: int) -> None:
        end = next((t for t in range(start, END) if self.free[t] < amount), None)
        assert self.profile.until(start, amount) == end

    @rule(after=times, amount=units)
    def largest(self, after: int, amount: int) -> None:
        start, end = self.profile.largest(amount, after)
        runs: list[tuple[int, int]] = []
        for t in range(after, END):
            if self.free[t] >= amount:
                runs[-1:] = [(runs[-1][0], t + 1)] if runs and runs[-1][1] == t else [*runs[-1:], (t, t + 1)]
        if runs and runs[-1][1] == END:
            assert (start, end) == (runs[-1][0], None), "what is free at the end is free for ever"
        elif not runs:
            assert (start, end) == (after, after)
        else:
            assert end is not None
            assert end - start == max(b - a for a, b in runs)
            assert all(free >= amount for free in self.free[start:end])

    def _count(self, start: int, end: int, amount: int) -> None:
        for t in range(start, end):
            self.free[t] += amount

    @invariant()
    def steps_are_merged(self) -> None:
        assert all(a != b for a, b in zip(self.profile.free, self.profile.free[1:], strict=False))
        assert len(self.profile.times) == len(self.profile.free)


SHAPES = [(1, 2, ""), (2, 1, ""), (1, 1, ""), (3, 2, ""), (2, 2, "leaf"), (4, 1, "leaf"), (1, 4, ""), (2, 4, "")]
"""(pods, GPUs each, required level) of the tickets drawn, on two leaves of two nodes of four GPUs."""


def _request() -> Request:
    nodes = tuple(Node(name=f"n{i}", path=(f"l{i // 2}",), gpus=4, cpu_milli=4000) for i in range(4))
    jobs = tuple(
        Job(
            name=f"j{i}-{length}",
            walltime_s=length,
            podsets=(PodSet(count=pods, gpus=gpus, cpu_milli=1500, required_level=level or None),),
        )
        for i, (pods, gpus, level) in enumerate(SHAPES)
        for length in (1, 3, 8)
    )
    kept = Reservation(name="kept", nodes=("n1",), start_s=6, end_s=9, jobs=("j2-8",))
    return Request(fabric=FabricSpec(levels=("leaf",)), nodes=nodes, jobs=jobs, reservations=(kept,))


QUEUE = read_queue(_request())


class TopologicalMachine(RuleBasedStateMachine):
    """A space of four nodes beside GPUs, CPU and the reservation counted second by second."""

    def __init__(self) -> None:
        super().__init__()
        self.space = QUEUE.topological()
        self.claims: list[Claim] = []

    @rule(which=st.integers(0, len(QUEUE.tickets) - 1), after=times, keep=st.booleans())
    def earliest(self, which: int, after: int, keep: bool) -> None:
        ticket = QUEUE.tickets[which]
        claim = self.space.earliest(ticket, after)
        first = next(t for t in range(after, 200) if self._fits(ticket, t))
        assert claim is not None
        assert claim.start == first
        assert claim.end == first + (ticket.length or 0)
        assert self.space.at(ticket, first) is not None
        if keep and first < END:
            self.space.reserve(claim)
            self.claims.append(claim)

    @rule(which=st.integers(0, len(QUEUE.tickets) - 1), start=times)
    def at(self, which: int, start: int) -> None:
        ticket = QUEUE.tickets[which]
        assert (self.space.at(ticket, start) is not None) == self._fits(ticket, start)

    @rule(which=st.integers(0, 99))
    def cancel(self, which: int) -> None:
        if self.claims:
            self.space.cancel(self.claims.pop(which % len(self.claims)))

    @rule(which=st.integers(0, 99), back=st.booleans(), by=st.integers(1, 8))
    def shorten(self, which: int, back: bool, by: int) -> None:
        if self.claims:
            claim = self.claims[which % len(self.claims)]
            end = claim.end
            self.space.shorten(claim, max(claim.start, end - by))
            assert claim.end == max(claim.start, end - by)
            if back:
                self.space.lengthen(claim, end)

    @invariant()
    def nobody_shares(self) -> None:
        for t in range(END):
            used = [(p.node, gpu) for c in self._on(t, t + 1) for p in c.taken or () for pod in p.gpus for gpu in pod]
            assert len(used) == len(set(used))

    def _on(self, start: int, end: int) -> list[Claim]:
        return [c for c in self.claims if c.start < end and start < c.end and c.start < c.end]

    def _fits(self, ticket: Ticket, start: int) -> bool:
        """Count what each node can take throughout: pods of one shape, so counts per leaf tell all."""
        assert ticket.gang is not None
        part, end = ticket.gang.parts[0], start + (ticket.length or 0)
        room = [self._slots(node, part.shape.gpus, ticket, start, end) for node in range(4)]
        if part.required:
            return max(room[0] + room[1], room[2] + room[3]) >= part.target
        return sum(room) >= part.target

    def _slots(self, node: int, gpus: int, ticket: Ticket, start: int, end: int) -> int:
        if node == 1 and start < 9 and end > 6 and ticket.name != "j2-8":
            return 0
        busy = {g for c in self._on(start, end) for p in c.taken or () if p.node == node for pod in p.gpus for g in pod}
        most = max(
            sum(p.pods for c in self._on(t, t + 1) for p in c.taken or () if p.node == node) for t in range(start, end)
        )
        return min((4 - len(busy)) // gpus, (4000 - 1500 * most) // 1500)


class CountingMachine(RuleBasedStateMachine):
    """A counting space beside one number per second, also for tickets of unknown length that may be evicted."""

    def __init__(self) -> None:
        super().__init__()
        self.space = CountingSpace(UNITS)
        self.claims: list[Claim] = []

    @rule(gpus=st.integers(1, UNITS), length=st.none() | lengths, after=times)
    def earliest(self, gpus: int, length: int | None, after: int) -> None:
        ticket = Ticket("t", 0, length=length, gpus=gpus, preemptible=True)
        claim = self.space.earliest(ticket, after)
        free = [UNITS - sum(c.ticket.gpus for c in self.claims if c.start <= t < c.end) for t in range(200)]
        needs = 1 if length is None else length
        first = next((t for t in range(after, 190) if min(free[t : t + needs]) >= gpus), None)
        if first is None:
            assert claim is None, "somebody stays for ever"
            return
        assert claim is not None
        assert claim.start == first
        until = next((t for t in range(first, 200) if free[t] < gpus), FOREVER)
        assert claim.end == (until if length is None else first + length)
        if first < END:
            self.space.reserve(claim)
            self.claims.append(claim)

    @rule(which=st.integers(0, 99))
    def cancel(self, which: int) -> None:
        if self.claims:
            self.space.cancel(self.claims.pop(which % len(self.claims)))


few = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestProfile = ProfileMachine.TestCase
TestProfile.settings = few
TestTopological = TopologicalMachine.TestCase
TestTopological.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
TestCounting = CountingMachine.TestCase
TestCounting.settings = few
