"""Gang placement for GPU clusters: verified answers on real fabrics, with a proven bound on each.

Public names load when first used, so that `import kant_opt` is quick and brings in nothing but this file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kant_opt.backends import BACKENDS, Event, Stop
    from kant_opt.engine.place import place
    from kant_opt.engine.relax import relaxations
    from kant_opt.engine.session import Session
    from kant_opt.errors import BackendUnavailable, InputError, KantOptError, UnknownName, WrongAnswer
    from kant_opt.fabric import Fabric, build_fabric, list_topologies, load_topology
    from kant_opt.io import load_placement, read_request, save
    from kant_opt.metrics import Placed, before_and_after, cluster_measures, job_spans, job_stretch, measure
    from kant_opt.planning import ORDERS, POLICIES, Patience
    from kant_opt.planning.plan import plan
    from kant_opt.planning.replan import plan_diff, replan
    from kant_opt.replay import ReplayResult, read_trace
    from kant_opt.replay import replay as replay_trace
    from kant_opt.schema import (
        Allocation,
        Apart,
        CauseCount,
        Certificate,
        Eviction,
        FabricSpec,
        Flag,
        Gpu,
        Hold,
        Job,
        JobGroup,
        LevelFit,
        LevelValue,
        Limits,
        Link,
        Node,
        Objective,
        Outcome,
        PlacedJob,
        PlacedPods,
        Placement,
        Plan,
        PlanChange,
        PlanDiff,
        PlannedJob,
        PodSet,
        Queue,
        Quota,
        QuotaRaise,
        Reason,
        Relaxation,
        RentMarket,
        RentTable,
        Request,
        Reservation,
        RunRecord,
        Slice,
        Spread,
        Switch,
        Taint,
        Together,
        Toleration,
        UnplannedJob,
        Wait,
        Zone,
        json_schema,
        parse,
        to_json,
    )
    from kant_opt.verify import Violation, verify_plan
    from kant_opt.verify import verify as verify_placement

_HOMES = {
    "backends": "BACKENDS Event Stop",
    "engine": "Session place relaxations",
    "errors": "BackendUnavailable InputError KantOptError UnknownName WrongAnswer",
    "fabric": "Fabric build_fabric list_topologies load_topology",
    "io": "load_placement read_request save",
    "metrics": "Placed before_and_after cluster_measures job_spans job_stretch measure",
    "planning": "ORDERS POLICIES Patience plan plan_diff replan",
    "replay": "ReplayResult read_trace replay_trace",
    "schema": "Allocation Apart CauseCount Certificate Eviction FabricSpec Flag Gpu Hold Job JobGroup LevelFit "
    "LevelValue Limits Link Node Objective Outcome PlacedJob PlacedPods Placement Plan PlanChange "
    "PlanDiff PlannedJob PodSet Queue Quota QuotaRaise Reason Relaxation RentMarket RentTable Request "
    "Reservation RunRecord Slice Spread Switch Taint Together Toleration UnplannedJob Wait Zone "
    "json_schema parse to_json",
    "verify": "Violation verify_placement verify_plan",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_OTHER_NAMES = {"verify_placement": "verify", "replay_trace": "replay"}
"""`kant_opt.verify` and `kant_opt.replay` are packages: one name cannot be both."""

__all__ = [  # noqa: RUF022 - by home, as above
    "__version__",
    "BACKENDS",
    "Event",
    "Stop",
    "Session",
    "place",
    "relaxations",
    "BackendUnavailable",
    "InputError",
    "KantOptError",
    "UnknownName",
    "WrongAnswer",
    "Fabric",
    "build_fabric",
    "list_topologies",
    "load_topology",
    "load_placement",
    "read_request",
    "save",
    "Placed",
    "before_and_after",
    "cluster_measures",
    "job_spans",
    "job_stretch",
    "measure",
    "ORDERS",
    "POLICIES",
    "Patience",
    "plan",
    "plan_diff",
    "replan",
    "ReplayResult",
    "read_trace",
    "replay_trace",
    "Allocation",
    "Apart",
    "CauseCount",
    "Certificate",
    "Eviction",
    "FabricSpec",
    "Flag",
    "Gpu",
    "Hold",
    "Job",
    "JobGroup",
    "LevelFit",
    "LevelValue",
    "Limits",
    "Link",
    "Node",
    "Objective",
    "Outcome",
    "PlacedJob",
    "PlacedPods",
    "Placement",
    "Plan",
    "PlanChange",
    "PlanDiff",
    "PlannedJob",
    "PodSet",
    "Queue",
    "Quota",
    "QuotaRaise",
    "Reason",
    "Relaxation",
    "RentMarket",
    "RentTable",
    "Request",
    "Reservation",
    "RunRecord",
    "Slice",
    "Spread",
    "Switch",
    "Taint",
    "Together",
    "Toleration",
    "UnplannedJob",
    "Wait",
    "Zone",
    "json_schema",
    "parse",
    "to_json",
    "Violation",
    "verify_placement",
    "verify_plan",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), _OTHER_NAMES.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
