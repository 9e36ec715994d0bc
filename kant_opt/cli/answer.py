"""An outcome for people: what was placed and how well, what was not and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kant_opt.cli.page import Column, Page, joined
from kant_opt.cli.text import fold, gpus, many, percent, some
from kant_opt.fabric import describe
from kant_opt.metrics import ClusterMeasures, JobSpan, Placed, before_and_after, job_spans
from kant_opt.metrics.admitted import pod_gpu_milli
from kant_opt.schema import NODE_LEVEL, LevelValue, Outcome, Plan, Reason

KINDS = {
    "impossible": "impossible: no room even on the empty fabric",
    "quota": "over quota: the queue may not use that much",
    "group": "waiting for the other jobs of the group",
    "not_now": "not now: the room is taken by what runs",
    "outbid": "outbid: there is room alone, but other jobs of this request came first",
    "not_found": "not found within the limit, which is no proof that there is no room",
}
"""What each kind of no means, as the heading over the jobs it befell; the most final one first."""

_UNPROVEN_CLASSES = 3


def show_cluster(page: Page, placed: Placed, source: str) -> None:
    """Say what was read: the size of the cluster, what runs, what waits."""
    request = placed.request
    size = describe(placed.fabric, request.nodes)
    levels = [many(number, level) for level, number in size.domains.items()]
    page.say(request.name or source, "bold")
    under = f"in {' > '.join(levels)}" if levels else "without levels"
    page.say(f"{many(size.nodes, 'node')}, {many(size.gpus, 'GPU')} {under}")
    page.say(f"{many(len(request.allocations), 'job')} running, {many(len(request.jobs), 'gang')} waiting")


def status_words(outcome: Outcome | Plan) -> str:
    """Return the status as a sentence part that a person understands."""
    if outcome.status == "OPTIMAL":
        return "proven optimal"
    if outcome.status == "INFEASIBLE":
        done = "can ever start" if isinstance(outcome, Plan) else "can be placed"
        return f"infeasible: proven that none {done}"
    if outcome.status == "UNKNOWN":
        return "unknown: nothing found within the limit, and nothing proven"
    told = []
    for level in outcome.levels:
        if not level.proven:
            name, value, bound = _level_cells(level)[:3]
            name = name.partition(" (")[0]
            told.append(f"{name} {value} ({'no bound' if level.bound is None else f'bound {bound}'})")
    return f"valid, not proven optimal: {some(told, 3)}"


def show_placed(page: Page, placed: Placed) -> None:
    """Show the gangs placed: size, domains used per level and how many of them beyond the first, nodes."""
    spans = job_spans(placed)
    if not spans:
        return
    # A level that is one domain tells nothing, and neither does a gang's place on it.
    levels = [level for level in placed.outer_levels if len(placed.fabric.domains(level)) > 1]
    new = _new_by_job(placed)
    columns = [
        Column("job", cut=True),
        Column("pods", right=True),
        Column("GPUs", right=True),
        *(Column(level, cut=True) for level in levels),
        Column("nodes", right=True),
        Column("where", cut=True),
    ]
    widths = {level: max(len(str(span.domains[level])) for span in spans) for level in levels}
    rows = [
        [
            span.job,
            _pods(span, new[span.job][0]),
            gpus(new[span.job][1]),
            *(_domains(span, level, widths[level]) for level in levels),
            str(span.nodes),
            fold(placed.pods_on[span.job]),
        ]
        for span in spans
    ]
    extra = [sum(span.extra[level] for span in spans) for level in levels]
    total = ["all", f"{sum(pods for pods, _ in new.values()):,}", gpus(sum(milli for _, milli in new.values()))]
    page.heading("Placed")
    page.table(
        columns, rows, [*total, *(" " * widths[lv] + f" +{n}" for lv, n in zip(levels, extra, strict=True)), "", ""]
    )
    if any(extra):
        page.say(f"  3 +2 under {levels[-1]}: three domains used, two beyond the first", "dim")


def show_objective(page: Page, levels: Sequence[LevelValue]) -> None:
    """Show the objective levels in order of importance with value, bound and gap."""
    rows = list(objective_rows(levels, everything=page.everything))
    if not rows:
        return
    page.heading("Objective, most important first")
    columns = [
        Column("level", wrap=True),
        Column("value", right=True),
        Column("bound", right=True),
        Column("gap", right=True),
        Column("proven by", wrap=True),
    ]
    page.table(columns, rows)


def show_measures(page: Page, placed: Placed) -> None:
    """Show the cluster before and after the placement."""
    before, after = before_and_after(placed)
    page.heading("Cluster")
    rows = [
        ["GPUs allocated of the healthy (GAR)", percent(before.gar), percent(after.gar)],
        ["free GPUs", f"{before.free_gpus:,}", f"{after.free_gpus:,}"],
        ["broken nodes (used in part)", f"{before.broken_nodes:,}", f"{after.broken_nodes:,}"],
        ["broken nodes of all (GFR)", percent(before.gfr), percent(after.gfr)],
        ["broken leaves", f"{before.broken_leaves:,}", f"{after.broken_leaves:,}"],
    ]
    if before.free_parts or after.free_parts:
        parts = ["free parts of GPUs in use, in GPUs", f"{before.free_parts:,.2f}", f"{after.free_parts:,.2f}"]
        rows.insert(2, parts)
    page.table([Column("", wrap=True), Column("before", right=True), Column("after", right=True)], rows)
    _show_largest(page, before, after)


def _show_largest(page: Page, before: ClusterMeasures, after: ClusterMeasures) -> None:
    """Show how many whole free nodes the best domain of each level has, per pool."""
    change: dict[str, dict[str, str]] = {}
    arrow = "→" if page.draws else "->"
    for old, new in zip(before.largest, after.largest, strict=True):
        if old.level != NODE_LEVEL and old.pod_gpus is None:
            cells = change.setdefault(old.pool, {})
            cells[old.level] = f"{old.pods:,} {arrow} {new.pods:,}"
    if change:
        levels = list(next(iter(change.values())))
        page.heading("Largest gang of whole nodes that fits in one domain, before and after")
        columns = [Column("pool", cut=True), *(Column(level, right=True, cut=True) for level in levels)]
        page.table(columns, [[pool, *cells.values()] for pool, cells in change.items()])


def show_reasons(page: Page, reasons: Sequence[Reason]) -> None:
    """Show the jobs that are not placed, by kind of no; jobs that differ in their name only share a line."""
    if not reasons:
        return
    for kind, meaning in KINDS.items():
        of_kind = [reason for reason in reasons if reason.kind == kind]
        if not of_kind:
            continue
        alike: dict[str, list[str]] = {}
        for reason in of_kind:
            alike.setdefault(_without_name(reason), []).append(reason.job)
        page.heading(f"Not placed ({len(of_kind)}), {meaning}")
        page.items([f"{_jobs(jobs)}: {text}" for text, jobs in alike.items()])
    page.say("  kant-opt explain SOURCE JOB: the smallest changes that let a job in", "dim")


_LIMITS = {
    "rounds": "the search for less traffic stopped after its rounds, short of its bound: --rounds gives it more",
    "search_states": "an exact search stopped at its limit: --search-states gives it more",
    "deadline": "the deadline was reached: --deadline-ms gives more time",
    "work": "a solver stopped at its work limit: --search-states gives it more, --deadline-ms a time instead",
    "memory": "a solver ran out of memory: --memory-mb gives it more",
    "size": "the program was too large for the solver: the backend search takes any size",
    "stopped": "interrupted: this is the best answer until then",
}
"""What a limit that bit means for the answer."""


def show_notes(page: Page, notes: Sequence[str], outcome: Outcome | Plan) -> None:
    """Show what the reader left out, what is odd in the cluster, and which limit bit."""
    hit = outcome.run.limit_hit
    limit = [_LIMITS.get(hit, f"the limit {hit} was reached")] if hit else []
    flags = [f"{flag.subject}: {flag.text}" for flag in outcome.flags]
    program = [f"program solved: {outcome.run.formulation}"] if outcome.run.formulation else []
    told = [*limit, *program, *outcome.run.notes, *notes, *flags]
    if told:
        page.heading("Notes")
        page.items(told)


def _new_by_job(placed: Placed) -> dict[str, tuple[int, int]]:
    """Return new pods and their thousandths of a GPU per placed job."""
    found = dict.fromkeys(placed.pods_on, (0, 0))
    for new in placed.new_pods:
        pods, milli = found[new.job.name]
        per_pod = pod_gpu_milli(new.podset, placed.request.nodes[new.node])
        found[new.job.name] = (pods + new.entry.count, milli + new.entry.count * per_pod)
    return found


def _pods(span: JobSpan, new: int) -> str:
    return f"{new:,}" if new == span.pods else f"{new:,} new of {span.pods:,}"


def _domains(span: JobSpan, level: str, width: int) -> str:
    extra = f" +{span.extra[level]}" if span.extra[level] else ""
    return f"{span.domains[level]:>{width}}{extra}"


def objective_rows(levels: Sequence[LevelValue], *, everything: bool) -> Iterator[list[str]]:
    """Yield one row per level; classes of `admitted` in a row that are all proven, or all low, share one."""
    admitted = [level for level in levels if level.name.startswith("admitted[")]
    if everything or len(admitted) <= _UNPROVEN_CLASSES:
        yield from (_level_cells(level) for level in levels)
        return
    shown = 0
    for proven, run in groupby(admitted, key=lambda level: level.proven):
        group = list(run)
        if not proven and shown < _UNPROVEN_CLASSES:
            single = group[: _UNPROVEN_CLASSES - shown]
            shown += len(single)
            yield from (_level_cells(level) for level in single)
            group = group[len(single) :]
        if group:
            yield _folded(group, proven=proven)
    yield from (_level_cells(level) for level in levels if not level.name.startswith("admitted["))


def _folded(group: Sequence[LevelValue], *, proven: bool) -> list[str]:
    name = f"GPUs admitted, {many(len(group), 'priority class', 'priority classes')}"
    bounds = [level.bound for level in group]
    bound = None if None in bounds else sum(b for b in bounds if b is not None)
    whole = LevelValue(
        name=name,
        sense="max",
        value=sum(level.value for level in group),
        bound=bound,
        bound_source=some(sorted({level.bound_source for level in group if level.bound_source})),
    )
    cells = [name, gpus(whole.value), *_bound_cells(whole, milli=True)]
    return cells if proven else [*cells[:-1], joined([cells[-1], "sums of the classes"])]


def _level_cells(level: LevelValue) -> list[str]:
    if level.name.startswith("admitted["):
        name = f"GPUs admitted, priority {level.name.removeprefix('admitted[').removesuffix(']')}"
        return [name, gpus(level.value), *_bound_cells(level, milli=True)]
    names = {
        "traffic": "traffic (extra domains, weighted)",
        "broken_nodes": "broken nodes (used in part)",
        "broken_leaves": "broken leaves",
        "total_wait": "total wait (s)",
        "makespan": "makespan (until the last end, s)",
        "bounded_slowdown": "bounded slowdown (sum, billionths)",
    }
    name, _, priority = level.name.removesuffix("]").partition("[")
    told = names.get(name, name) + (f", priority {priority}" if priority else "")
    return [told, f"{level.value:,}", *_bound_cells(level, milli=False)]


def _bound_cells(level: LevelValue, *, milli: bool) -> list[str]:
    if level.bound is None or level.gap is None:
        return ["-", "-", "nothing proven"]
    number = gpus if milli else "{:,}".format
    return [number(level.bound), number(level.gap), level.bound_source]


def _without_name(reason: Reason) -> str:
    return reason.sentence.removeprefix(f"job {reason.job!r} ")


def _jobs(names: Sequence[str]) -> str:
    return some(names, 8) if len(names) > 1 else names[0]
