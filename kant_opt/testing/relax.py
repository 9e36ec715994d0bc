"""A request less one of its rules: for what looks at jobs one by one, or breaks hardly more than that rule."""

from __future__ import annotations

from typing import Any

from kant_opt.schema import Request

_PODSET: dict[str, dict[str, Any]] = {
    "gang": {"min_count": 1},
    "eligible": {"pools": (), "selector": {}, "nodes": (), "not_nodes": ()},
    "required_level": {"required_level": None},
    "slice": {"slices": ()},
    "spread": {"spread": ()},
}
_JOB: dict[str, dict[str, Any]] = {"together": {"together": ()}, "apart": {"apart": (), "exclusive_level": None}}
_NODE: dict[str, dict[str, Any]] = {"eligible": {"schedulable": True, "taints": ()}}
_GROUP: dict[str, dict[str, Any]] = {"gang": {"all_or_none": False}, "together": {"together_level": None}}
_ALLOCATION: dict[str, dict[str, Any]] = {"apart": {"exclusive_level": None}}
_FABRIC: dict[str, dict[str, Any]] = {"together": {"separate_roots": False}}
_REQUEST: dict[str, dict[str, Any]] = {"quota": {"queues": ()}, "window": {"reservations": ()}}

RELAXABLE = tuple(sorted({*_PODSET, *_JOB, *_NODE, *_REQUEST}))
"""Every rule but capacity, without which there would be no end of placements."""


def without_rule(request: Request, rule: str) -> Request:
    """Return the request without what the rule stands on; nodes, jobs and what runs keep their names and sizes."""
    jobs = (
        job.model_copy(
            update={
                "podsets": tuple(p.model_copy(update=_PODSET.get(rule, {})) for p in job.podsets),
                **_JOB.get(rule, {}),
            }
        )
        for job in request.jobs
    )
    return request.model_copy(
        update={
            "fabric": request.fabric.model_copy(update=_FABRIC.get(rule, {})),
            "nodes": tuple(n.model_copy(update=_NODE.get(rule, {})) for n in request.nodes),
            "jobs": tuple(jobs),
            "groups": tuple(g.model_copy(update=_GROUP.get(rule, {})) for g in request.groups),
            "allocations": tuple(a.model_copy(update=_ALLOCATION.get(rule, {})) for a in request.allocations),
            **_REQUEST.get(rule, {}),
        }
    )


def without_groups(request: Request) -> Request:
    """Return the request with no group that is to be admitted as a whole: what is left holds for parts too."""
    return request.model_copy(
        update={"groups": tuple(g.model_copy(update={"all_or_none": False}) for g in request.groups)}
    )
