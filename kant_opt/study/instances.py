"""The stored instances: requests in files, and requests too large to store that a generator makes again."""

from __future__ import annotations

from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

from kant_opt.errors import InputError, UnknownName
from kant_opt.io import read_request
from kant_opt.schema import Request, to_json
from kant_opt.shipped import shipped
from kant_opt.study.spans import SPANS, spans

_SUFFIXES = (".json", ".json.gz", ".yaml")
SOLUTIONS = "solutions"
"""The folder of each family in which the solutions lie."""


def digest_of(request: Request) -> str:
    """Return 16 hex digits that tell this request from any other; fields left at their defaults do not count.

    >>> from kant_opt.schema import Node
    >>> digest_of(Request(nodes=(Node(name="a", gpus=8),)))
    'add130ff7a4a0ce9'
    """
    return sha256(to_json(request).encode()).hexdigest()[:16]


class Instances:
    """A folder of instances. A name is the path of its file without the ending: `coupled/2k-odd-tight`."""

    def __init__(self, folder: str | Path | None = None) -> None:
        """Look at `folder`, or at the instances that ship with the project."""
        self.folder = shipped("instances") if folder is None else Path(folder)
        if not self.folder.is_dir():
            raise InputError("is no folder", place=str(self.folder), way_out="name the folder of the instances")

    def names(self, pattern: str = "*") -> tuple[str, ...]:
        """Return the names that match a shell pattern, sorted; * matches slashes too."""
        return tuple(sorted(name for name in {*self._files(), *self._made()} if fnmatchcase(name, pattern)))

    def load(self, name: str) -> Request:
        """Return the request called `name`, read or made. Raises UnknownName."""
        path = self._files().get(name)
        if path is not None:
            return read_request(path, format="native")[0]
        if name in self._made():
            return spans(SPANS[name])
        raise UnknownName("instance", name, self.names())

    def solution(self, name: str) -> Path:
        """Return where the best solution known lies, whether or not there is one."""
        family, _, own = name.rpartition("/")
        return self.folder / family / SOLUTIONS / f"{own}.json.gz"

    @property
    def best_known(self) -> Path:
        """Where the records are."""
        return self.folder / "best-known.jsonl"

    def _files(self) -> dict[str, Path]:
        found = {}
        for path in self.folder.rglob("*"):
            ending = next((suffix for suffix in _SUFFIXES if path.name.endswith(suffix)), None)
            if ending and SOLUTIONS not in path.parts:
                found[path.relative_to(self.folder).as_posix().removesuffix(ending)] = path
        return found

    def _made(self) -> frozenset[str]:
        """Return the names of the requests that are made: they belong to the shipped folder alone."""
        return frozenset(SPANS) if self.folder == shipped("instances") else frozenset()
