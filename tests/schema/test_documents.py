"""Documents: told in sentences where wrong, the same after a round trip, frozen."""

from __future__ import annotations

import doctest
import importlib
import json
import pkgutil
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kant_opt.schema
from kant_opt.errors import InputError, UnknownName
from kant_opt.schema import LevelValue, Node, Placement, Request, Taint, Toleration, parse, to_json


def request(**parts: Any) -> dict[str, Any]:
    return {"nodes": [{"name": "n1", "path": ["l1"], "gpus": 8}], "fabric": {"levels": ["leaf"]}} | parts


def job(**parts: Any) -> dict[str, Any]:
    return {"name": "j", "podsets": [{"count": 2, "gpus": 1}]} | parts


def podset(**parts: Any) -> list[dict[str, Any]]:
    return [job(podsets=[{"count": 4, **parts}])]


def hold(**parts: Any) -> dict[str, Any]:
    return {"allocations": [{"job": "a", "holds": [{"node": "n1", **parts}]}]}


WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    # fabric and nodes
    "level 'node' listed": ({"fabric": {"levels": ["node"]}, "nodes": []}, ("'node' is implied", "leave it out")),
    "level twice": ({"fabric": {"levels": ["a", "a"]}, "nodes": []}, ("two levels are called 'a'",)),
    "path too long": ({"nodes": [{"name": "n", "path": ["a", "b"]}]}, ("nodes.0.path", "2 path entries for 1")),
    "path in a graph": (
        {"fabric": {"switches": [{"name": "s"}]}, "nodes": [{"name": "n", "path": ["a"]}]},
        ("nodes.0.path", "though the fabric is a graph", "leave `path` empty"),
    ),
    "link to nowhere": (
        {"fabric": {"switches": [{"name": "s"}], "links": [{"a": "s", "b": "x"}]}, "nodes": []},
        ("fabric.links.0", "'x' is neither a switch nor a node"),
    ),
    "link between two without switches": (
        {"fabric": {"levels": ["leaf"], "links": [{"a": "x", "b": "y"}]}},
        ("fabric", "need `switches`"),
    ),
    "switch twice": ({"fabric": {"switches": [{"name": "s"}, {"name": "s"}]}, "nodes": []}, ("two switchs",)),
    "GPU index beyond": (
        {"nodes": [{"name": "n", "path": [None], "gpus": 2, "gpu_details": [{"index": 2}]}]},
        ("nodes.0", "GPU index 2 with 2 GPUs"),
    ),
    "GPU twice": (
        {"nodes": [{"name": "n", "path": [None], "gpus": 2, "gpu_details": [{"index": 1}, {"index": 1}]}]},
        ("index occurs twice",),
    ),
    "no pools": ({"nodes": [{"name": "n", "path": [None], "pools": []}]}, ("pools is empty", "leave it out")),
    # what runs
    "share and whole GPUs held": (hold(gpus=1, gpu_milli=500, gpu_indices=[0]), ("a share names its one GPU",)),
    "share of an unnamed GPU": (hold(gpu_milli=500), ("a share names its one GPU in gpu_indices",)),
    "share in two units": (hold(gpu_milli=5, gpu_memory_mib=5, gpu_indices=[0]), ("thousandths or in MiB, not both",)),
    "indices of another number": (hold(gpus=3, gpu_indices=[0, 1]), ("2 indices for 3 GPUs",)),
    "index twice": (hold(gpus=2, gpu_indices=[1, 1]), ("a GPU index occurs twice",)),
    "backward window": (
        {"reservations": [{"name": "r", "nodes": ["n1"], "start_s": 5, "end_s": 5}]},
        ("reservations.0", "end 5 is not after start 5"),
    ),
    "reservation elsewhere": (
        {"reservations": [{"name": "r", "nodes": ["n2"], "start_s": 5}]},
        ("reservations.0.nodes", "unknown node 'n2'"),
    ),
    "limit below guarantee": (
        {"queues": [{"name": "q", "quotas": [{"guaranteed": 4, "limit": 3}]}]},
        ("queues.0", "limit 3 is below the guaranteed 4"),
    ),
    "quota twice": ({"queues": [{"name": "q", "quotas": [{}, {}]}]}, ("two quota of queue 'q's", "'gpu/'")),
    "allocation twice": (
        {"allocations": [{"job": "a", "holds": []}, {"job": "a", "holds": []}]},
        ("two allocations are called 'a'",),
    ),
    # what waits
    "no podset": ({"jobs": [job(podsets=[])]}, ("jobs.0", "job 'j' has no podset")),
    "podset twice": ({"jobs": [job(podsets=[{"count": 1}, {"count": 1}])]}, ("are called 'main'",)),
    "two kinds of share": ({"jobs": podset(gpu_milli=5, gpu_memory_mib=5)}, ("gpu_milli and gpu_memory_mib",)),
    "more finished than there are": ({"jobs": podset(finished=5)}, ("5 pods finished of 4",)),
    "more needed than there are": ({"jobs": podset(min_count=5)}, ("min_count 5 exceeds count 4",)),
    "slices that do not divide": ({"jobs": podset(slices=[{"level": "leaf", "size": 3}])}, ("slices of 3", "of 4")),
    "inner slices that do not divide": (
        {"jobs": podset(count=6, slices=[{"level": "leaf", "size": 3}, {"level": "node", "size": 2}])},
        ("slices of 2 on level 'node'", "outer slice of 3"),
    ),
    "slices inside out": (
        {"jobs": podset(slices=[{"level": "node", "size": 4}, {"level": "leaf", "size": 2}])},
        ("from outer to inner",),
    ),
    "slice outside its domain": (
        {"jobs": podset(required_level="node", slices=[{"level": "leaf", "size": 2}])},
        ("'leaf' lies outside the required level 'node'",),
    ),
    "balance without a wish": ({"jobs": podset(balance=True)}, ("balance needs a preferred_level",)),
    "together with nobody": (
        {"jobs": [job(together=[{"level": "leaf", "podsets": ["mian"]}])]},
        ("'mian'", "did you mean 'main'"),
    ),
    "apart from nobody": ({"jobs": [job(apart=[{"level": "leaf"}])]}, ("needs two podsets or one job",)),
    "apart from itself": ({"jobs": [job(apart=[{"level": "leaf", "jobs": ["j"]}])]}, ("apart from itself",)),
    "apart from a stranger": ({"jobs": [job(apart=[{"level": "leaf", "jobs": ["k"]}])]}, ("'k'", "known: j")),
    "after itself": ({"jobs": [job(after=["j"])]}, ("after itself",)),
    "after a stranger": ({"jobs": [job(after=["k"])]}, ("job to start after ('j') 'k'", "known: j")),
    "after one another": (
        {"jobs": [job(after=["k"]), job(name="k", after=["j"])]},
        ("jobs wait for one another", "'j' after 'k' after 'j'"),
    ),
    "unknown queue": ({"jobs": [job(queue="x")], "queues": [{"name": "q"}]}, ("queue of job 'j' 'x'", "known: q")),
    "group with a stranger": ({"groups": [{"name": "g", "jobs": ["x"]}]}, ("job in group 'g' 'x'", "known: none")),
    "group on no level": (
        {"jobs": [job()], "groups": [{"name": "g", "jobs": ["j"], "together_level": "x"}]},
        ("groups.0", "unknown level 'x'"),
    ),
    "toleration of nothing": ({"jobs": podset(tolerations=[{"value": "x"}])}, ("without key needs operator 'Exists'",)),
    # what is wanted
    "no order, no weights": ({"objective": {"order": []}}, ("needs an order of terms or weights",)),
    "term twice": ({"objective": {"order": ["moves", "moves"]}}, ("two objective terms are called 'moves'",)),
    "weight of no level": ({"objective": {"traffic_weights": {"x": 1}}}, ("level 'x'", "known: leaf, node")),
}
for _place in ("required_level", "preferred_level"):
    WRONG[f"unknown {_place}"] = ({"jobs": podset(**{_place: "rack"})}, ("jobs.0.podsets.0", "unknown level 'rack'"))
