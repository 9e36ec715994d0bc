"""Shipped topologies are what their [expect] block says; faulty files are refused with a place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kant_opt.errors import InputError, UnknownName
from kant_opt.fabric import build_fabric, describe, list_topologies, load_topology


def test_the_folder_and_the_list_agree(root: Path) -> None:
    assert list(list_topologies()) == sorted(path.stem for path in (root / "topologies").glob("*.toml"))
    assert len(list_topologies()) >= 8


@pytest.mark.parametrize("name", list_topologies())
def test_a_topology_is_as_it_says(root: Path, name: str) -> None:
    """Counted from the nodes' own paths where they have some, so that `describe` is checked as well."""
    expect = tomllib.loads((root / "topologies" / f"{name}.toml").read_text())["expect"]
    spec, nodes = load_topology(name)
    fabric = build_fabric(spec, nodes)
    assert len(nodes) == expect.pop("nodes")
    assert sum(node.gpus for node in nodes) == expect.pop("gpus")
    domains = expect.pop("domains")
    assert list(domains) == list(fabric.levels[:-1])
    assert describe(fabric, nodes).domains == domains
    if not spec.is_graph:
        for depth, level in enumerate(spec.levels, start=1):
            assert len({node.path[:depth] for node in nodes}) == domains[level]
    for level, totals in expect.pop("uplink_gbps", {}).items():
        assert sorted(fabric.uplink_gbps(domain) or 0 for domain in fabric.domains(level)) == totals
    for level, cables in expect.pop("cables", {}).items():
        ends = {node.name for node in nodes} if level == "node" else {s.name for s in spec.switches if s.kind == level}
        assert sum(link.links for link in spec.links if link.a in ends) == cables
    for field in list(expect):
        level = field.removesuffix("_sizes")
        assert sorted(len(fabric.nodes_of(domain)) for domain in fabric.domains(level)) == expect.pop(field)
    assert not expect


def test_a_file_is_loaded_by_its_path(root: Path) -> None:
    path = root / "topologies" / "uneven-64.toml"
    assert load_topology(path) == load_topology(str(path)) == load_topology("uneven-64")


def test_nodes_of_a_domain_carry_its_fields() -> None:
    _, nodes = load_topology("inference-small")
    by_name = {node.name: node for node in nodes}
    assert (by_name["small10"].pools, by_name["small10"].gpus, by_name["small10"].path) == (("L40S",), 4, ("rack-c",))
    assert by_name["head2"].gpus == 0


def test_an_installed_package_has_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Beside an installed package lies somebody else's folder `topologies`, if any."""
    for folder, name in (("kant_opt/_data/topologies", "mine"), ("topologies", "theirs")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{name}.toml").write_text(GENERATOR + "leaves = 1\nnodes_per_leaf = 1")
    monkeypatch.setattr("kant_opt.shipped.files", lambda name: tmp_path / name)
    assert list_topologies() == ("mine",)
    assert len(load_topology("mine")[1]) == 1


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(UnknownName, match="did you mean 'uneven-64'"):
        load_topology("uneven-46")


DOMAIN = 'levels = ["leaf"]\n[[domain]]\npath = ["a"]\n'
GENERATOR = '[generator]\nname = "leaf-spine"\n'

FAULTS = {
    "not-toml": ("levels = [", "is not TOML"),
    "too-deep": ("levels = " + "[" * 20_000, "is not TOML"),
    "unknown-field": ("level = []", "unknown field 'level'.*did you mean 'levels'"),
    "nothing": ("", "either a .generator. or"),
    "both": (DOMAIN + 'nodes = "n1"\n' + GENERATOR, "either a .generator. or"),
    "generator-without-name": ("[generator]\nleaves = 2", "generator: needs a name"),
    "generator-unknown": ('[generator]\nname = "leaf-spin"', "did you mean 'leaf-spine'"),
    "generator-field": (GENERATOR + "leafs = 2", "generator: leaf-spine: .*'leafs'"),
    "generator-size": (GENERATOR + "leaves = 2\nnodes_per_leaf = 0", "generator: nodes_per_leaf is 0"),
    "generator-type": (GENERATOR + 'leaves = "2"\nnodes_per_leaf = 4', "leaves is '2'"),
    "generator-gpus": (GENERATOR + 'leaves = 2\nnodes_per_leaf = 4\ngpus = "8"', "gpus is '8'"),
    "generator-levels": ('levels = ["x"]\n' + GENERATOR, "'levels' follows from the generator"),
    "sizes-not-a-list": ('[generator]\nname = "irregular"\nleaf_sizes = 4', "generator: irregular"),
    "domain-not-a-list": ("[domain]\npath = []", "domain: is not a list of tables"),
    "path-missing": ('[[domain]]\nnodes = "n1"', "domain.0: path is None"),
    "nodes-missing": (DOMAIN, "domain.0.nodes: None is not a list of hosts"),
    "nodes-group": (DOMAIN + 'nodes = "@all"', "'@all' is not a list of hosts"),
    "nodes-bracket": (DOMAIN + 'nodes = "n[1-"', "is not a list of hosts"),
    "nodes-too-many": (DOMAIN + 'nodes = "n[1-999999999]"', "stands for more than 1000000"),
    "nodes-too-many-in-two": (DOMAIN + 'nodes = "n[1-9999]r[1-9999]"', "stands for more than 1000000"),
    "nodes-huge-number": (DOMAIN + f'nodes = "n[1-{"9" * 5000}]"', "is not a list of hosts"),
    "node-field": (DOMAIN + 'nodes = "n1"\ngpu = 8', "unknown field 'gpu'"),
    "node-value": (DOMAIN + 'nodes = "n1"\ngpus = "8"', "gpus is '8'"),
    "uplink-value": (DOMAIN + 'nodes = "n1"\n[[uplink]]\npath = ["a"]\nlinks = 0', "links is 0"),
    "uplink-of-graph": (
        '[generator]\nname = "rail-optimised"\nunits = 1\nnodes_per_unit = 1\nspines = 1\n[[uplink]]\npath = ["a"]',
        "this generator makes a graph",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_refused(tmp_path: Path, fault: str) -> None:
    text, words = FAULTS[fault]
    path = tmp_path / "faulty.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        load_topology(path)
    assert str(caught.value).startswith("faulty.toml")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.toml: cannot be read"):
        load_topology(tmp_path / "gone.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        load_topology(tmp_path / "bytes.toml")
    (tmp_path / "long.toml").write_bytes(b"#" * (5 << 20))
    with pytest.raises(InputError, match="larger than"):
        load_topology(tmp_path / "long.toml")
