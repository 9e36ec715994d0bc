"""Every file in tests/data/{native,kubernetes,openb} is wrong in the one way its name tells, and is refused in words.

The words are what a user needs: the place in the file, the value, and the way out.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kant_opt.errors import InputError
from kant_opt.io import FORMATS
from kant_opt.io.openb import read_pair

NATIVE: dict[str, tuple[str, ...]] = {
    "alias-of-itself.yaml": ("line 2 column 12", "*a", "write the value out"),
    "allocation-on-unknown-node.json": ("allocations.0.holds.0.node", "'a'", "'n9'"),
    "billion-laughs.yaml": ("line 6", "over 1000000 values", "write the values out"),
    "cut-off.json": ("line 2 column 25", "not JSON", "check for a cut or edited file"),
    "cut-off.json.gz": ("broken gzip", "ended before", "copy or pack the file again"),
    "empty.json": ("the file is empty", "name a file with a document"),
    "field-unknown.json": ("nodes.0.gpuz", "unknown field 'gpuz'", "remove it or correct its spelling"),
    "gpus-as-text.json": ("nodes.0.gpus", "'8'", "valid integer"),
    "gpus-below-zero.json": ("nodes.0.gpus", "-8", "greater than or equal to 0"),
    "infinity-as-weight.json": ("line 2 column 39", "Infinity is no JSON number", "correct it there"),
    "integer-of-40-digits.json": ("line 1 column 24", "40 digits", "correct it there"),
    "key-twice.json": ("line 3 column 2", "'nodes' occurs twice", "correct it there"),
    "key-twice.yaml": ("line 4 column 5", "'name' occurs twice", "keep one of them"),
    "latin-1.json": ("byte 26 (0xe9)", "not UTF-8", "save it as UTF-8"),
    "level-misspelt.yaml": ("jobs.0.podsets.0", "'leav'", "did you mean 'leaf'"),
    "list-on-top.json": ("the document is a list", "a request is a mapping with at least 'nodes'"),
    "merge-key.yaml": ("line 3 column 5", "(<<)", "write the fields out"),
    "node-twice.json": ("two nodes are called 'n1'", "names must differ"),
    "nodes-missing.json": ("'nodes' is missing", "add it"),
    "path-too-short.yaml": ("nodes.0.path", "1 path entries for 2 levels", "one entry per level"),
    "python-tag.yaml": ("line 2 column 8", "python/object/apply:os.getcwd", "remove it"),
    "schema-2.json": ("schema is 2", "should be 1"),
    "share-and-whole-gpus.json": ("jobs.0.podsets.0", "gpus and gpu_milli", "ask for one of them"),
    "slices-do-not-divide.json": ("jobs.0.podsets.0", "slices of 2", "count of 5"),
    "tab-as-indent.yaml": ("line 3 column 1", "not YAML", "check indentation"),
    "too-deep.json": ("line 1 column 123", "deeper than 100 levels", "correct it there"),
    "too-deep.yaml": ("line 2 column 107", "deeper than 100 levels", "flatten it"),
    "two-documents.yaml": ("2 documents", "keep one per file"),
    "wrong-checksum.json.gz": ("broken gzip", "crc check failed", "copy or pack the file again"),
}
KUBERNETES: dict[str, tuple[str, ...]] = {
    "affinity-field-unknown.json": ("matchFields.0.key", "'metadata.uid'", "only metadata.name"),
    "affinity-operator-unknown.json": ("matchExpressions.0.operator", "'Near'", "use In, NotIn"),
    "container-is-text.json": ("items.1.spec.containers.0", "'main'", "correct it"),
    "cordon-as-text.yaml": ("spec.unschedulable", "'yes'", "write true or false"),
    "gpu-fraction-in-words.json": ("items.1.metadata.annotations.gpu-fraction", "'half'", "write e.g. '8'"),
    "gpus-below-zero.json": ("items.0.status.allocatable.nvidia.com/gpu", "'-4'", "start at 0"),
    "gpus-beyond-a-node.json": ("items.0: gpus", "5000", "less than or equal to 1024"),
    "gpus-in-words.json": ("items.0.status.allocatable.nvidia.com/gpu", "'eight'", "write e.g. '8'"),
    "item-is-null.json": ("items.0", "None where an object was expected", "correct it"),
    "items-as-object.json": ("items", "an object where a list was expected", "write a list"),
    "key-twice.yaml": ("line 5 column 1", "'status' occurs twice", "keep one of them"),
    "label-without-quotes.yaml": ("metadata.labels.nvidia.com/gpu.count", "8 where text", "put it in quotes"),
    "labels-as-list.json": ("items.0.metadata.labels", "a list where an object was expected", "correct it"),
    "memory-beyond-64-bits.json": ("items.0.status.allocatable.memory", "'1e300' is too large", "below 2**62"),
    "memory-in-GB.yaml": ("status.allocatable.memory", "unknown unit 'GB'", "use m, k, M, G"),
    "node-twice.json": ("items.2.metadata.name", "'n1'", "items.0: keep one"),
    "node-without-name.json": ("items.0.metadata.name", "missing or empty", "give the name"),
    "only-pods.json": ("no Node", "kubectl get nodes -o json"),
    "pod-asks-below-zero.json": ("items.1.spec.containers.0.resources.requests.cpu", "'-1'", "start at 0"),
    "pod-twice.json": ("items.2.metadata.name", "'ml/p1'", "items.1: keep one"),
    "priority-as-text.json": ("items.1.spec.priority", "'high'", "write a whole number"),
    "second-document-bad.yaml": ("document 2.metadata.name", "missing or empty", "give the name"),
    "taint-effect-unknown.json": ("items.0: taints.0.effect", "'NoWay'", "NoSchedule"),
    "taint-without-key.json": ("items.0.spec.taints.0.key", "missing or empty", "give the key"),
    "time-in-words.json": ("items.1.metadata.creationTimestamp", "'yesterday'", "write e.g. 2026"),
    "toleration-without-key.json": ("items.1: podsets.0.tolerations.0", "without key", "'Exists'"),
}
OPENB: dict[str, tuple[str, ...]] = {
    "nodes-gpus-of-no-model.csv": ("line 2", "2 GPUs without a model", "fill column 'model'"),
    "nodes-half-a-gpu.csv": ("line 2", "'gpu' is '2.5'", "write a whole number"),
    "nodes-name-twice.csv": ("line 3", "'n1'", "line 2: keep one"),
    "nodes-too-many-gpus.csv": ("line 2: gpus", "5000", "less than or equal to 1024"),
    "nodes-without-model.csv": ("line 1", "'model' is missing", "needed: sn, cpu_milli, memory_mib, gpu, model"),
    "pods-cpu-in-words.csv": ("line 3", "'cpu_milli' is 'six'", "write a whole number"),
    "pods-deleted-before-start.csv": ("line 3", "deleted at 50, before its start at 60", "correct it"),
    "pods-empty-file.csv": ("line 1", "'name' is missing", "needed: name"),
    "pods-memory-below-zero.csv": ("line 3", "'memory_mib' is '-5'", "0 or more"),
    "pods-name-empty.csv": ("line 3: name", "''", "at least 1 character"),
    "pods-name-twice.csv": ("line 3", "'p1'", "line 2: keep one"),
    "pods-num_gpu-empty.csv": ("line 3", "'num_gpu' is empty", "write a whole number"),
    "pods-open-quote.csv": ("line 3", "not CSV", "check quotes"),
    "pods-share-of-1200.csv": ("line 3", "1200 thousandths", "a share is 1 GPU of 1 to 999"),
    "pods-share-of-two-gpus.csv": ("line 3", "2 GPUs of 500 thousandths", "several GPUs have 1000"),
    "pods-short-line.csv": ("line 3", "3 cells for 11 columns", "is the line cut or quoted?"),
    "pods-without-num_gpu.csv": ("line 1", "'num_gpu' is missing", "needed: name"),
}
TABLES: dict[str, dict[str, tuple[str, ...]]] = {"native": NATIVE, "kubernetes": KUBERNETES, "openb": OPENB}
CASES = [(folder, name) for folder, table in TABLES.items() for name in table]


@pytest.mark.parametrize(("folder", "name"), CASES, ids=lambda part: part)
def test_the_sentence_tells_place_value_and_way_out(root: Path, folder: str, name: str) -> None:
    path = root / "tests" / "data" / folder / name
    with pytest.raises(InputError) as caught:
        _read(folder, path)
    text = str(caught.value)
    assert text.startswith(name), "the file comes first"
    assert "\n" not in text, "one sentence"
    for fragment in TABLES[folder][name]:
        assert fragment in text


@pytest.mark.parametrize("folder", TABLES)
def test_the_table_names_every_file(root: Path, folder: str) -> None:
    files = {p.name for p in (root / "tests" / "data" / folder).iterdir()}
    assert {f for f in files if not f.startswith("good")} == set(TABLES[folder])


@pytest.mark.parametrize("folder", TABLES)
def test_the_good_neighbours_are_read(root: Path, folder: str) -> None:
    """Else a reader that refuses all would pass the table."""
    for path in sorted((root / "tests" / "data" / folder).glob("good*")):
        _read(folder, path)


def _read(folder: str, path: Path) -> None:
    if folder != "openb":
        FORMATS[folder].read_with_notes(path)
    elif "nodes" in path.name:
        read_pair(path, path.with_name("good-pods.csv"))
    else:
        read_pair(path.with_name("good-nodes.csv"), path)
