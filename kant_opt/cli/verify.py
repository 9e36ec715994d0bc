"""`kant-opt verify`: does this placement, whoever made it, keep the rules?"""

from __future__ import annotations

from typing import Annotated

import typer

from kant_opt.cli import options
from kant_opt.cli.guard import UNPLACED


def verify(
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="File or folder with the request.", show_default=False)
    ],
    placement: Annotated[
        str,
        typer.Argument(
            metavar="PLACEMENT",
            help="JSON or YAML file with a placement, or an outcome that holds one.",
            show_default=False,
        ),
    ],
    format: options.Format = None,  # noqa: A002 - the option's name
    everything: options.Everything = False,
) -> None:
    """Check a placement against every rule.

    What it breaks is listed one a line: rule, subject, what is wrong. The placement may come from anywhere.
    Exit code 0: valid; 1: some rule is broken.

    \b
    Examples:
      kant-opt place cluster/ --json out.json; kant-opt verify cluster/ out.json
      kant-opt verify request.json placement.yaml --all
    """
    from kant_opt.cli.page import Page
    from kant_opt.cli.text import many
    from kant_opt.io import load_placement, read_request
    from kant_opt.verify import RULES
    from kant_opt.verify import verify as find_violations

    page = Page(everything=everything)
    asked, _ = read_request(request, format=format)
    answer = load_placement(placement)
    violations = find_violations(asked, answer)
    for violation in page.cut(violations):
        page.line(str(violation))
    page.more(len(violations))
    pods = sum(entry.count for job in answer.jobs for entry in job.pods)
    what = f"{many(len(answer.jobs), 'gang')} with {many(pods, 'pod')}"
    if violations:
        page.line(f"not valid: {many(len(violations), 'violation')} in {what}", "bold red")
        raise typer.Exit(UNPLACED)
    page.line(f"valid: {what} keep all {len(RULES)} rules", "bold green")
