"""The other commands: verify, explain, convert, schema, backends, fabric."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from typer.testing import Result

from kant_opt.backends import BACKENDS
from kant_opt.cli.backends import SUMMARIES
from kant_opt.engine import place
from kant_opt.fabric import list_topologies, load_topology
from kant_opt.io import read_request, save
from kant_opt.planning import plan
from kant_opt.schema import (
    DOCUMENTS,
    Allocation,
    Certificate,
    FabricSpec,
    Hold,
    Job,
    Node,
    Outcome,
    PlacedJob,
    PlacedPods,
    Placement,
    Plan,
    PodSet,
    RentMarket,
    RentTable,
    Request,
    RunRecord,
    to_json,
)
from kant_opt.testing.builders import gang, placement, racks
from kant_opt.verify import PLAN_RULES, RULES

Run = Callable[..., Result]


# -- verify ----------------------------------------------------------------------------------------


def test_verify_accepts_a_placement_and_an_outcome(run: Run, request_file: Path, tmp_path: Path) -> None:
    request, _ = read_request(request_file)
    outcome = place(request)
    assert outcome.placement is not None
    save(outcome, tmp_path / "outcome.json")
    save(outcome.placement, tmp_path / "placement.json")
    for name in ("outcome.json", "placement.json"):
        result = run("verify", request_file, tmp_path / name)
        assert result.exit_code == 0
        assert "valid: 2 gangs with 5 pods" in result.stdout


def test_verify_lists_one_violation_a_line(run: Run, request_file: Path, tmp_path: Path) -> None:
    # n7 is full, so both pods are too many there; and two pods of three are not the gang.
    pods = (PlacedPods(node="n7"), PlacedPods(node="n6"))
    save(Placement(jobs=(PlacedJob(job="three", pods=pods),)), tmp_path / "bad.json")
    result = run("verify", request_file, tmp_path / "bad.json", columns=40)
    *lines, last = result.stdout.splitlines()
    assert result.exit_code == 1
    assert sorted(line.split(":")[0] for line in lines) == ["capacity", "gang"]
    assert last == "not valid: 2 violations in 1 gang with 2 pods"


def test_verify_accepts_a_plan(run: Run, tmp_path: Path) -> None:
    """Two gangs that need the one node one after another, and one that is too wide for it; then both at once."""
    jobs = [gang("a", 1, 8, walltime_s=60), gang("b", 1, 8, walltime_s=60), gang("wide", 2, 8, walltime_s=60)]
    request = racks("8", jobs=jobs)
    save(request, tmp_path / "request.json")
    assert run("plan", tmp_path / "request.json", "-q", "--json", tmp_path / "plan.json").exit_code == 1
    result = run("verify", tmp_path / "request.json", tmp_path / "plan.json")
    rules = len(RULES) + len(PLAN_RULES)
    assert (result.exit_code, result.stdout) == (
        0,
        f"valid: 2 runs and 1 gang without a start keep all {rules} rules\n",
    )
    found = plan(request)
    at_once = tuple(run.model_copy(update={"start_s": 0, "end_s": 60}) for run in found.jobs)
    (tmp_path / "plan.json").write_text(to_json(found.model_copy(update={"jobs": at_once})), encoding="utf-8")
    result = run("verify", tmp_path / "request.json", tmp_path / "plan.json")
    assert result.exit_code == 1
    assert result.stdout.startswith("capacity: ")
    assert run("verify", tmp_path / "request.json", tmp_path / "plan.json", "--certificate").exit_code == 1


def test_verify_with_certificate(run: Run, tmp_path: Path) -> None:
    """Three gangs of 2 on two racks of 3: 3 is no sum of twos, so one gang is cut."""
    request = racks("8,8,8|8,8,8", jobs=[gang(f"j{i}", 2, 8) for i in range(3)])
    at = placement(j0={"r1n1": 1, "r1n2": 1}, j1={"r2n1": 1, "r2n2": 1}, j2={"r1n3": 1, "r2n3": 1})
    market = RentMarket(jobs=("j0", "j1", "j2"), tables=(RentTable(rents=(0, 0, 1, 1)),))
    save(request, tmp_path / "request.json")
    save(at, tmp_path / "placement.json")
    for bound in (1, 2):
        certificate = Certificate(scale=1, markets=(market,), bound=bound)
        outcome = Outcome(status="FEASIBLE", placement=at, certificate=certificate, run=RunRecord(backend="hand"))
        save(outcome, tmp_path / f"claims-{bound}.json")

    def ends(name: str) -> tuple[int, list[str]]:
        result = run("verify", tmp_path / "request.json", tmp_path / name, "--certificate")
        return result.exit_code, result.stdout.splitlines()[1:]

    holds = "certificate holds: traffic is at least 1 for any placement of these 3 gangs (checked in whole numbers)"
    assert ends("claims-1.json") == (0, [holds])
    fault = "certificate: these rents prove a traffic of 1, not of 2"
    assert ends("claims-2.json") == (1, [fault, "certificate does not hold: 1 fault"])
    code, (told,) = ends("placement.json")
    assert (code, told.split(":")[0]) == (1, "no certificate")


# -- explain ---------------------------------------------------------------------------------------


def test_explain_a_job_that_is_not_placed(run: Run, request_file: Path) -> None:
    result = run("explain", request_file, "huge")
    assert result.exit_code == 1
    assert "impossible" in result.stdout
    best = {
        words[0]: words[-3:] for line in result.stdout.splitlines() if (words := line.split()) and words[-1] == "pods"
    }
    assert best == {"spine": ["4", "9", "pods"], "leaf": ["2", "9", "pods"], "node": ["1", "9", "pods"]}
    assert "8   in all" in result.stdout  # the causes add up to the nodes


def test_explain_tells_what_would_let_a_job_in(run: Run, tmp_path: Path) -> None:
    """n0 and n1 are full by `a` and `b`; n2 is closed: two pods of a whole node need two of these three."""
    nodes = tuple(Node(name=f"n{i}", path=("r",), gpus=4, schedulable=i < 2) for i in range(3))
    held = tuple(Allocation(job=name, holds=(Hold(node=f"n{i}", gpus=4),)) for i, name in enumerate("ab"))
    gang = Job(name="j", podsets=(PodSet(count=2, gpus=4),))
    save(Request(fabric=FabricSpec(levels=("rack",)), nodes=nodes, allocations=held, jobs=(gang,)), tmp_path / "r.json")
    result = run("explain", tmp_path / "r.json", "j")
    assert result.exit_code == 1
    _, _, told = result.stdout.partition("Each of these alone would let it in, on the cluster after this placement\n")
    assert told.splitlines() == [
        "  2 jobs leave: 'a', 'b' (proven minimal)",
        "  free 2 nodes of what runs there: n0, n1 (proven minimal)",
    ]


def test_explain_says_that_nothing_would_let_a_job_in(run: Run, tmp_path: Path) -> None:
    nodes = (Node(name="n", gpus=4),)
    save(Request(nodes=nodes, jobs=(Job(name="j", podsets=(PodSet(count=1, gpus=8),)),)), tmp_path / "r.json")
    assert run("explain", tmp_path / "r.json", "j").stdout.endswith("none that was tried\n")


def test_explain_a_job_that_the_reader_left_out(run: Run, tmp_path: Path) -> None:
    """Eight jobs are held, of which the note names five: the eighth is explained all the same."""
    held = {"job_state": ["PENDING"], "state_reason": "JobHeldUser", "priority": 5, "node_count": 1, "cpus": 1}
    jobs = [{"job_id": i, "submit_time": 10, "eligible_time": 10, **held} for i in range(1, 9)]
    nodes = [{"name": "n1", "state": ["IDLE"], "gres": "gpu:8", "cpus": 8, "real_memory": 1000}]
    document = {"nodes": nodes, "jobs": jobs, "last_update": 20, "meta": {"slurm": {}}}
    (tmp_path / "state.json").write_text(json.dumps(document))
    result = run("explain", tmp_path / "state.json", "8")
    assert result.exit_code == 1
    words = " ".join(result.stdout.split())
    assert words == (
        "8 is not placed the reader left it out of the request: "
        "8 pending jobs (1, 2, 3, 4, 5, ...) left out: JobHeldUser"
    )
    assert run("explain", tmp_path / "state.json", "9").exit_code == 2


def test_explain_a_job_that_is_placed(run: Run, request_file: Path) -> None:
    result = run("explain", request_file, "three")
    assert result.exit_code == 0
    assert "3 pods on 3 nodes" in result.stdout
    rows = {words[0]: words[1:3] for line in result.stdout.splitlines() if len(words := line.split()) == 4}
    # Three nodes, two a leaf: two leaves are used and the least.
    assert [rows[level] for level in ("spine", "leaf", "node")] == [["1", "1"], ["2", "2"], ["3", "3"]]


def test_explain_a_job_that_runs(run: Run, request_file: Path) -> None:
    result = run("explain", request_file, "run")
    assert result.exit_code == 0
    assert "run runs\n1 pod on 1 node: n7\nspine: b\nleaf: b1\n" in result.stdout


# -- convert ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["r.json", "r.yaml", "r.yml", "r.json.gz", "r.yaml.gz"])
def test_convert_comes_back_equal(run: Run, request_file: Path, tmp_path: Path, two_by_two: Request, name: str) -> None:
    assert run("convert", request_file, tmp_path / name).exit_code == 0
    assert read_request(tmp_path / name) == (two_by_two, ())
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text.startswith("{") == (".json" in name), "YAML is written as YAML, not as JSON under its name"


def test_convert_keeps_an_existing_file(run: Run, request_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("mine")
    result = run("convert", request_file, out)
    assert result.exit_code == 2
    assert out.read_text() == "mine"
    assert run("convert", request_file, out, "--force").exit_code == 0
    assert out.read_text() != "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "request.json"], "no temporary file stays"


def test_convert_says_what_it_left_out(run: Run, shared: Path, tmp_path: Path) -> None:
    result = run("convert", shared / "slurm_live", tmp_path / "live.json.gz")
    request, notes = read_request(shared / "slurm_live")
    assert notes
    assert all(note in result.stdout for note in notes)
    assert to_json(read_request(tmp_path / "live.json.gz")[0]) == to_json(request)


# -- schema, backends ------------------------------------------------------------------------------


NOBODY = Plan(status="OPTIMAL", policy="fifo", order="fifo", now_s=0, run=RunRecord(backend="planning"))


@pytest.mark.parametrize("kind", sorted(DOCUMENTS))
def test_schema_is_a_schema_that_our_documents_meet(run: Run, kind: str, two_by_two: Request) -> None:
    schema = json.loads(run("schema", kind).stdout)
    Draft202012Validator.check_schema(schema)
    outcome = place(two_by_two)
    document = {"request": two_by_two, "outcome": outcome, "placement": outcome.placement, "plan": NOBODY}[kind]
    assert document is not None
    Draft202012Validator(schema).validate(json.loads(to_json(document)))
    assert not Draft202012Validator(schema).is_valid({"schema": 1, "nonsense": 1})


def test_every_backend_is_listed_with_what_it_does(run: Run) -> None:
    assert set(SUMMARIES) >= set(BACKENDS), "a backend without a line of its own"
    shown = run("backends").stdout
    assert all(f"  {name} " in shown for name in BACKENDS)


# -- fabric ----------------------------------------------------------------------------------------


def test_fabric_list_counts_the_shipped_fabrics(run: Run) -> None:
    rows = {words[0]: words[1:3] for line in run("fabric", "list").stdout.splitlines() if (words := line.split())}
    for name in list_topologies():
        _, nodes = load_topology(name)
        assert rows[name] == [f"{len(nodes):,}", f"{sum(n.gpus for n in nodes):,}"]


def test_fabric_show_tells_occupancy(run: Run, request_file: Path) -> None:
    shown = run("fabric", "show", request_file).stdout
    rows = {" ".join(words[:-5]): words[-5:-1] for line in shown.splitlines() if len(words := line.split()) > 5}
    # n7 on b/b1 is full. Spine a: both leaves alike and empty.
    assert rows["a"] == ["4", "32", "/", "32"]
    assert rows["└─ 2 x a[0-1]"] == ["2", "16", "/", "16"]
    assert rows["b"] == ["4", "24", "/", "32"]
    assert rows["├─ b0"] == ["2", "16", "/", "16"]
    assert rows["└─ b1"] == ["2", "8", "/", "16"]
    assert rows["all"] == ["8", "56", "/", "64"]
    assert "b1" not in run("fabric", "show", request_file, "--levels", 1).stdout
    assert "n7" in run("fabric", "show", request_file, "--levels", 3).stdout


def test_fabric_show_sees_what_is_broken_closed_degraded_and_uneven(run: Run, tmp_path: Path) -> None:
    nodes = [Node(name=f"n{i}", path=(f"leaf-{i // 2}",), gpus=8, schedulable=i != 0) for i in range(7)]
    request = Request(
        fabric=FabricSpec(levels=("leaf",)),
        nodes=tuple(nodes),
        allocations=(Allocation(job="part", holds=(Hold(node="n2", gpus=3),)),),
    )
    save(request, tmp_path / "r.json")
    lines = {
        words[0]: words[1:]
        for line in run("fabric", "show", tmp_path / "r.json").stdout.splitlines()
        if (words := line.split())
    }
    assert lines["leaf-0"] == ["2", "8", "/", "8", "··········", "1"]  # one node closed: its GPUs are not on offer
    assert lines["leaf-1"] == ["2", "13", "/", "16", "██········", "1"]  # 3 of 16 used, one node in part
    assert lines["leaf-3"][:4] == ["1", "8", "/", "8"]
    assert " ".join(lines["leaf-3"]).endswith("fewer nodes than most (2)")
    degraded = run("fabric", "show", "degraded-leaves-64").stdout
    assert degraded.count("of 3,200 Gbit/s") == 2, "the file says that two leaves have lost uplinks"


def test_fabric_show_is_bounded_on_large_fabrics(run: Run, tmp_path: Path) -> None:
    # 120 leaves under 3 spines, no two leaves of a spine alike: leaf k of each holds k + 1 nodes.
    nodes = tuple(
        Node(name=f"n{s}-{k}-{i}", path=(f"s{s}", f"l{k}"), gpus=s + 1)
        for s in range(3)
        for k in range(40)
        for i in range(k + 1)
    )
    save(Request(fabric=FabricSpec(levels=("spine", "leaf")), nodes=nodes), tmp_path / "large.json")
    by_itself = run("fabric", "show", tmp_path / "large.json").stdout.splitlines()
    assert len(by_itself) < 20, "leaves do not fit: the spines alone are drawn"
    asked = run("fabric", "show", tmp_path / "large.json", "--levels", 2).stdout
    assert len(asked.splitlines()) < 70
    assert "... and 73 more" in asked  # 3 spines and 120 leaves are 123 lines
    assert len(run("fabric", "show", tmp_path / "large.json", "--levels", 2, "--all").stdout.splitlines()) > 123


def test_a_topology_file_is_drawn_like_a_shipped_one(run: Run, root: Path) -> None:
    by_path = run("fabric", "show", root / "topologies" / "uneven-64.toml")
    assert by_path.exit_code == 0
    assert by_path.stdout == run("fabric", "show", "uneven-64").stdout
