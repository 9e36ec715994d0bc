"""The JSON Schema says of a document what the types say, as far as JSON Schema can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a package of their own
import pytest

from kant_opt.errors import InputError
from kant_opt.io import read_request
from kant_opt.io.openb import read_pair
from kant_opt.schema import (
    DOCUMENTS,
    LevelValue,
    Outcome,
    PlacedJob,
    PlacedPods,
    Placement,
    Request,
    RunRecord,
    json_schema,
    parse,
    to_json,
)

FULL: dict[str, Any] = {
    "schema": 1,
    "name": "everything",
    "now_s": 1000,
    "fabric": {"levels": ["spine", "leaf"], "separate_roots": True, "links": [{"a": "s1/l1", "gbps": 800, "links": 4}]},
    "nodes": [
        {
            "name": "n1",
            "path": ["s1", "l1"],
            "pools": ["H100", "fast"],
            "gpus": 8,
            "gpu_memory_mib": 81559,
            "gpu_details": [{"index": 0, "healthy": False, "numa": 0, "island": 0, "nic": "mlx5_0"}],
            "cpu_milli": 64000,
            "memory_bytes": 1 << 40,
            "max_pods": 110,
            "labels": {"zone": "a"},
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoExecute"}],
        },
        {"name": "n2", "path": ["s1", None], "gpus": 8, "schedulable": False, "why_closed": "drained"},
    ],
    "allocations": [
        {
            "job": "old",
            "holds": [
                {"node": "n1", "gpus": 2, "gpu_indices": [1, 2]},
                {"node": "n1", "gpu_milli": 500, "gpu_indices": [3]},
            ],
            "since_s": 0,
            "until_s": 5000,
            "movable": True,
            "exclusive_level": "leaf",
        }
    ],
    "reservations": [{"name": "maintenance", "nodes": ["n2"], "start_s": 0, "end_s": 10}],
    "queues": [{"name": "q", "cohort": "c", "quotas": [{"pool": "H100", "guaranteed": 8, "limit": 16}]}],
    "inference_zone": {"nodes": ["n2"], "selector": {"zone": ["a", "b"]}},
    "jobs": [
        {
            "name": "big",
            "queue": "q",
            "priority": -3,
            "kind": "inference",
            "communication": "all_to_all",
            "podsets": [
                {
                    "name": "workers",
                    "count": 8,
                    "min_count": 4,
                    "gpus": 2,
                    "required_level": "spine",
                    "preferred_level": "leaf",
                    "balance": True,
                    "slices": [{"level": "leaf", "size": 4}, {"level": "node", "size": 2}],
                    "spread": [{"level": "node", "max_per_domain": 2}],
                    "selector": {"zone": ["a"]},
                    "tolerations": [{"operator": "Exists"}],
                },
                {"name": "leader", "count": 1, "gpu_memory_mib": 4000, "not_nodes": ["n2"]},
            ],
            "together": [{"level": "spine", "podsets": ["workers", "leader"]}],
            "apart": [{"level": "node", "jobs": ["old"]}],
        }
    ],
    "groups": [{"name": "g", "jobs": ["big"], "together_level": "spine"}],
    "objective": {"order": ["admitted", "traffic"], "traffic_weights": {"spine": 4, "leaf": 1}},
    "limits": {"deadline_ms": 1000, "seed": 7},
}


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema("request"))


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_schemas_are_valid_schemas(kind: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(kind))


def test_a_request_with_every_part_passes_both(validator: jsonschema.Draft202012Validator) -> None:
    request = parse(Request, FULL)
    validator.validate(FULL)
    validator.validate(json.loads(to_json(request)))
    assert parse(Request, json.loads(to_json(request))) == request


def test_every_field_of_a_request_is_in_the_full_example() -> None:
    """So that a field added later is tried above as well."""
    fields = {field.alias or name for name, field in Request.model_fields.items()}
    assert fields == set(FULL)


def test_what_the_readers_give_passes(root: Path, validator: jsonschema.Draft202012Validator) -> None:
    data = root / "tests" / "data"
    requests = [read_request(data / "native" / "good.json")[0]]
    requests += [read_request(data / "kubernetes" / name)[0] for name in ("good.json", "good.yaml")]
    requests += [read_pair(data / "openb" / "good-nodes.csv", data / "openb" / "good-pods.csv")]
    for request in requests:
        validator.validate(json.loads(to_json(request)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("nodez",), []),
        (("nodes", 0, "gpus"), -1),
        (("nodes", 0, "gpus"), 8.5),
        (("nodes", 0, "gpus"), "8"),
        (("nodes", 0, "gpus"), 2000),
        (("nodes", 0, "name"), ""),
        (("nodes", 0, "taints", 0, "effect"), "Never"),
        (("jobs", 0, "kind"), "batch"),
        (("jobs", 0, "podsets", 0, "slices", 0, "size"), 0),
        (("jobs", 0, "podsets", 1, "gpu_memory_mib"), 0),
        (("objective", "order"), ["speed"]),
        (("schema",), 2),
    ],
)
def test_what_the_schema_refuses_the_types_refuse_too(
    validator: jsonschema.Draft202012Validator, place: tuple[str | int, ...], value: object
) -> None:
    broken = json.loads(json.dumps(FULL))
    holder = broken
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    assert not validator.is_valid(broken)
    with pytest.raises(InputError) as caught:
        parse(Request, broken)
    assert ".".join(map(str, place)) in str(caught.value)


def test_placements_and_outcomes_pass() -> None:
    placed = Placement(jobs=(PlacedJob(job="j", pods=(PlacedPods(node="n", count=2, gpus=((0,), (1,))),)),))
    level = LevelValue(name="traffic", sense="min", value=3, bound=2, bound_source="lp")
    outcome = Outcome(status="FEASIBLE", placement=placed, levels=(level,), run=RunRecord(backend="b", seconds=0.5))
    for kind, document in (("placement", placed), ("outcome", outcome)):
        data = json.loads(to_json(document))
        jsonschema.Draft202012Validator(json_schema(kind)).validate(data)
        assert parse(type(document), data) == document
