"""What a writer is, and the one door to all of them."""

from __future__ import annotations

from typing import Protocol

from kant_opt.errors import InputError
from kant_opt.registry import Registry
from kant_opt.schema import Placement, Request

Written = tuple[str, tuple[str, ...]]
"""The text, and a sentence for everything in the placement that the form cannot say."""


class Writer(Protocol):
    """One form of a placement."""

    name: str
    gives: str
    """What comes out, as the user would say it."""

    def write(self, request: Request, placement: Placement) -> Written:
        """Return the placement in this form; costs time linear in its pods."""
        ...


WRITERS: Registry[Writer] = Registry("form")


def write_placement(request: Request, placement: Placement, form: str) -> Written:
    """Return the placement in a form of WRITERS, with notes on what is lost.

    Raises UnknownName for other forms, InputError where the placement is not one of this request.
    """
    writer = WRITERS[form]
    jobs = {job.name: {p.name for p in job.podsets} for job in request.jobs}
    nodes = {n.name for n in request.nodes}
    for placed in placement.jobs:
        if placed.job not in jobs:
            raise InputError(f"the placement has job {placed.job!r}, the source has not", way_out="give its own source")
        for part in placed.pods:
            if part.podset not in jobs[placed.job] or part.node not in nodes:
                raise InputError(
                    f"job {placed.job!r} has podset {part.podset!r} on {part.node!r}: the source lacks one of them",
                    way_out="give the source that the placement was made for",
                )
    return writer.write(request, placement)


def note_indices(placement: Placement, form: str) -> tuple[str, ...]:
    """Return a note where the placement names GPUs that a form does not carry."""
    named = [job.job for job in placement.jobs if any(part.gpus for part in job.pods)]
    if not named:
        return ()
    return (f"GPU indices are lost in {form}, of {len(named)} jobs ({', '.join(named[:3])})",)
