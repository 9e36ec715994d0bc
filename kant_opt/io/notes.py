"""A note on what a reader leaves out: a sentence that knows all the jobs it is about, also those it does not name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class LeftOutNote(str):
    """A sentence, and the jobs that the request lacks for the reason it gives.

    >>> note = LeftOutNote.about(["7", "8"], "2 pending jobs (7, ...) left out: BeginTime")
    >>> note, note.jobs
    ('2 pending jobs (7, ...) left out: BeginTime', ('7', '8'))
    """

    __slots__ = ("jobs",)
    jobs: tuple[str, ...]

    @classmethod
    def about(cls, jobs: Iterable[str], text: str) -> Self:
        """Return the note of a text on these jobs."""
        note = cls(text)
        note.jobs = tuple(jobs)
        return note


def why_left_out(job: str, notes: Iterable[str]) -> str | None:
    """Return the note that tells why a job is not in the request, None where no note is about it."""
    return next((str(note) for note in notes if isinstance(note, LeftOutNote) and job in note.jobs), None)
