"""Each file in tests/data/slurm is wrong in the one way its name tells, and gets one sentence for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kant_opt.errors import InputError
from kant_opt.io.slurm import SlurmFormat

BAD = {
    "block-below-base.conf": "line 2: block 'b2' holds 3 nodes, fewer than the base size 4: "
    "lower BlockSizes or comment the block out",
    "block-size-minus-one.conf": "line 2: BlockSizes=-1: write positive numbers of nodes, e.g. 16,32",
    "block-size-no-power-of-two.conf": "line 2: BlockSizes=4,12: each size is 4 times a power of two, smallest first",
    "block-sizes-twice.conf": "line 3: BlockSizes is given twice: keep one",
    "blocks-all-commented-out.conf": "no switch, block or ring is defined, 1 are commented out: "
    "add SwitchName= or BlockName= lines",
    "bracket-nested.conf": "line 1: hostlist 'n[1-[2-3]]' breaks off or is not one at '[1-[2-3]]': close each",
    "bracket-open.conf": "line 1: hostlist 'n[1-2' breaks off or is not one at '[1-2': close each '[' with ']'",
    "cut-off.json": "line 1 column 46: not JSON: unterminated string",
    "cut-off.json.gz": "broken gzip data",
    "gpus-beyond-a-node.json": "node n1: gpus: gpus is 2048: input should be less than or equal to 1024",
    "gres-count-of-another-index-list.json": "node n1: unknown form of GPUs 'gpu:2(IDX:0-2)': known are e.g. gpu:8",
    "gres-form-unknown.json": "node n1: unknown form of GPUs 'gpu:h100:80gb:8': known are e.g. gpu:8",
    "job-asks-in-unknown-form.json": "job 7: unknown form of GPUs 'gres/gpu:two:2:2': known are e.g. gpu:8",
    "job-is-text.json": "jobs.0: '17' is not an object: correct or remove it",
    "job-on-huge-range.json": "jobs.0.nodes: hostlist 'n[0-9999999]' stands for more than 1,000,000 hosts: correct",
    "key-twice.conf": "line 1: Nodes occurs twice in a line: join the two lists",
    "key-unknown.conf": "line 1: unknown key 'Nodez': known are SwitchName, Switches, Nodes, LinkSpeed, BlockName",
    "list-on-top.json": "the top level is a list: Slurm's JSON has one of jobs, nodes, sinfo, reservations there",
    "neither.txt": "none of Slurm's outputs: give topology.conf, or what scontrol, squeue or sinfo writes",
    "no-part-of-slurm.json": "the top level is an object with 'statistics', 'meta': Slurm's JSON has one of jobs",
    "node-under-two-leaves.conf": "line 2: node 'n2' is in switch 'l1' and in 'l2': a node has one switch",
    "nodes-as-object.json": "'nodes' is not a list: write the file again with Slurm's --json",
    "printed-list-cut.txt": "line 1: hostlist 'n[1-' breaks off or is not one at '[1-': close each '[' with ']'; "
    "`scontrol -ll` and SLURM_TOPO_LEN keep lists from being cut",
    "range-backwards.conf": "line 1: '[9-1]' is no range of a hostlist: write e.g. [001-018,020]",
    "range-huge.conf": "line 1: hostlist 'n[0-9999999]' stands for more than 1,000,000 hosts: correct the range",
    "range-in-words.conf": "line 1: '[a-z]' is no range of a hostlist: write e.g. [001-018,020]",
    "range-product-huge.conf": "line 1: hostlist 'n[1-2000]g[1-2000]' stands for more than 1,000,000 hosts: correct",
    "reservation-ends-before-start.json": "reservation 'r': end 10 is not after start 20 (windows are half open)",
    "switch-cycle.conf": "line 1: switches 'a', 'b' are below themselves: break the cycle",
    "switch-twice.conf": "line 3: switch 'l1' is defined twice: the first is on line 2; keep one",
    "switch-undefined.conf": "line 1: switch 'a' names the switch 'l2', which is not defined: add a line SwitchName=l2",
    "switch-under-two.conf": "line 2: switch 'l' is below 'a' and below 'b': a tree gives each switch one parent",
    "switch-with-nodes-and-switches.conf": "line 1: switch 'a' has both Switches and Nodes: keep one of them",
    "switch-without-name.conf": "line 1: switchname is empty: name it",
    "tree-and-blocks.conf": "both block and switch lines: keep one kind of topology",
    "words-without-key.conf": "line 1: 'n2' is not key=value: correct it",
}


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "tests" / "data" / "slurm"


def test_every_bad_file_is_here(folder: Path) -> None:
    assert {p.name for p in folder.iterdir()} - set(BAD) == {"gpu-nodes.txt", "gpu-jobs.txt"}


@pytest.mark.parametrize("name", BAD)
def test_the_sentence(folder: Path, name: str) -> None:
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        SlurmFormat().read_with_notes(folder / name)
    assert str(caught.value).startswith(f"{name}: {BAD[name]}")
    assert time.perf_counter() - start < 1  # ranges are counted, not unfolded


@pytest.mark.parametrize("name", [n for n in BAD if n != "neither.txt" and not n.startswith("no-part")])
def test_bad_files_are_still_known_as_slurms(folder: Path, name: str) -> None:
    """Or else the user would hear of another format's troubles with them; a list or a cut stream tells too little."""
    if name not in ("list-on-top.json", "cut-off.json.gz", "cut-off.json", "job-is-text.json", "nodes-as-object.json"):
        assert SlurmFormat().sniff(folder / name)
