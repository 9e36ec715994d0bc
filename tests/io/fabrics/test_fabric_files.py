"""Files that tell fabrics: ibnetdiscover, topograph, HiveD, Slurm's topology.yaml; counted again by other means."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.errors import InputError
from kant_opt.fabric import Fabric, build_fabric
from kant_opt.io import FORMATS, read_request
from kant_opt.schema import Request

# --- ibnetdiscover


@pytest.fixture(scope="module")
def dump(shared: Path) -> Path:
    return shared / "formats/ibnetdiscover/example.switches-only.out"


def domains(request: Request) -> list[Counter[str]]:
    """Nodes below each domain, level by level, outermost first; domains are told by their path."""
    fabric: Fabric = build_fabric(request.fabric, request.nodes)
    return [Counter("/".join(p[: i + 1]) for p in fabric.paths.values()) for i in range(len(fabric.levels) - 1)]


def test_the_fabric_of_units_and_spines(dump: Path) -> None:
    """119 hosts in 8 units, 31 leaves, 9 spines, as counted from the text by hand."""
    request, notes = read_request(dump)
    text = dump.read_text()
    assert {n.name for n in request.nodes} == set(re.findall(r'# "(\S+-dgx-\S+) ', text))
    assert len(request.nodes) == 119
    assert Counter(s.kind for s in request.fabric.switches) == {"leaf": 31, "spine": 9}
    assert sum("IBLEAF" in s.name for s in request.fabric.switches if s.kind == "leaf") == 31
    whole, units = domains(request)
    assert list(whole.values()) == [119]
    assert sorted(units.values(), reverse=True) == [18, 18, 17, 16, 15, 14, 11, 10]
    assert any("name no host" in n and n.startswith("adapters") and ": 109 " in n for n in notes)
    assert any("fabric managers and unnamed hosts" in n and ": 7 " in n for n in notes)


def test_cables_count_once(dump: Path) -> None:
    """Rails are told by the leaf only; a trunk by both its ends."""
    request, _ = read_request(dump)
    hosts = {n.name for n in request.nodes}
    rails = sum(link.links for link in request.fabric.links if link.b in hosts)
    trunks = sum(link.links for link in request.fabric.links if link.b not in hosts)
    text = dump.read_text()
    assert rails == len(re.findall(r'^\[\d+\]\s+"H-.*-dgx-', text, re.MULTILINE)) == 109 * 4 + 10 * 3
    ends = re.findall(r'^\[(\d+)\]\s+"(S-\w+)"\[(\d+)\]', text, re.MULTILINE)
    assert 2 * trunks == len(ends)
    assert {link.gbps for link in request.fabric.links} == {400}, "4xNDR throughout"


def test_a_dump_without_a_switch_is_refused(shared: Path) -> None:
    with pytest.raises(InputError, match="no switch in it"):
        read_request(shared / "formats/ibnetdiscover/example-bad.out")


IB = """\
switchguid=0x1(1)
Switch\t65 "S-1"\t# "MF0;leaf:MQM/U1" enhanced port 0 lid 1 lmc 0
[1]\t"H-a"[1](a) \t# "h1 mlx5_0" lid 2 4xHDR
[2]\t"H-b"[1](b) \t# "h2 HCA-1" lid 3 2xNDR
[3]\t"S-2"[7]\t# "spine" lid 4 4xNDR
[4]\t"S-2"[8]\t# "spine" lid 4