for _rule in ({"together": [{"level": "x"}]}, {"exclusive_level": "x"}):
    WRONG[f"unknown level in {next(iter(_rule))}"] = ({"jobs": [job(**_rule)]}, ("jobs.0", "unknown level 'x'"))


@pytest.mark.parametrize(("parts", "words"), WRONG.values(), ids=WRONG)
def test_wrong_documents_are_told_in_one_sentence(parts: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        parse(Request, request(**parts), place="r.json")
    text = str(caught.value)
    assert text.startswith("r.json: ")
    assert "\n" not in text
    for word in words:
        assert word in text


def test_the_neighbours_of_the_wrong_ones_are_right() -> None:
    """Each rule from its good side, so that a rule that always fires would be seen."""
    for parts in (
        {},
        hold(gpu_milli=500, gpu_indices=[0]),
        hold(gpus=2, gpu_indices=[0, 1]),
        {"reservations": [{"name": "r", "nodes": ["n1"], "start_s": 5, "end_s": 6}]},
        {"queues": [{"name": "q", "quotas": [{"guaranteed": 4, "limit": 4}, {"pool": "x"}]}], "jobs": [job(queue="q")]},
        {"jobs": podset(finished=4, min_count=4)},
        {"jobs": podset(required_level="leaf", slices=[{"level": "leaf", "size": 4}, {"level": "node", "size": 2}])},
        {"jobs": [job(apart=[{"level": "leaf", "jobs": ["old"]}])], "allocations": [{"job": "old", "holds": []}]},
        {"jobs": [job(queue="anything")]},  # without queues any name will do
    ):
        parse(Request, request(**parts))


def test_of_many_faults_three_are_told_and_the_rest_counted() -> None:
    nodes = [{"name": f"n{i}", "gpus": -1} for i in range(5)]
    with pytest.raises(InputError) as caught:
        parse(Request, {"nodes": nodes})
    text = str(caught.value)
    assert all(f"nodes.{i}.gpus" in text for i in range(3))
    assert "nodes.3" not in text
    assert text.endswith("and 2 more faults")


def test_an_unknown_name_stays_one_where_it_is_raised_at_the_top() -> None:
    with pytest.raises(InputError, match="did you mean 'leaf'"):
        parse(Request, request(jobs=podset(required_level="leav")))
    assert issubclass(UnknownName, InputError)


@pytest.mark.parametrize("value", [True, 8.0, "8", 8.5, None, [8]])
def test_whole_numbers_are_whole_numbers(value: object) -> None:
    with pytest.raises(InputError, match=r"gpus"):
        parse(Node, {"name": "n", "gpus": value})


def test_a_long_value_is_cut_in_the_sentence() -> None:
    with pytest.raises(InputError) as caught:
        parse(Node, {"name": "n", "gpus": "x" * 10_000})
    assert len(str(caught.value)) < 200


def test_documents_are_frozen() -> None:
    node = Node(name="n")
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        node.gpus = 3  # type: ignore[misc]  # that it is refused is what is tested


def test_defaults_are_left_out_but_the_schema_number_is_not() -> None:
    assert json.loads(to_json(Placement())) == {"schema": 1}
    assert json.loads(to_json(parse(Request, request()))) == {"schema": 1, **request()}
    assert to_json(Node(name="é")) == '{"name":"é"}'


def test_one_value_may_stand_for_a_list_of_one() -> None:
    short, long = (
        parse(Request, request(jobs=podset(selector={"zone": v}), inference_zone={"selector": {"zone": v}}))
        for v in ("a", ["a"])
    )
    assert short == long


def test_healthy_gpus() -> None:
    node = parse(Node, {"name": "n", "gpus": 8, "gpu_details": [{"index": 1, "healthy": False}, {"index": 2}]})
    assert node.healthy_gpus == 7


TEXTS = st.sampled_from(["", "a", "b"])
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])


