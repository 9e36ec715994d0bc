"""Frozen, checked data: everything that comes in or goes out."""

from kant_opt.schema.base import NODE_LEVEL, SCHEMA_VERSION, Frozen
from kant_opt.schema.cluster import Allocation, Hold, Queue, Quota, Reservation, Zone
from kant_opt.schema.document import DOCUMENTS, json_schema, parse, to_json
from kant_opt.schema.fabric import FabricSpec, Link, Switch, Taint, Toleration
from kant_opt.schema.job import Apart, Job, JobGroup, PodSet, Slice, Spread, Together
from kant_opt.schema.node import Gpu, Node
from kant_opt.schema.objective import Limits, Objective, TermName
from kant_opt.schema.outcome import (
    CauseCount,
    Certificate,
    Flag,
    LevelFit,
    LevelValue,
    Outcome,
    QuotaRaise,
    Reason,
    ReasonKind,
    Relaxation,
    RentMarket,
    RentTable,
    RunRecord,
    Status,
)
from kant_opt.schema.placement import PlacedJob, PlacedPods, Placement
from kant_opt.schema.plan import Eviction, Plan, PlanChange, PlanDiff, PlannedJob, UnplannedJob, Wait
from kant_opt.schema.request import Request

__all__ = [
    "DOCUMENTS",
    "NODE_LEVEL",
    "SCHEMA_VERSION",
    "Allocation",
    "Apart",
    "CauseCount",
    "Certificate",
    "Eviction",
    "FabricSpec",
    "Flag",
    "Frozen",
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
    "ReasonKind",
    "Relaxation",
    "RentMarket",
    "RentTable",
    "Request",
    "Reservation",
    "RunRecord",
    "Slice",
    "Spread",
    "Status",
    "Switch",
    "Taint",
    "TermName",
    "Together",
    "Toleration",
    "UnplannedJob",
    "Wait",
    "Zone",
    "json_schema",
    "parse",
    "to_json",
]