caguid=0xa
Ca\t1 "H-a"\t# "h1 mlx5_0"
[1](a) \t"S-1"[1]\t# lid 2 lmc 0 "leaf" lid 1 4xHDR
"""


def test_speeds_half_links_and_one_sided_links(tmp_path: Path) -> None:
    """The spine has no record of its own: what its neighbour tells of it is enough."""
    path = tmp_path / "ib.out"
    path.write_text(IB)
    request, notes = read_request(path)
    assert {(k.a, k.b, k.gbps, k.links) for k in request.fabric.links} == {
        ("leaf", "h1", 200, 1),
        ("leaf", "h2", 200, 1),
        ("leaf", "spine", 400, 2),
    }
    assert any("unknown speed" in n and "line 6" in n for n in notes)


# --- topograph


@pytest.mark.parametrize(
    ("name", "leaves", "hbds"),
    [("nvl72", 4, 4), ("medium", 4, 4), ("small-tree", 2, 2), ("dual-xclr-irregular", 29, 29)],
)
def test_models(shared: Path, name: str, leaves: int, hbds: int) -> None:
    path = shared / "formats/topograph/models" / f"{name}.yaml"
    request, _ = read_request(path)
    data = yaml.safe_load(path.read_text())
    ranges = [text for block in data["blocks"] for text in block["nodes"]]
    assert len(request.nodes) == sum(map(_size, ranges))
    found = dict(zip(request.fabric.levels, domains(request), strict=True))
    assert len(found["leaf"]) == leaves == len(data["blocks"])
    assert len(found["hbd"]) == hbds
    if name == "nvl72":
        assert set(found["hbd"].values()) == {18}


def test_every_model_reads(shared: Path) -> None:
    paths = sorted((shared / "formats/topograph/models").glob("*.yaml"))
    assert len(paths) == 6
    for path in paths:
        assert read_request(path)[0].nodes


def _size(text: str) -> int:
    match = re.search(r"\[(\d+)-(\d+)\]", text)
    return int(match[2]) - int(match[1]) + 1 if match else 1


# --- HiveD


def test_the_design_of_hived(shared: Path) -> None:
    """Three CT1 nodes of 2 GPUs, three P100 of 8, thirteen and two DGX-2 of 16; one node is of two kinds."""
    path = shared / "formats/hived/design-hivedscheduler.yaml"
    request, notes = read_request(path)
    assert {n.name for n in request.nodes} == set(re.findall(r"cellAddress: (\d+\.\d+\.\d+\.\d+)", path.read_text()))
    assert sum(n.gpus for n in request.nodes) == 3 * 2 + 3 * 8 + 13 * 16 + 2 * 16
    assert [n.pools for n in request.nodes if n.name == "1.0.0.2"] == [("CT1", "DGX1-P100")]
    outer, inner = domains(request)
    assert len(outer) == 9, "the cells on top: three CT1 in one each, one of them the P100 node's, then 6 others"
    assert max(inner.values()) == 3
    assert any("several kinds" in n for n in notes)


def test_virtual_clusters_hold_the_gpus_of_their_cells(shared: Path) -> None:
    request, _ = read_request(shared / "formats/hived/hived-config-1.yaml")
    assert len(request.nodes) == 5
    assert {n.gpus for n in request.nodes} == {4}
    assert {q.name: [(x.pool, x.guaranteed) for x in q.quotas] for q in request.queues} == {
        "vc1": [("K80", 4)],
        "vc2": [("K80", 8)],  # a cell of its own and the pinned node
        "default": [("K80", 8)],
    }


def test_every_configuration_reads(shared: Path) -> None:
    paths = sorted((shared / "formats/hived").glob("*.yaml"))
    assert len(paths) == 11
    for path in paths:
        request, _ = read_request(path)
        owned = sum(q.guaranteed for queue in request.queues for q in queue.quotas)
        assert 0 < owned <= sum(n.gpus for n in request.nodes), "the virtual clusters fit into the physical one"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("childCellNumber: 2", "childCellNumber: 0"), "childCellNumber: missing or below 1"),
        (("childCellType: GPU", "childCellType: NODE"), "break the cycle"),
        (("isNodeLevel: true", "isNodeLevel: false"), "has no node level"),
        (("  - cellAddress: b\n", ""), "1 cells in a 'PAIR' of 2"),
        (("- pinnedCellId: P", "- pinnedCellId: Q"), "no physical cell has this id"),
    ],
)
def test_faults_of_hived(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    assert change[0] in HIVED
    path = tmp_path / "h.yaml"
    path.write_text(HIVED.replace(*change))
    with pytest.raises(InputError, match=says):
        read_request(path)


HIVED = """\
physicalCluster:
  cellTypes:
    NODE:
      childCellType: GPU
      childCellNumber: 4
      isNodeLevel: true
    PAIR: {childCellType: NODE, childCellNumber: 2}
  physicalCells:
  - cellType: PAIR
    cellChildren:
    - cellAddress: a
      pinnedCellId: P
    - cellAddress: b
