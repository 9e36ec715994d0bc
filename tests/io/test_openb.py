"""openb lists, counted again with the csv module."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest

from kant_opt.errors import InputError
from kant_opt.io import read_request
from kant_opt.io.openb import read_pair
from kant_opt.schema import Request

MIB = 1024 * 1024


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "tests" / "data" / "openb"


def table(path: Path) -> list[dict[str, str]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return list(csv.DictReader(io.StringIO(text.decode())))


def assert_same(request: Request, nodes: list[dict[str, str]], pods: list[dict[str, str]]) -> None:
    """Compare row by row what the lists say with what the request says."""
    assert [n.name for n in request.nodes] == [r["sn"] for r in nodes]
    assert [n.gpus for n in request.nodes] == [int(r["gpu"]) for r in nodes]
    assert [n.pools for n in request.nodes] == [(r["model"] or "default",) for r in nodes]
    assert [n.cpu_milli for n in request.nodes] == [int(r["cpu_milli"]) for r in nodes]
    assert [n.memory_bytes for n in request.nodes] == [int(r["memory_mib"]) * MIB for r in nodes]
    assert request.fabric.levels == ()
    assert [j.name for j in request.jobs] == [r["name"] for r in pods], "the order of arrival is kept"
    for job, row in zip(request.jobs, pods, strict=True):
        (podset,) = job.podsets
        thousandths = podset.gpus * 1000 + (podset.gpu_milli or 0)
        assert thousandths == int(row["num_gpu"]) * int(row["gpu_milli"])
        assert (podset.gpu_milli is not None) == (row["num_gpu"] == "1" and int(row["gpu_milli"]) < 1000)
        assert podset.count == 1
        assert (podset.cpu_milli, podset.memory_bytes) == (int(row["cpu_milli"]), int(row["memory_mib"]) * MIB)
        assert "|".join(podset.pools) == row.get("gpu_spec", "")


def test_the_default_trace(shared: Path) -> None:
    home = shared / "traces" / "openb"
    request, notes = read_request(home)
    nodes, pods = table(home / "openb_node_list_gpu_node.csv"), table(home / "openb_pod_list_default.csv")
    assert_same(request, nodes, pods)
    assert (len(nodes), sum(n.gpus for n in request.nodes), len(pods)) == (1213, 6212, 8152)  # the folder's README
    assert sum(j.podsets[0].gpu_milli is not None for j in request.jobs) == 3078  # its README again
    assert [j.submit_s for j in request.jobs] == [int(r["creation_time"]) for r in pods]
    ran = [(j.walltime_s, r) for j, r in zip(request.jobs, pods, strict=True) if r["scheduled_time"]]
    assert all(w == int(float(r["deletion_time"])) - int(float(r["scheduled_time"])) for w, r in ran)
    assert sum(j.walltime_s is None for j in request.jobs) == 897  # pods that never started
    assert len(notes) == 1
    assert "openb_node_list_gpu_node.csv, not openb_node_list_all_node.csv" in notes[0]


@pytest.mark.parametrize("variant", ["gpuspec33", "multigpu50", "gpushare100", "cpu300"])
def test_variants_take_the_nodes_one_folder_up(shared: Path, variant: str) -> None:
    home = shared / "traces" / "openb"
    source = home / "pods" / f"openb_pod_list_{variant}.csv.gz"
    request, _ = read_request(source)
    pods = table(source)
    assert_same(request, table(home / "openb_node_list_gpu_node.csv"), pods)
    if "creation_time" not in pods[0]:
        assert [j.submit_s for j in request.jobs] == list(range(len(pods))), "the position stands for the time"


def test_all_nodes_with_those_without_gpus(shared: Path) -> None:
    home = shared / "benchmarks" / "fgd_openb"
    nodes, pods = home / "openb_node_list_all_node.csv", home / "openb_pod_list_multigpu50.csv"
    request = read_pair(nodes, pods)
    assert_same(request, table(nodes), table(pods))
    assert sum(n.gpus == 0 for n in request.nodes) == 310  # README of the trace


def test_small_lists(folder: Path) -> None:
    request = read_pair(folder / "good-nodes.csv", folder / "good-pods.csv")
    assert_same(request, table(folder / "good-nodes.csv"), table(folder / "good-pods.csv"))
    assert [(j.submit_s, j.walltime_s) for j in request.jobs] == [(0, 80), (5, 45), (7, None), (7, None)]
    assert request.jobs[1].podsets[0].pools == ("G2", "P100")


def test_nodes_beside_the_pods_go_before_those_one_folder_up(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "pods.csv").write_text((folder / "good-pods.csv").read_text())
    text = (folder / "good-nodes.csv").read_text()
    (tmp_path / "nodes.csv").write_text(text)
    assert len(read_request(tmp_path / "pods" / "pods.csv")[0].nodes) == 2
    (tmp_path / "pods" / "nodes.csv").write_text("".join(text.splitlines(keepends=True)[:2]))
    assert len(read_request(tmp_path / "pods" / "pods.csv")[0].nodes) == 1


def test_a_pod_may_end_in_the_second_it_starts(folder: Path, tmp_path: Path) -> None:
    text = (folder / "good-pods.csv").read_text()
    (tmp_path / "pods.csv").write_text(text.replace(",50,5\n", ",5,5\n"))
    assert read_pair(folder / "good-nodes.csv", tmp_path / "pods.csv").jobs[1].walltime_s == 0


def test_a_folder_with_several_lists_is_refused(folder: Path, tmp_path: Path) -> None:
    nodes, pods = (folder / f"good-{what}.csv" for what in ("nodes", "pods"))
    (tmp_path / "a.csv").write_text(pods.read_text())
    with pytest.raises(InputError, match=r"no openb node list beside it"):
        read_request(tmp_path / "a.csv")
    (tmp_path / "nodes.csv").write_text(nodes.read_text())
    assert read_request(tmp_path)[0] == read_request(tmp_path / "a.csv")[0]
    (tmp_path / "b.csv").write_text(pods.read_text())
    with pytest.raises(InputError, match=r"2 pod lists in this folder \(a.csv, b.csv\): name one"):
        read_request(tmp_path)
    (tmp_path / "more.csv").write_text(nodes.read_text())
    with pytest.raises(InputError, match=r"a.csv: 2 node lists are beside it \(more.csv, nodes.csv\)"):
        read_request(tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"nodes.csv: a node list: name the pod list"):
        read_request(tmp_path / "nodes.csv")


def test_a_folder_of_two_formats_is_not_guessed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text((folder / "good-pods.csv").read_text())
    (tmp_path / "nodes.csv").write_text((folder / "good-nodes.csv").read_text())
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\n")
    with pytest.raises(InputError, match=r"could be read as kubernetes or openb: name the format"):
        read_request(tmp_path)
    assert len(read_request(tmp_path, format="openb")[0].jobs) == 4