@settings(deadline=None, derandomize=True, max_examples=300)
@given(TEXTS, TEXTS, st.sampled_from(["Equal", "Exists"]), st.just("") | EFFECTS, TEXTS.filter(bool), TEXTS, EFFECTS)
def test_tolerations_cover_as_kubernetes_says(
    key: str, value: str, operator: str, effect: str, taint_key: str, taint_value: str, taint_effect: str
) -> None:
    """The rule in Kubernetes' words, written once more: effect empty or equal, key empty or equal, then by operator."""
    if not key and operator == "Equal":
        with pytest.raises(InputError):
            parse(Toleration, {"value": value, "effect": effect})
        return
    toleration = Toleration(key=key, operator=operator, value=value, effect=effect)
    taint = Taint(key=taint_key, value=taint_value, effect=taint_effect)
    wanted = effect in ("", taint_effect) and key in ("", taint_key) and (operator == "Exists" or value == taint_value)
    assert toleration.covers(taint) == wanted


@pytest.mark.parametrize(
    ("value", "bound", "gap", "relative"), [(3, 3, 0, 0.0), (4, 3, 1, 0.25), (0, -1, 1, 1.0), (5, None, None, None)]
)
def test_gaps(value: int, bound: int | None, gap: int | None, relative: float | None) -> None:
    level = LevelValue(name="traffic", sense="min", value=value, bound=bound)
    assert (level.gap, level.relative_gap, level.proven) == (gap, relative, gap == 0)


def test_examples_in_the_docstrings() -> None:
    for module in pkgutil.iter_modules(kant_opt.schema.__path__, "kant_opt.schema."):
        assert doctest.testmod(importlib.import_module(module.name)).failed == 0
