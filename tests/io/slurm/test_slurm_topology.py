"""Topologies: nodes, levels and roots against counts taken from the raw text by other means."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from kant_opt.errors import InputError
from kant_opt.fabric import build_fabric
from kant_opt.io.files import read_text
from kant_opt.io.slurm import SlurmFormat
from kant_opt.io.slurm.topology_conf import Topology, read_topology


def raw_hosts(text: str) -> NodeSet:
    """All hosts that lines without Switches= name, unfolded by ClusterShell."""
    found = NodeSet(resolver=RESOLVER_NOGROUP)
    for line in re.sub(r"#.*", "", text).splitlines():
        if "Switches=" not in line and (match := re.search(r"\bNodes=(\S+)", line)):
            found.update(NodeSet(match[1], resolver=RESOLVER_NOGROUP))
    return found


def sizes(topology: Topology) -> list[int]:
    """Number of domains per level, outermost first."""
    return [len({path[: depth + 1] for path in topology.paths.values()}) for depth in range(len(topology.levels))]


TREES = [
    # file, levels, domains per level, separate roots
    ("tree-testcase1.conf", ("tier-4", "core", "spine", "leaf"), [1, 2, 26, 500], False),
    # im0 has 13 groups; the other 13 hang from the root itself, each its own domain on the level that they skip
    ("tree-testcase2.conf", ("tier-4", "core", "spine", "leaf"), [1, 1 + 13, 26, 500], False),
    ("tree-testcase3.conf", ("core", "spine", "leaf"), [1, 2, 20], False),
    ("tree-testcase4.conf", ("spine", "leaf"), [2, 20], True),
    ("tree-testcase5.conf", ("spine", "leaf"), [2, 20], True),
    # two trunks of two leaves, and a leaf that is a root
    ("tree-testcase6.conf", ("spine", "leaf"), [3, 5], True),
    # the third root, data-transfer, has no nodes; cpu is a leaf and a root
    ("scontrol-show-topo-switch.txt", ("spine", "leaf"), [2, 2], True),
    ("scontrol-show-topo-block.txt", ("block",), [3], False),
    # aggregates of 2 and 4 of the 8 blocks; 32 and 64 nodes are all of them
    ("check-topology.conf", ("block-16", "block-8", "block"), [2, 4, 8], False),
    ("tree-backfill-unit.conf", ("block-16", "block-8", "block"), [2, 4, 8], False),
]


@pytest.mark.parametrize(("file", "levels", "domains", "apart"), TREES, ids=[t[0] for t in TREES])
def test_recorded_topologies(shared: Path, file: str, levels: tuple[str, ...], domains: list[int], apart: bool) -> None:
    text = read_text(shared / "formats" / "slurm-topology" / file)
    topology = read_topology(text, file)
    assert topology.levels == levels
    assert sizes(topology) == domains
    assert topology.separate_roots is apart
    assert set(topology.paths) == set(raw_hosts(text))


def test_node_counts_that_slurm_documents(shared: Path) -> None:
    folder = shared / "formats" / "slurm-topology"
    counts = [len(read_topology(read_text(folder / f"tree-testcase{i}.conf"), "").paths) for i in (2, 3, 6)]
    assert counts == [10_000, 400, 40]


def test_azure_tree_has_units_of_3_6_3_2_2(shared: Path) -> None:
    topology = read_topology(read_text(shared / "formats/slurm-topology-azure/slurm_topology.txt"), "t")
    leaves = [path[-1] for path in topology.paths.values()]
    assert [leaves.count(f"sw{i:02}") for i in range(5)] == [3, 6, 3, 2, 2]
    assert (topology.levels, sizes(topology), topology.separate_roots) == (("spine", "leaf"), [1, 5], False)


def test_azure_blocks_of_18(shared: Path) -> None:
    text = read_text(shared / "formats/slurm-topology-azure/block_topology.txt")
    topology = read_topology(text, "t")
    blocks = [path[-1] for path in topology.paths.values()]
    assert [blocks.count(b) for b in dict.fromkeys(blocks)] == [18, 18, 18, 18]
    assert set(topology.paths) == set(raw_hosts(text))


def test_azure_blocks_that_are_commented_out_are_told(shared: Path) -> None:
    folder = shared / "formats" / "slurm-topology-azure"
    part = read_topology(read_text(folder / "slurm_illegal_block_topology_2.txt"), "t")
    assert len(part.paths) == 3 * 18
    assert part.notes == ("t: 1 commented out: block4",)
    with pytest.raises(InputError, match="4 are commented out"):
        read_topology(read_text(folder / "slurm_illegal_block_topology.txt"), "t")


def test_a_graph_is_no_tree(shared: Path) -> None:
    """Azure's file of ports lists neighbours in both directions and eight leaves per host."""
    with pytest.raises(InputError, match="a tree gives each switch one parent"):
        read_topology(read_text(shared / "formats/slurm-topology-azure/topology.txt"), "topology.txt")


