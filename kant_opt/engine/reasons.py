"""Why a job is not placed: what kind of no it is, how close the best domain comes, what is short, what would help."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kant_opt.backends import Answer, Deadline, Failure, Placer
from kant_opt.backends.ebinpack import EBinpack
from kant_opt.schema import CauseCount, Job, LevelFit, Reason, ReasonKind
from kant_opt.view import NOT_COUNTED, Cluster, Free, Gang, Ints, Mask, Part, Quotas, open_nodes

_BLOCKERS = 5


class Explainer:
    """Explains one answer. `before` is the free room without it, `after` with it."""

    def __init__(self, cluster: Cluster, after: Free, work: int) -> None:
        self.cluster, self.after, self.work = cluster, after, work
        self.before = Free(cluster)
        self._verdicts: dict[int, Failure | None] = {}
        self._jobs_on: dict[int, dict[int, list[str]]] = {}

    @cached_property
    def empty(self) -> Free:
        """The fabric with nothing running on it."""
        return Free(self.cluster, empty=True)

    def impossible_alone(self, gang: Gang) -> bool:
        """Return whether the gang is proven not to fit on the room before, all of it its own."""
        return self._alone_before(gang) in ("no_room", "quota")

    def explain(self, answer: Answer, deadline: Deadline | None = None) -> tuple[Reason, ...]:
        """Return one reason per job that is not placed, in the order of the request.

        Past the deadline a reason says no more than that. Explaining a gang costs a few passes over the nodes.
        """
        found: dict[str, Reason] = {}
        for gang, failure in answer.failed:
            if deadline is not None and deadline.late:
                found |= {job.name: _late(job, failure) for job in gang.jobs}
                continue
            kind, free = self._kind(gang, failure, placed_others=bool(answer.taken))
            for job in gang.jobs:
                found[job.name] = self._reason(gang, job, kind, free)
        return tuple(found[job.name] for job in self.cluster.request.jobs if job.name in found)

    def one(self, gang: Gang, failure: Failure) -> Reason:
        """Return the reason of a gang of one job, with the pods on `after` as given."""
        kind, free = self._kind(gang, failure, placed_others=False)
        return self._reason(gang, gang.jobs[0], kind, free if kind == "impossible" else self.after)

    # -- what kind of no -------------------------------------------------------------------------

    def _kind(self, gang: Gang, failure: Failure, *, placed_others: bool) -> tuple[ReasonKind, Free]:
        if failure == "limit":
            return "not_found", self.after
        alone = self._alone_before(gang)
        if alone is None and placed_others:
            return "outbid", self.after
        if alone == "quota" or failure == "quota":
            return "quota", self.before
        if alone == "limit":
            return "not_found", self.before
        on_empty = self._alone(self.empty, gang, Quotas(self.cluster).unused())
        if on_empty is None:
            return "not_now", self.before
        return ("not_found", self.before) if on_empty == "limit" else ("impossible", self.empty)

    def _alone_before(self, gang: Gang) -> Failure | None:
        key = id(gang)
        if key not in self._verdicts:
            self._verdicts[key] = self._alone(self.before, gang)
        return self._verdicts[key]

    def _alone(self, free: Free, gang: Gang, quotas: Quotas | None = None) -> Failure | None:
        """Return why the gang does not fit with no other new gang around, None where it does."""
        placer = Placer(free, EBinpack(), quotas, self.work)
        taken = placer.place(gang)
        if isinstance(taken, str):
            return taken
        placer.release(taken)
        return None

    # -- one reason ------------------------------------------------------------------------------

    def _reason(self, gang: Gang, job: Job, kind: ReasonKind, free: Free) -> Reason:
        own = [i for i in gang.open_parts if gang.parts[i].job is job]
        groups = ", ".join(gang.groups)
        if not own:
            text = f"job {job.name!r} waits for the other jobs of group {groups}"
            return Reason(job=job.name, kind="group", short="group", sentence=text)
        placer = Placer(free, EBinpack(), work=self.work)
        rooms = {i: placer.room_of(gang, i) for i in own}
        part, room = self._culprit(gang, rooms)
        fit_alone = all(_most(gang.parts[i], room) >= gang.parts[i].least for i, room in rooms.items())
        if len(gang.jobs) > 1 and kind != "not_found" and fit_alone:
            others = ", ".join(repr(j.name) for j in gang.jobs if j is not job)
            text = f"job {job.name!r} waits: group {groups} is all or none, and it does not fit with {others}"
            return Reason(job=job.name, kind="group", podset=part.podset.name, short="group", sentence=text)
        nodes = open_nodes(free, gang)
        causes = self._causes(part, free, nodes)
        fits = self._fits(part, room)
        short = "quota" if kind == "quota" else self._short(part, room, causes)
        if kind != "quota" and fit_alone:
            short = "room for all podsets together" if len(own) > 1 else "whole slices beside running pods"
        return Reason(
            job=job.name,
            kind=kind,
            podset=part.podset.name,
            short=short,
            fits=fits,
            causes=causes,
            blockers=self._blockers(part, room, free),
            sentence=self._sentence(job, part, kind, room, free, fits, short, causes),
        )

    def _culprit(self, gang: Gang, rooms: dict[int, list[Ints]]) -> tuple[Part, list[Ints]]:
        """Return the part that comes least far, with its room per domain."""
        worst = min(rooms, key=lambda i: (_most(gang.parts[i], rooms[i]) / gang.parts[i].target, i))
        return gang.parts[worst], rooms[worst]

    def _fits(self, part: Part, room: list[Ints]) -> tuple[LevelFit, ...]:
        tree = self.cluster.tree
        found = []
        for depth in range(1, tree.depths):
            size = next((s for level, s in part.slices if level >= depth), 1)
            size = size if part.target % size == 0 else 1
            if not len(room[depth]):
                continue
            best = int(np.argmax(room[depth]))
            found.append(
                LevelFit(
                    level=tree.level(depth),
                    domain=tree.paths[depth][best],
                    fits=min(int(room[depth][best]), part.target) // size,
                    needed=part.target // size,
                    unit="slices" if size > 1 else "pods",
                )
            )
        return tuple(found)

    # -- causes ----------------------------------------------------------------------------------

    def _causes(self, part: Part, free: Free, nodes: Mask | None) -> tuple[CauseCount, ...]:
        """Return how many nodes each cause excludes; a node counts under the first that applies, so they add up."""
        left = np.ones(len(self.cluster.nodes), dtype=bool)
        found: list[CauseCount] = []
        excluded = self.cluster.exclusions(part.job, part.podset)
        if nodes is not None:
            excluded.append(("kept by rules towards other jobs", ~nodes))
        for cause, mask in [*excluded, *_shortages(free, part)]:
            here = left & mask
            if here.any():
                found.append(CauseCount(cause=cause, nodes=int(here.sum())))
            left &= ~mask
        if left.any():
            found.append(CauseCount(cause="could hold a pod", nodes=int(left.sum())))
        return tuple(found)

    def _short(self, part: Part, room: list[Ints], causes: tuple[CauseCount, ...]) -> str:
        """Return what is short: a level where there is room enough elsewhere, else the commonest lack."""
        if int(room[0].sum()) >= part.target:
            return f"level {self.cluster.tree.level(part.required)}" if part.required else "rules between podsets"
        lacks = [c for c in causes if c.cause.startswith("no ")]
        if lacks:
            return max(lacks, key=lambda c: c.nodes).cause.removeprefix("no ").removesuffix(" free")
        return "nodes" if any(c.cause == "could hold a pod" for c in causes) else "eligible nodes"

    def _blockers(self, part: Part, room: list[Ints], free: Free) -> tuple[str, ...]:
        """Return nodes of the nearest domain that could take a pod but for what runs there, with who runs there."""
        tree = self.cluster.tree
        if not len(room[part.required]):
            return ()
        best = int(np.argmax(room[part.required]))
        run = tree.nodes_of(part.required, best)
        could = self.empty.slots(part.shape, part.eligible)[run] > 0
        lacking = np.flatnonzero(could & (free.slots(part.shape, part.eligible)[run] == 0)) + run.start
        found = []
        for node in lacking[:_BLOCKERS].tolist():
            jobs = self._holders(free).get(node, [])
            found.append(f"{tree.names[node]} ({', '.join(jobs[:3]) or 'in use'})")
        return tuple(found)

    def _holders(self, free: Free) -> dict[int, list[str]]:
        """Return the jobs with pods on each node, sorted by name. `free` does not change while it is explained."""
        if id(free) not in self._jobs_on:
            jobs_on: dict[int, list[str]] = {}
            for job, held in sorted(free.pods_of.items()):
                for node in held:
                    jobs_on.setdefault(node, []).append(job)
            self._jobs_on[id(free)] = jobs_on
        return self._jobs_on[id(free)]

    # -- the sentence ----------------------------------------------------------------------------

    def _sentence(
        self,
        job: Job,
        part: Part,
        kind: ReasonKind,
        room: list[Ints],
        free: Free,
        fits: tuple[LevelFit, ...],
        short: str,
        causes: tuple[CauseCount, ...],
    ) -> str:
        tree = self.cluster.tree
        where = f" inside one {tree.level(part.required)}" if part.required else ""
        need = f"job {job.name!r} needs {part.target} {'pod' if part.target == 1 else 'pods'} x {_pod(part)}{where}"
        if len(job.podsets) > 1:
            need += f" (podset {part.podset.name!r})"
        if kind == "quota":
            return f"{need}; queue {job.queue!r} has not that much quota left: wait, or raise its limit"
        if kind == "not_found":
            return f"{need}; not found within the limit, which does not prove that it cannot: raise search_states"
        at = fits[part.required - 1] if part.required and fits else None
        if short.startswith(("room for all", "whole slices")):
            return f"{need}; it would fit, but there is no {short}: wait, or ask for fewer pods"
        if part.slices and part.target % part.unit == 0:
            close = self._slices_told(part, room)
        elif at:
            close = f"best {at.level} {'/'.join(at.domain)!r} fits {at.fits} of {at.needed} {at.unit}"
        elif not room[0].any() and free.whole[part.eligible].max(initial=0) < part.shape.gpus:
            close = self._nearest_node(part, free)
        else:
            close = f"{min(int(room[0].sum()), part.target)} of {part.target} fit"
        return f"{need}; {close}; {self._way_out(part, kind, room, short, causes)}"

    def _slices_told(self, part: Part, room: list[Ints]) -> str:
        """Return how many slices fit in all and where, e.g. "1 of 2 slices of 8 fit (rack: 1 in 'b0', 0 in 'b1')"."""
        tree, (depth, size) = self.cluster.tree, part.slices[0]
        slices = room[depth] // size
        best = np.argsort(-slices, kind="stable")[:_BLOCKERS].tolist()
        where = ", ".join(f"{int(slices[i])} in {'/'.join(tree.paths[depth][i])!r}" for i in best)
        more = ", ..." if len(slices) > len(best) else ""
        return (
            f"{min(int(slices.sum()), part.target // size)} of {part.target // size} slices of {size} fit "
            f"({tree.level(depth)}: {where}{more})"
        )

    def _nearest_node(self, part: Part, free: Free) -> str:
        """Return how near the node with the most free GPUs comes to one pod."""
        gpus = np.where(part.eligible, free.whole, -1)
        if not len(gpus) or gpus.max() < 0:
            return "no node is eligible"
        best = int(np.argmax(gpus))
        return f"best node {self.cluster.tree.names[best]!r} has {int(gpus[best])} of {part.shape.gpus} GPUs free"

    def _way_out(
        self, part: Part, kind: ReasonKind, room: list[Ints], short: str, causes: tuple[CauseCount, ...]
    ) -> str:
        tree = self.cluster.tree
        for depth in range(part.required - 1, 0, -1):
            if int(room[depth].max(initial=0)) >= part.target:
                return f"it fits inside one {tree.level(depth)}: allow level {tree.level(depth)!r}"
        if part.required and int(room[0].sum()) >= part.target:
            return "it fits on the whole fabric: drop the required level"
        told = ", ".join(f"{c.nodes} {c.cause}" for c in causes)
        closed = sum(c.nodes for c in causes if c.cause == "not schedulable")
        unless = f", unless some of the {closed} closed nodes return" if closed else ""
        why = {
            "impossible": f"impossible on this fabric even when empty{unless}",
            "not_now": "room is taken by running jobs",
            "outbid": "room went to jobs before it in this request",
        }.get(kind, "it does not fit")
        return f"{why}; short of {short}" + (f" (nodes: {told})" if told else "")


def _late(job: Job, failure: Failure) -> Reason:
    what = "was not looked at" if failure == "limit" else "is not placed"
    return Reason(
        job=job.name,
        kind="not_found",
        short="time",
        sentence=f"job {job.name!r} {what}; the deadline left no time to find out why: raise deadline_ms",
    )


def _most(part: Part, room: list[Ints]) -> int:
    """Return the most pods that the domain the part has to lie in could take."""
    return int(room[part.required].max(initial=0))


def _shortages(free: Free, part: Part) -> list[tuple[str, Mask]]:
    """Return (cause, nodes that lack it for one pod) per resource, GPUs first."""
    cluster, shape = free.cluster, part.shape
    found: list[tuple[str, Mask]] = []
    if shape.gpus:
        found.append(("too few GPUs in all", cluster.gpus < shape.gpus))
        found.append(("no GPU free" if shape.gpus == 1 else "no GPUs free", free.whole < shape.gpus))
    elif shape.has_share:
        share = shape.milli * cluster.unit // 1000 if shape.milli else np.full(len(cluster.unit), 1000 * shape.mib)
        widest = free.units.max(axis=1, initial=0)
        found.append(("no GPU share free", widest < share))
    if shape.cpu:
        found.append(("no CPU free", (cluster.cpu < NOT_COUNTED) & (free.cpu < shape.cpu)))
    if shape.memory:
        found.append(("no memory free", (cluster.memory < NOT_COUNTED) & (free.memory < shape.memory)))
    found.append(("no pod slot free", free.pods < 1))
    return found


def _pod(part: Part) -> str:
    shape = part.shape
    gpu = ""
    if shape.gpus:
        gpu = f"{shape.gpus} {'GPU' if shape.gpus == 1 else 'GPUs'}"
    elif shape.milli:
        gpu = f"{shape.milli}/1000 of a GPU"
    elif shape.mib:
        gpu = f"{shape.mib} MiB of a GPU"
    return gpu or (f"{shape.cpu / 1000:g} CPUs" if shape.cpu else "no GPU")
