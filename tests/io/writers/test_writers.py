"""Writers: what they write, read back by other means, is the placement."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from kant_opt.cli.app import app
from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric, leaf_spine, node_link
from kant_opt.fabric.graph import build_graph
from kant_opt.io import save
from kant_opt.io.kubernetes.kueue.assignment import read_assignment
from kant_opt.io.objects import Object
from kant_opt.io.slurm.hostlist import expand
from kant_opt.io.writers import WRITERS, write_placement
from kant_opt.io.writers.kueue import as_domains, as_slices
from kant_opt.io.writers.slurm import fold_hosts
from kant_opt.schema import FabricSpec, Job, Node, PlacedJob, PlacedPods, Placement, PodSet, Request

HOST = "kubernetes.io/hostname"
REQUEST = Request(
    nodes=tuple(Node(name=f"n{i:02}", gpus=8, labels={HOST: f"host-{i}"} if i < 2 else {}) for i in range(12)),
    jobs=(
        Job(name="7", podsets=(PodSet(name="main", count=4, gpus=8),)),
        Job(name="ml/x", podsets=(PodSet(name="a", count=1, gpus=4), PodSet(name="b", count=3, gpus=4))),
    ),
)
PLACEMENT = Placement(
    jobs=(
        PlacedJob(job="7", pods=tuple(PlacedPods(node=f"n{i:02}") for i in (9, 10, 11, 3))),
        PlacedJob(
            job="ml/x",
            pods=(
                PlacedPods(podset="a", node="n00", gpus=((0, 1, 2, 3),)),
                PlacedPods(podset="b", node="n01", count=2, gpus=((0, 1, 2, 3), (4, 5, 6, 7))),
                PlacedPods(podset="b", node="n04", gpus=((4, 5, 6, 7),)),
            ),
        ),
    )
)


def test_slurm_lines() -> None:
    text, notes = write_placement(REQUEST, PLACEMENT, "slurm")
    assert text.splitlines() == [
        "7\t--nodes=4 --nodelist=n[03,09-11]",
        "ml/x\t--nodes=3 --nodelist=n[00-01,04]",
    ]
    assert [n.partition(" ")[0] for n in notes] == ["GPU", "which", "that"]
    assert all("ml/x" in n and "7" not in n.split("(")[1] for n in notes), "job 7 loses nothing"


NAMES = st.one_of(
    st.from_regex(r"(n|gpu-|r1c)[0-9]{1,3}(a|-ib)?", fullmatch=True), st.sampled_from(["login", "a-b", "n0", "n00"])
)


@settings(deadline=None, derandomize=True)
@given(st.sets(NAMES, max_size=12))
def test_hostlists_stand_for_their_names(names: set[str]) -> None:
    """Read by the reader of hostlists, which does not share code with the writer."""
    assert set(expand(fold_hosts(names))) == names


def test_hostlists_are_short() -> None:
    assert fold_hosts(f"n{i:03}" for i in range(1, 121)) == "n[001-120]"
    assert fold_hosts(f"n{i}" for i in range(1, 121)) == "n[1-120]"


HOSTS = st.dictionaries(NAMES, st.integers(1, 3), min_size=1, max_size=8).map(lambda d: list(d.items()))


@settings(deadline=None, derandomize=True)
@given(HOSTS)
def test_assignments_come_back(hosts: list[tuple[str, int]]) -> None:
    """Both forms, in the order of the ranks, by the reader of Workloads."""
    for form in (as_domains, as_slices):
        levels, domains = read_assignment(Object({"levels": [HOST], **form(hosts)}, None, "x"))
        assert levels == (HOST,)
        assert domains == [((host,), count) for host, count in hosts]


def test_slices_write_what_hosts_share_once() -> None:
    assert as_slices([("node-00", 1), ("node-01", 1)]) == {
        "slices": [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"individual": {"prefix": "node-0", "roots": ["0", "1"]}}],
                "podCounts": {"universal": 1},
            }
        ]
    }
    parts = as_slices([("n1", 1), ("n10", 2)])["slices"]
    assert isinstance(parts, list)
    assert parts[0]["valuesPerLevel"] == [{"individual": {"prefix": "n", "roots": ["1", "10"]}}], "no empty root"


@pytest.mark.parametrize("form", ["kueue", "kueue-v1beta1"])
def test_kueue_names_hosts_by_their_label(form: str) -> None:
    text, notes = write_placement(REQUEST, PLACEMENT, form)
    first, second = json.loads(text)
    assert (first["workload"], [a["count"] for a in second["podSetAssignments"]]) == ("7", [1, 3])
    found = read_assignment(Object(second["podSetAssignments"][1]["topologyAssignment"], None, "x"))[1]
    assert found == [(("host-1",), 2), (("n04",), 1)]
    assert len(notes) == 1


def test_tables_hold_every_pod_and_gpu() -> None:
    text, notes = write_placement(REQUEST, PLACEMENT, "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    pods = Counter[tuple[str, str, str]]()
    for row in rows:
        pods[row["job"], row["podset"], row["node"]] += int(row["pods"])
    assert pods == Counter({(j.job, p.podset, p.node): p.count for j in PLACEMENT.jobs for p in j.pods})
    assert rows[5]["gpus"] == "0 1 2 3|4 5 6 7"
    assert not notes


@pytest.mark.parametrize("form", sorted(WRITERS))
def test_every_form_says_what_it_gives_and_writes_nothing_of_nothing(form: str) -> None:
    assert WRITERS[form].gives
    text, notes = write_placement(REQUEST, Placement(), form)
    assert text in ("", "[]\n", "job,podset,node,pods,gpus\n")
    assert not notes


def test_placements_of_another_source_are_refused() -> None:
    with pytest.raises(InputError, match="has job '7', the source has not"):
        write_placement(REQUEST.model_copy(update={"jobs": ()}), PLACEMENT, "csv")
    with pytest.raises(InputError, match="on 'n09': the source lacks one of them"):
        write_placement(REQUEST.model_copy(update={"nodes": REQUEST.nodes[:3]}), PLACEMENT, "csv")
    with pytest.raises(UnknownName, match="slurm"):
        write_placement(REQUEST, PLACEMENT, "slurmm")


def test_the_graph_comes_back_equal() -> None:
    fabric = build_fabric(*leaf_spine(leaves=2, nodes_per_leaf=2))
    back = nx.node_link_graph(json.loads(json.dumps(node_link(fabric))), edges="links")
    graph = build_graph(fabric)
    assert {n for n in back if n.startswith("node:")} == {f"node:{name}" for name in fabric.nodes}
    same = nx.is_isomorphic(back, graph, node_match=lambda a, b: a == b, edge_match=lambda a, b: a == b)
    assert same, "kinds of vertices, cables and speeds of edges included"


def test_ids_of_domains_differ() -> None:
    """Paths a/b > c and a > b/c are two domains."""
    nodes = (Node(name="x", path=("a/b", "c")), Node(name="y", path=("a", "b/c")))
    data = node_link(build_fabric(FabricSpec(levels=("spine", "leaf")), nodes))
    ids = [n["id"] for n in data["nodes"]]
    assert len(ids) == len(set(ids)) == 2 + 2 + 2 + 1


def test_the_command(tmp_path: Path) -> None:
    request, placed = tmp_path / "r.json", tmp_path / "p.json"
    save(REQUEST, request)
    save(PLACEMENT, placed)
    run = CliRunner().invoke
    out = tmp_path / "nodes.tsv"
    result = run(app, ["convert", str(request), str(out), "--placement", str(placed), "--to", "slurm"])
    assert result.exit_code == 0
    assert out.read_text() == write_placement(REQUEST, PLACEMENT, "slurm")[0]
    assert "GPU indices are lost" in result.stdout
    graph = tmp_path / "g.json"
    assert run(app, ["convert", str(request), str(graph), "--to", "node-link"]).exit_code == 0
    assert len(json.loads(graph.read_text())["nodes"]) >= 12
    for options in (["--placement", str(placed)], ["--to", "slurm"], ["--to", "none"]):
        assert run(app, ["convert", str(request), str(tmp_path / "x.json"), *options]).exit_code != 0
        assert not (tmp_path / "x.json").exists()