def test_the_syntax_that_slurm_allows() -> None:
    spelt = read_topology(
        """
        # a comment = no entry
        SWITCHNAME = root  Switches= leaf[1-2]  LinkSpeed=400 # behind a line
        switchname=leaf1 nodes=n[01-02],\\
            n07
        SwitchName=leaf2 Nodes="n[03-04]"
        """.replace(",\\\n            ", ",\\\n"),
        "t",
    )
    plain = read_topology(
        "SwitchName=root Switches=leaf1,leaf2\nSwitchName=leaf1 Nodes=n01,n02\nSwitchName=leaf2 Nodes=n03,n04\n", "t"
    )
    assert spelt.levels == plain.levels
    assert {n: p for n, p in spelt.paths.items() if n != "n07"} == plain.paths


def test_a_switch_hung_high_stands_in_for_the_level_it_skips() -> None:
    text = "SwitchName=r Switches=s,b\nSwitchName=s Switches=a\nSwitchName=a Nodes=n1\nSwitchName=b Nodes=n2,n3\n"
    topology = read_topology(text, "t")
    assert topology.paths == {"n1": ("r", "s", "a"), "n2": ("r", "b", "b"), "n3": ("r", "b", "b")}


def test_aggregates_follow_the_file_not_the_names() -> None:
    """CASES H19: b1, b10, b2 with aggregates of two."""
    text = "".join(f"BlockName={b} Nodes={b}n[1-2]\n" for b in ("b1", "b10", "b2")) + "BlockSizes=2,4\n"
    topology = read_topology(text, "t")
    assert topology.levels == ("block-4", "block")
    assert {path[0] for node, path in topology.paths.items() if node.startswith(("b1n", "b10n"))} == {"b1..b10"}
    assert topology.paths["b2n1"] == ("b2", "b2")


def test_spare_nodes_of_a_block_stay_in_it() -> None:
    topology = read_topology("BlockName=b1 Nodes=n[1-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=16\n", "t")
    assert sizes(topology) == [2]
    assert len(topology.paths) == 36


def test_depth_is_bounded() -> None:
    chain = "".join(f"SwitchName=s{i} Switches=s{i + 1}\n" for i in range(1000)) + "SwitchName=s1000 Nodes=n1\n"
    with pytest.raises(InputError, match="1001 levels of switches"):
        read_topology(chain, "t")


def test_printed_and_written_topology_of_one_cluster_agree(shared: Path) -> None:
    folder = shared / "slurm_live"
    written = read_topology(read_text(folder / "topology.conf"), "conf")
    printed = read_topology(read_text(folder / "topology.txt.gz"), "txt")
    assert (written.levels, written.paths) == (printed.levels, printed.paths)
    assert sizes(written) == [1, 8, 128]


@pytest.mark.parametrize("file", ["tree-testcase2.conf", "tree-testcase6.conf", "check-topology.conf"])
def test_domains_of_the_fabric_are_those_of_the_file(shared: Path, file: str) -> None:
    path = shared / "formats" / "slurm-topology" / file
    request, _ = SlurmFormat().read_with_notes(path)
    fabric = build_fabric(request.fabric, request.nodes)
    topology = read_topology(read_text(path), file)
    assert [len(fabric.domains(level)) for level in topology.levels] == sizes(topology)
    if topology.kind == "tree":  # below every switch just the hosts of the leaves that the text puts below it
        lines = dict(re.findall(r"^SwitchName=(\w+) \w+=(\S+)", read_text(path), re.MULTILINE))
        for domain in fabric.domains(topology.levels[0])[:3]:
            below = NodeSet(domain[0], resolver=RESOLVER_NOGROUP)
            while below & NodeSet.fromlist(list(lines), resolver=RESOLVER_NOGROUP):
                below = NodeSet.fromlist([lines.get(s, s) for s in below], resolver=RESOLVER_NOGROUP)
            assert set(fabric.nodes_of(domain)) == set(below)
