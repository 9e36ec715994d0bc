"""`kant-opt replay`: what would have become of a recorded workload under these policies?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kant_opt.cli import options
from kant_opt.cli.guard import UNPLACED

if TYPE_CHECKING:
    from kant_opt.replay.outages import Outage
    from kant_opt.replay.side_by_side import Cluster


def replay(
    trace: Annotated[
        str,
        typer.Argument(
            metavar="TRACE",
            help="A log of jobs: SWF, Philly, Kalos, Muri, Helios, openb or DLRM tables, kant_opt's own JSON Lines; "
            ".gz too.",
            show_default=False,
        ),
    ],
    fabric: Annotated[
        str | None,
        typer.Option(
            metavar="FABRIC",
            help="Where gangs get nodes: the name of a shipped topology, a topology file (.toml), or any source that "
            "`place` reads, its nodes empty.",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            min=1, help="Instead of a fabric: so many GPUs that are all alike.", show_default="what TRACE says"
        ),
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "-p",
            help="Separated by commas: policy, policy/backend or policy@order, such as fifo,easy/binpack,easy.",
        ),
    ] = "fifo,easy",
    order: Annotated[
        str, typer.Option(help="Who is ahead in the queue: fifo, fair-share, shortest-first, srpt.")
    ] = "fifo",
    backend: options.BackendName = "e-binpack",
    walltimes: Annotated[
        Literal["asked", "exact", "predicted"],
        typer.Option(help="What policies are told: what users asked for, the real run time, or a prediction."),
    ] = "asked",
    arrivals: Annotated[float, typer.Option(help="Let jobs come so many times as fast as recorded.")] = 1.0,
    queue: Annotated[str | None, typer.Option(help="Only the jobs of this queue (virtual cluster).")] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only so many jobs from the beginning.")] = None,
    warm_up: Annotated[float, typer.Option(help="Share of the submissions' span to leave out at the start.")] = 0.0,
    cool_down: Annotated[float, typer.Option(help="Share to leave out at the end.")] = 0.0,
    mtbf_h: Annotated[
        float | None,
        typer.Option(help="Let each node of the fabric fail so many hours apart, in the mean; drawn with --seed."),
    ] = None,
    repair_h: Annotated[float, typer.Option(help="Hours that a node that failed is out.")] = 12.0,
    trace_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="How TRACE is written, where its content does not tell.")
    ] = None,
    skip_bad_lines: Annotated[
        bool, typer.Option("--skip-bad-lines", help="Leave out lines that cannot be read, and list them.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=10_000_000, help="For backends that draw lots.")] = 0,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keep the state here now and then; with the same call it goes on from it."),
    ] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a report with charts.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FOLDER", help="Write all tables, each job too, as CSV.")] = None,
    json: Annotated[
        str | None, typer.Option("--json", "-o", metavar="OUT", help="Write the measures as JSON; - is stdout.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show nothing; the exit code tells.")] = False,
    everything: options.Everything = False,
) -> None:
    """Replay a recorded workload under policies side by side.

    Jobs come as recorded and run as long as they did; policies know only what they are told. Shown per policy: waits
    by size of job, use of the GPUs and, on a fabric, broken nodes and how far gangs were stretched. Exit code 0: every
    job replayed ran; 1: some never could. Ctrl-C ends it; with --checkpoint the same call goes on.

    \b
    Examples:
      kant-opt replay KTH-SP2.swf.gz -p fifo,easy,conservative
      kant-opt replay philly.csv.gz --queue ee9e8c --gpus 144 --walltimes exact
      kant-opt replay kalos.csv --fabric leaf-spine-2048 --arrivals 40 -p easy/binpack,easy --html report.html
    """
    from kant_opt.cli.page import Page, emit
    from kant_opt.cli.replay.show import progress, show
    from kant_opt.errors import InputError
    from kant_opt.io.files import write_atomic
    from kant_opt.io.traces import read_trace
    from kant_opt.replay.outages import drawn_outages
    from kant_opt.replay.side_by_side import replay as replay_trace
    from kant_opt.replay.tables import save_tables, summary_json

    if fabric is not None and gpus is not None:
        raise InputError("--fabric and --gpus are two clusters", way_out="leave one out")
    for option, out in (("--json", json), ("--html", html), ("--checkpoint", checkpoint)):
        if out not in (None, "-") and Path(out or "").resolve() in (
            Path(trace).resolve(),
            Path(fabric or "").resolve(),
        ):
            raise InputError(f"{option} would overwrite what is read", place=out or "", way_out="name another file")
    if html is not None:
        from kant_opt.io.html import check_charts

        check_charts()
    page = Page(stderr=json == "-", quiet=quiet, everything=everything)
    read = read_trace(trace, format=trace_format, on_bad="skip" if skip_bad_lines else "stop")
    read = read if queue is None else read.of_queue(queue)
    read = read if first is None else read.first(first)
    cluster = _cluster(fabric, gpus)
    outages: tuple[Outage, ...] = ()
    if mtbf_h is not None:
        if not isinstance(cluster, tuple):
            raise InputError("--mtbf-h lets nodes fail, and there are none", way_out="give a --fabric")
        start = read.jobs[0].submit_s if read.jobs else 0
        outages = drawn_outages(
            [node.name for node in cluster[1]],
            (start, start + round(read.span_s / max(arrivals, 1e-9))),
            mtbf_s=mtbf_h * 3600,
            repair_s=round(repair_h * 3600),
            seed=seed,
        )
    with progress(shown=not quiet) as tell:
        found = replay_trace(
            read,
            cluster,
            policies=policies.split(","),
            order=order,
            backend=backend,
            walltimes=walltimes,
            arrivals=arrivals,
            warm_up=warm_up,
            cool_down=cool_down,
            seed=seed,
            outages=outages,
            checkpoint=checkpoint,
            on_progress=tell,
        )
    if json == "-":
        emit(summary_json(found))
    elif json is not None:
        write_atomic(Path(json), summary_json(found))
    if csv is not None:
        save_tables(found, csv)
    if html is not None:
        from kant_opt.replay.report import save_report

        save_report(found, html)
    if not quiet:
        show(page, found)
    if any(job.start_s is None for run in found.runs for job in run.jobs):
        raise typer.Exit(UNPLACED)


def _cluster(fabric: str | None, gpus: int | None) -> Cluster | None:
    from kant_opt.fabric import load_topology
    from kant_opt.io import read_request

    if fabric is None:
        return gpus
    path = Path(fabric)
    if path.suffix == ".toml" or (not path.exists() and path.suffix == "" and len(path.parts) == 1):
        return load_topology(fabric)
    request, _ = read_request(fabric)
    return request.fabric, request.nodes
