"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from kant_opt.schema import Limits, Request

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="File or folder that says what the cluster is and what waits: kant_opt's own JSON or YAML, the outputs of "
        "Slurm, Kubernetes lists with Kueue's, Volcano's or KAI's objects, openb tables and others; .gz too.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", "-f", metavar="FORMAT", help="How SOURCE is written, where its content does not tell."),
]
BackendName = Annotated[str, typer.Option("--backend", "-b", help="Who places; see `kant-opt backends`.")]
OrderName = Annotated[
    Literal["batch", "online"],
    typer.Option(help="batch: by priority, then most GPUs first. online: as given, one gang after another."),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, max=10_000_000, help="For backends that draw lots.", show_default="the source's, else 0"),
]
DeadlineMs = Annotated[
    int | None,
    typer.Option(
        min=1, max=10_000_000, help="Stop looking after this many milliseconds.", show_default="the source's, else none"
    ),
]
SearchStates = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10_000_000,
        help="Work limit of the exact search for one gang of mixed shapes.",
        show_default="the source's, else 10,000,000",
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(min=1, max=10_000_000, help="Rounds per gang after which the backend search stops."),
]
MemoryMb = Annotated[
    int | None,
    typer.Option(
        min=1, max=10_000_000, help="Memory of a solver's process, in MiB.", show_default="the source's, else no limit"
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Show every row; without it lists end after 50.")]


def limits_of(request: Request, **given: int | None) -> Limits:
    """Return the request's limits with those replaced that the user gave."""
    return request.limits.model_copy(update={name: value for name, value in given.items() if value is not None})
