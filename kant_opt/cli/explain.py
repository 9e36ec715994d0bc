"""`kant-opt explain`: everything about one job, why it is not placed or where it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options
from kant_opt.cli.guard import UNPLACED

if TYPE_CHECKING:
    from kant_opt.cli.page import Page
    from kant_opt.metrics import Placed
    from kant_opt.schema import Allocation, Reason, Relaxation


def explain(
    source: options.Source,
    job: Annotated[str, typer.Argument(metavar="JOB", help="Name of a waiting or running job.", show_default=False)],
    format: options.Format = None,  # noqa: A002 - the option's name
    backend: options.BackendName = "auto",
    order: options.OrderName = "batch",
    seed: options.Seed = None,
    deadline_ms: options.DeadlineMs = None,
    search_states: options.SearchStates = None,
    rounds: options.Rounds = None,
    everything: options.Everything = False,
) -> None:
    """Say why a job is not placed and what would let it in, or where it goes.

    The whole queue is placed as `place` does, and one job of it is told. What would let it in refers to the cluster
    after that placement. Exit code 0: the job is placed or runs; 1: it is not placed.

    \b
    Examples:
      kant-opt explain cluster/ 654
      kant-opt explain request.json team-a/train-7 --order online
    """
    from kant_opt.cli.page import Page
    from kant_opt.engine import place as place_gangs
    from kant_opt.engine import relaxations
    from kant_opt.errors import UnknownName
    from kant_opt.io import read_request, why_left_out
    from kant_opt.metrics import Placed

    page = Page(everything=everything)
    request, notes = read_request(source, format=format)
    running = {allocation.job: allocation for allocation in request.allocations}
    waiting = [j.name for j in request.jobs]
    if job not in waiting:
        if job not in running and (note := why_left_out(job, notes)):
            page.say(f"{job} is not placed", "bold")
            page.say(f"the reader left it out of the request: {note}")
            raise typer.Exit(UNPLACED)
        if job not in running:
            raise UnknownName("job", job, [*waiting, *running], place=source)
        _show_running(page, Placed(request), running[job])
        return
    limits = options.limits_of(request, seed=seed, deadline_ms=deadline_ms, search_states=search_states, rounds=rounds)
    outcome = place_gangs(request, backend=backend, order=order, limits=limits)
    if reason := next((r for r in outcome.reasons if r.job == job), None):
        _show_reason(page, reason.model_copy(update={"relaxations": relaxations(request, outcome, job)}))
        raise typer.Exit(UNPLACED)
    placed = Placed(request, outcome.placement)
    if job in placed.pods_on:
        _show_place(page, placed, job)
    else:
        page.say(f"{job} has no pods to place: they run, or are finished")


def _show_reason(page: Page, reason: Reason) -> None:
    from kant_opt.cli.answer import KINDS
    from kant_opt.cli.page import Column
    from kant_opt.cli.text import many

    page.say(f"{reason.job} is not placed", "bold")
    page.say(reason.sentence)
    page.say()
    page.say(f"kind      {KINDS[reason.kind]}")
    if reason.podset != "main" and reason.podset:
        page.say(f"podset    {reason.podset} comes least far")
    if reason.short:
        page.say(f"short of  {reason.short}")
    if reason.fits:
        page.heading("The best domain of each level")
        columns = [
            Column("level"),
            Column("domain", cut=True),
            Column("fits", right=True),
            Column("of", right=True),
            Column(""),
        ]
        rows = [[f.level, "/".join(f.domain), f"{f.fits:,}", f"{f.needed:,}", f.unit] for f in reason.fits]
        page.table(columns, rows)
    if reason.causes:
        page.heading("Every node, by what it comes to")
        columns = [Column("nodes", right=True), Column("", wrap=True)]
        total = [f"{sum(c.nodes for c in reason.causes):,}", "in all"]
        page.table(columns, [[f"{c.nodes:,}", c.cause] for c in reason.causes], total)
    if reason.blockers:
        page.heading(f"In the way ({many(len(reason.blockers), 'example')}): node (jobs on it)")
        page.items(reason.blockers)
    page.heading("Each of these alone would let it in, on the cluster after this placement")
    page.items([_told(relaxation) for relaxation in reason.relaxations] or ["none that was tried"])


def _told(relaxation: Relaxation) -> str:
    return f"{relaxation.sentence} ({'proven minimal' if relaxation.proven else 'not proven minimal'})"


def _show_place(page: Page, placed: Placed, job: str) -> None:
    from kant_opt.cli.page import Column
    from kant_opt.cli.text import fold, many
    from kant_opt.metrics import job_stretch

    on = placed.pods_on[job]
    page.say(f"{job} is placed", "bold")
    page.say(f"{many(sum(on.values()), 'pod')} on {many(len(on), 'node')}: {fold(on)}")
    stretch = next((s for s in job_stretch(placed) if s.job == job), None)
    if stretch:
        page.heading("Domains used")
        columns = [Column("level"), Column("used", right=True), Column("least", right=True), Column("which", cut=True)]
        rows = []
        for level, used in stretch.used.items():
            names = {"/".join(placed.fabric.domain_of(node, level)[-1:]) for node in on}
            rows.append([level, str(used), str(stretch.least[level]), fold(names)])
        page.table(columns, rows)
        page.say("  least: no placement uses fewer, even on the empty cluster", "dim")
    alike: dict[tuple[str, str, str], list[str]] = {}
    for new in placed.new_pods:
        if new.job.name == job:
            needs = new.podset.gpus or new.podset.has_share
            indices = " ".join(fold_indices(pod) for pod in new.entry.gpus) or ("any" if needs else "-")
            alike.setdefault((new.podset.name, str(new.entry.count), indices), []).append(new.entry.node)
    page.heading("New pods")
    columns = [Column("podset", cut=True), Column("pods on each", right=True), Column("GPU indices", cut=True)]
    columns.append(Column("nodes", cut=True))
    page.table(columns, [[*key, fold(nodes)] for key, nodes in alike.items()])


def _show_running(page: Page, placed: Placed, allocation: Allocation) -> None:
    from kant_opt.cli.text import fold, many

    nodes = sorted({hold.node for hold in allocation.holds})
    pods = sum(hold.pods for hold in allocation.holds)
    page.say(f"{allocation.job} runs", "bold")
    page.say(f"{many(pods, 'pod')} on {many(len(nodes), 'node')}: {fold(nodes)}")
    for level in placed.outer_levels:
        domains = {placed.fabric.domain_of(node, level) for node in nodes}
        page.say(f"{level}: {fold(domain[-1] for domain in domains)}")


def fold_indices(indices: tuple[int, ...]) -> str:
    """Return GPU indices as a list with runs folded: (0, 1, 2, 5) -> "0-2,5"."""
    from kant_opt.cli.text import fold

    return fold(map(str, indices)).strip("[]")
