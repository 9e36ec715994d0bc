"""What every document type shares: frozen, nothing unknown, whole numbers that are whole."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from kant_opt.errors import UnknownName

SCHEMA_VERSION = 1
_LARGEST = 1 << 53  # JSON readers elsewhere keep integers exact up to here


class Frozen(BaseModel):
    """A document type: immutable, hashable where its parts are, unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings", validate_default=False)


Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=512)]
Count = Annotated[int, Field(strict=True, ge=0, le=10_000_000)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=10_000_000)]
GpuCount = Annotated[int, Field(strict=True, ge=0, le=1024, description="whole GPUs")]
MilliGpu = Annotated[int, Field(strict=True, ge=1, le=999, description="thousandths of one GPU")]
MilliCpu = Annotated[int, Field(strict=True, ge=0, le=_LARGEST, description="thousandths of a CPU")]
Bytes = Annotated[int, Field(strict=True, ge=0, le=_LARGEST, description="bytes")]
Mib = Annotated[int, Field(strict=True, ge=1, le=1 << 30, description="MiB of GPU memory")]
Seconds = Annotated[int, Field(strict=True, ge=-_LARGEST, le=_LARGEST, description="whole seconds")]
Duration = Annotated[int, Field(strict=True, ge=0, le=_LARGEST, description="whole seconds")]
Integer = Annotated[int, Field(strict=True, ge=-_LARGEST, le=_LARGEST)]

NODE_LEVEL = "node"
"""The innermost level; always there, never listed in `FabricSpec.levels`."""


def check_unique(kind: str, names: Iterable[str]) -> None:
    """Raise ValueError naming the first name that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"two {kind}s are called {name!r}; names must differ")
        seen.add(name)


def check_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise UnknownName unless `name` is one of `known`."""
    if name not in known:
        raise UnknownName(kind, name, known)
