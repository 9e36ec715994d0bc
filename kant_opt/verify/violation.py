"""What a broken rule says, and the registry of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kant_opt.registry import Registry
from kant_opt.verify.state import State


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule broken once: `subject` is the job, job/podset, node, group or queue; `text` has names and numbers."""

    rule: str
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.text}"


Finding = tuple[str, str]
"""(subject, text) of one violation; the registry adds the rule's name."""

Check = Callable[[State], Iterator[Finding]]

RULES: Registry[Check] = Registry("rule")
"""Rule name -> the generator that finds what breaks it. The names are those of `models/README.md`."""

rule = RULES.register
