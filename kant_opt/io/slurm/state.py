"""What the states of nodes and jobs mean for placement."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SUFFIX = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "%": "POWERING_DOWN", "$": "MAINTENANCE"} | {
    "^": "REBOOT_ISSUED"
}
_ALIAS = {
    "MAINT": "MAINTENANCE",
    "NO_RESPOND": "NOT_RESPONDING",
    "DRAINED": "DRAIN",
    "DRAINING": "DRAIN",
    "FAILING": "FAIL",
    "POWER_UP": "POWERING_UP",
    "POWERED_OFF": "POWERED_DOWN",
    "POWER": "POWERED_DOWN",
    "POWER_DOWN": "POWERING_DOWN",
    "POWER_DRAIN": "DRAIN",
}
_CLOSED = frozenset(
    (
        *("DOWN", "ERROR", "UNKNOWN", "FUTURE", "DRAIN", "FAIL", "MAINTENANCE"),
        *("INVALID", "INVALID_REG", "POWERING_DOWN", "REBOOT_ISSUED"),
    )
)
_WORD = re.compile(r"[A-Za-z_]+|[*~#%$^]")

HOLDING = frozenset(
    (
        *("RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"),
        "POWER_UP_NODE",
    )
)
"""States of a job that holds its nodes."""

_NOT_NOW = frozenset(
    (
        *("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "Dependency", "DependencyNeverSatisfied", "BeginTime"),
        *("BadConstraints", "Cleaning", "Licenses", "PartitionDown", "PartitionInactive", "DeadLine", "InvalidAccount"),
        *("InvalidQOS", "AccountNotAllowed", "QOSNotAllowed", "JobArrayTaskLimit", "FedJobLock"),
    )
)
_LIMIT = re.compile(r"(?:Assoc|QOS|MaxJobs|Max.*Per)(?!.*NotAllowed)")


def node_states(*values: object) -> frozenset[str]:
    """Return the state words of a node in capitals and under one name each, from texts or lists of them.

    >>> sorted(node_states("IDLE*+DRAIN")), sorted(node_states("mixed", ["CLOUD", "MAINT"]))
    (['DRAIN', 'IDLE', 'NOT_RESPONDING'], ['CLOUD', 'MAINTENANCE', 'MIXED'])
    """
    found = set()
    for value in values:
        for text in [value] if isinstance(value, str) else value if isinstance(value, Iterable) else ():
            for word in _WORD.findall(text) if isinstance(text, str) else ():
                name = _SUFFIX.get(word, word.upper())
                found.add(_ALIAS.get(name, name))
    return frozenset(found)


def closing_states(states: frozenset[str]) -> list[str]:
    """Return the states for which a node takes no new jobs, sorted; empty: it takes them.

    A node of a cloud that is powered down or powering up takes jobs: Slurm resumes it for them, and until it is there
    it does not respond. Without the flag CLOUD, powered down is taken as switched off; a node that does not respond
    and is not powering up is lost.
    """
    closing = set(states & _CLOSED)
    coming = "CLOUD" in states or "POWERING_UP" in states
    closing |= {s for s in ("NOT_RESPONDING", "POWERED_DOWN") if s in states and not coming}
    return sorted(closing)


def job_states(value: object) -> frozenset[str]:
    """Return the state words of a job in capitals, from a text or a list."""
    if isinstance(value, str):
        value = [value]
    return frozenset(v.upper() for v in value if isinstance(v, str)) if isinstance(value, list) else frozenset()


def keeps_waiting(reason: str | None) -> bool:
    """Return whether a job with this reason could not start now whatever room there was: held, too early, limited."""
    return reason is not None and (reason in _NOT_NOW or bool(_LIMIT.match(reason)))