virtualClusters:
  vc:
    virtualCells: [{cellType: PAIR.NODE, cellNumber: 1}]
    pinnedCells:
    - pinnedCellId: P
"""

# --- Slurm's topology.yaml


def test_the_example_of_the_manual(shared: Path) -> None:
    request, notes = read_request(shared / "formats/slurm-topology/topology-manpage-example.yaml")
    assert {n.name: n.path for n in request.nodes} == {
        "node01": ("sw_root", "s1"),
        "node02": ("sw_root", "s1"),
        "node03": ("sw_root", "s2"),
        "node04": ("sw_root", "s2"),
    }
    assert any("'topo1' is read, not topo2, topo3, topo3a, topo4, topo5" in n for n in notes)


@pytest.mark.parametrize(
    ("kind", "levels", "nodes"), [("topo2", ("block",), 16), ("topo4", ("ring",), 16), ("topo5", ("torus",), 32)]
)
def test_the_other_kinds_of_the_example(
    shared: Path, tmp_path: Path, kind: str, levels: tuple[str], nodes: int
) -> None:
    """block_sizes 4,16 of four blocks: an aggregate of all makes no level."""
    text = (shared / "formats/slurm-topology/topology-manpage-example.yaml").read_text()
    chosen = [item | {"cluster_default": item["topology"] == kind} for item in yaml.safe_load(text)]
    path = tmp_path / "topology.yaml"
    path.write_text(yaml.safe_dump(chosen, sort_keys=False))
    request, _ = read_request(path)
    assert request.fabric.levels == levels
    assert len(request.nodes) == nodes


def test_what_slurm_refuses_is_refused(shared: Path) -> None:
    paths = sorted((shared / "formats/slurm-topology").glob("bad-*.yaml"))
    assert len(paths) == 21
    for path in paths:
        with pytest.raises(InputError) as caught:
            read_request(path, format="slurm")
        assert path.name in str(caught.value)


# --- damage

SAMPLES = {
    "ibnetdiscover": IB,
    "hived": HIVED,
    "topograph": "switches:\n  a:\n    switches: [b, c]\nblocks:\n- switch: b\n  nodes: ['n[1-2]']\n"
    "  annotations: {x/domain: d}\n- switch: c\n  nodes: [m]\n",
    "slurm": "- topology: t\n  cluster_default: true\n  block:\n    block_sizes: [2]\n    blocks:\n"
    "    - {block: a, nodes: 'n[1-2]'}\n- topology: u\n  torus3d:\n    toruses:\n"
    "    - {name: p, dims: {x: 1, y: 1, z: 2}, nodes: 'n[1-2]'}\n",
}


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        pieces = ["", "[", "]", ": ", "- ", '"', "\n", "null", "-1", "9" * 18, "0-9999999", "&a ", "*a", "{}", "\x00"]
        middle = draw(st.sampled_from(pieces) | st.just(text[start:end] * 2) | st.text(max_size=3))
        text = text[:start] + middle + text[end:]
    return text


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    """A request or one sentence; whole samples read."""
    path = tmp_path / "file"
    path.write_text(SAMPLES[name])
    assert read_request(path)[0].nodes

    @settings(
        deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(damaged(SAMPLES[name]))
    def check(text: str) -> None:
        path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
        try:
            request, _ = FORMATS[name].read_with_notes(path)
        except InputError:
            return
        assert isinstance(request, Request)

    check()
