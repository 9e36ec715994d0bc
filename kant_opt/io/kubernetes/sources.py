"""From files and folders to the nodes, pods and topologies in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kant_opt.errors import InputError
from kant_opt.io.files import read_head, read_text
from kant_opt.io.objects import Notes, Object
from kant_opt.io.plain import load_documents, top_keys

_SUFFIXES = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")
KUEUE = "kueue.x-k8s.io"
VOLCANO = "scheduling.volcano.sh"
VOLCANO_TOPOLOGY = "topology.volcano.sh"
VOLCANO_BATCH = "batch.volcano.sh"
KAI = "scheduling.run.ai"
_EXTRA = {
    KUEUE: ("Workload", "ClusterQueue", "LocalQueue", "ResourceFlavor"),
    VOLCANO: ("PodGroup", "Queue"),
    VOLCANO_TOPOLOGY: ("HyperNode",),
    VOLCANO_BATCH: ("Job",),
    KAI: ("PodGroup", "Queue"),
}
_CUSTOM_KINDS = frozenset((group, kind) for group, kinds in _EXTRA.items() for kind in kinds)
_KINDS = ("Node", "Pod", "Topology", *sorted({kind for _, kind in _CUSTOM_KINDS}))
_KIND = re.compile(rf"""["']?kind["']?\s*:\s*["']?(?:{"|".join(_KINDS)})(?:List)?\b""")


@dataclass
class Cluster:
    """The objects of interest, in the order of the files (by name) and of the lists in them."""

    nodes: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    topologies: list[Object] = field(default_factory=list)
    custom: dict[tuple[str, str], list[Object]] = field(default_factory=dict)
    """Objects of schedulers by API group and kind; versions of a group read alike."""

    def of(self, group: str, kind: str) -> list[Object]:
        """Return the objects of a kind of an API group."""
        return self.custom.get((group, kind), [])


def looks_kubernetes(source: Path) -> bool:
    """Return whether a file, or some file in a folder, holds Kubernetes nodes or pods."""
    return any(_file_looks_so(path) for path in _files(source))


def gather(source: Path, notes: Notes) -> Cluster:
    """Return all objects in a file, or in the files of a folder (not of folders in it)."""
    cluster = Cluster()
    for path in _files(source):
        if source.is_dir() and not _file_looks_so(path):
            notes.add("files without Kubernetes nodes or pods are not read", path.name)
            continue
        text = read_text(path)
        documents = load_documents(text, path.name)
        root = Object({}, None, path.name)
        for i, data in enumerate(documents):
            alone = len(documents) == 1
            document = Object(data, None, path.name) if alone else Object(data, root, f"document {i + 1}")
            for kind, item in _items(document):
                _sort_in(kind, item, cluster, notes)
    if not cluster.nodes:
        raise InputError(
            "no Node in it", place=source.name, way_out="add the output of 'kubectl get nodes -o json' to it"
        )
    for objects in (cluster.nodes, cluster.pods, *cluster.custom.values()):
        _names_differ(objects)
    return cluster


def _files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    return sorted(p for p in source.iterdir() if p.is_file() and p.name.lower().endswith(_SUFFIXES))


def _file_looks_so(path: Path) -> bool:
    head = read_head(path)
    return "apiVersion" in top_keys(head) and _KIND.search(head) is not None


def _items(document: Object) -> Iterator[tuple[str, Object]]:
    """Yield (kind, object); an item of a typed list may leave its kind out, as the API server does."""
    kind = document.text("kind")
    if not kind.endswith("List"):
        yield kind, document
        return
    for item in document.children("items"):
        yield item.text("kind", kind.removesuffix("List")), item


def _sort_in(kind: str, item: Object, cluster: Cluster, notes: Notes) -> None:
    wanted = {"Node": cluster.nodes, "Pod": cluster.pods, "Topology": cluster.topologies}
    key = (item.text("apiVersion").partition("/")[0], kind)
    if kind in wanted:
        wanted[kind].append(item)
    elif key in _CUSTOM_KINDS:
        cluster.custom.setdefault(key, []).append(item)
    else:
        notes.add(f"objects of kind {kind or 'unknown'!r} are not read", item.child("metadata").text("name", "unnamed"))


def _names_differ(objects: list[Object]) -> None:
    first: dict[tuple[str, str], Object] = {}
    for item in objects:
        meta = item.child("metadata")
        key = (meta.text("namespace"), meta.required("name"))
        if key in first:
            raise InputError(
                f"{'/'.join(filter(None, key))!r} was there before, in {first[key].place}",
                place=f"{item.place}.metadata.name",
                way_out="keep one of the two",
            )
        first[key] = item
