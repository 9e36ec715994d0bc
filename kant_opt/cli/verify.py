"""`kant-opt verify`: does this placement or plan, whoever made it, keep the rules?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kant_opt.cli import options
from kant_opt.cli.guard import UNPLACED

if TYPE_CHECKING:
    from kant_opt.cli.page import Page
    from kant_opt.schema import Outcome, Plan, Request
    from kant_opt.verify import Violation


def verify(
    request: Annotated[
        str, typer.Argument(metavar="REQUEST", help="File or folder with the request.", show_default=False)
    ],
    placement: Annotated[
        str,
        typer.Argument(
            metavar="PLACEMENT",
            help="JSON or YAML file with a placement, an outcome that holds one, or a plan.",
            show_default=False,
        ),
    ],
    certificate: Annotated[
        bool, typer.Option("--certificate", help="Check the proof of the traffic bound, too; PLACEMENT is an outcome.")
    ] = False,
    format: options.Format = None,  # noqa: A002 - the option's name
    everything: options.Everything = False,
) -> None:
    """Check a placement, or a plan, against every rule.

    What it breaks is listed one a line: rule, subject, what is wrong. The placement or plan may come from anywhere.
    Exit code 0: valid; 1: some rule is broken, or the certificate asked for is missing or proves less than it claims.

    \b
    Examples:
      kant-opt place cluster/ --json out.json; kant-opt verify cluster/ out.json
      kant-opt verify request.json placement.yaml --all
      kant-opt plan cluster/ --json plan.json; kant-opt verify cluster/ plan.json
      kant-opt verify request.json outcome.json --certificate
    """
    from kant_opt.cli.page import Page
    from kant_opt.cli.text import many
    from kant_opt.io import load_placement, read_request
    from kant_opt.verify import PLAN_RULES, RULES, verify_plan
    from kant_opt.verify import verify as find_violations

    page = Page(everything=everything)
    asked, _ = read_request(request, format=format)
    planned = _plan_in(Path(placement))
    if planned is None:
        answer = load_placement(placement)
        pods = sum(entry.count for job in answer.jobs for entry in job.pods)
        what = f"{many(len(answer.jobs), 'gang')} with {many(pods, 'pod')}"
        valid = _says(page, what, find_violations(asked, answer), len(RULES))
    else:
        what = f"{many(len(planned.jobs), 'run')} and {many(len(planned.unplanned), 'gang')} without a start"
        valid = _says(page, what, verify_plan(asked, planned), len(RULES) + len(PLAN_RULES))
    proven = _certificate_holds(asked, placement, page) if certificate else True
    if not (valid and proven):
        raise typer.Exit(UNPLACED)


def _says(page: Page, what: str, violations: tuple[Violation, ...], rules: int) -> bool:
    """List the violations, say what comes of it, and return whether there are none."""
    from kant_opt.cli.text import many

    for violation in page.cut(violations):
        page.line(str(violation))
    page.more(len(violations))
    if violations:
        page.line(f"not valid: {many(len(violations), 'violation')} in {what}", "bold red")
    else:
        page.line(f"valid: {what} keep all {rules} rules", "bold green")
    return not violations


def _plan_in(source: Path) -> Plan | None:
    """Return the plan in a file, None where it is something else."""
    from kant_opt.io import read_text
    from kant_opt.io.plain import load_data
    from kant_opt.schema import Plan, parse

    data = load_data(read_text(source), source.name)
    return parse(Plan, data, place=source.name) if isinstance(data, dict) and "policy" in data else None


def _certificate_holds(request: Request, source: str, page: Page) -> bool:
    """Say what the certificate in the file proves, or what is wrong with it."""
    from kant_opt.verify import check_certificate

    outcome = _outcome_in(Path(source))
    if outcome is None or outcome.certificate is None:
        page.line("no certificate: the file holds none, so its traffic bound, if any, is not by rents", "bold red")
        return False
    check = check_certificate(request, outcome)
    for fault in page.cut(check.faults):
        page.line(f"certificate: {fault}")
    page.more(len(check.faults))
    page.line(str(check), "bold green" if check.holds else "bold red")
    return check.holds


def _outcome_in(source: Path) -> Outcome | None:
    """Return the outcome in a file, None where it is a placement alone."""
    from kant_opt.io import read_text
    from kant_opt.io.plain import load_data
    from kant_opt.schema import Outcome, parse

    data = load_data(read_text(source), source.name)
    return (
        parse(Outcome, data, place=source.name)
        if isinstance(data, dict) and "status" in data and "policy" not in data
        else None
    )
