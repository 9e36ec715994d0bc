"""A job is a gang: podsets that start together or not at all, and the rules of where they may go."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from kant_opt.schema.base import (
    Bytes,
    Count,
    Duration,
    Frozen,
    GpuCount,
    Integer,
    Mib,
    MilliCpu,
    MilliGpu,
    Name,
    PositiveCount,
    Seconds,
    check_known,
    check_unique,
)
from kant_opt.schema.fabric import Toleration


class Slice(Frozen):
    """The pods inside any one domain of `level` are a multiple of `size`."""

    level: Name
    size: PositiveCount


class Spread(Frozen):
    """At most `max_per_domain` pods of the podset in any one domain of `level`."""

    level: Name
    max_per_domain: PositiveCount


class PodSet(Frozen):
    """Pods of one shape. Ask for whole GPUs, or for a share of one GPU, or for none."""

    name: Name = "main"
    count: Count
    """Pods in all, with those that already run or have finished."""
    min_count: PositiveCount | None = None
    """Elastic: the gang may run with this many, in whole slices; None: all or none."""
    finished: Count = 0
    """Pods that are done and need no place any more; the minimum shrinks with them."""
    gpus: GpuCount = 0
    gpu_milli: MilliGpu | None = None
    gpu_memory_mib: Mib | None = None
    """A share of one GPU by its memory, MiB."""
    cpu_milli: MilliCpu = 0
    memory_bytes: Bytes = 0
    pools: tuple[Name, ...] = ()
    """Pools it may run in; empty: any."""
    required_level: Name | None = None
    """All its pods lie in one domain of this level."""
    preferred_level: Name | None = None
    """One domain of this level if possible: a wish, never a reason to refuse."""
    slices: tuple[Slice, ...] = ()
    """Outermost first; each inner size divides the outer one."""
    spread: tuple[Spread, ...] = ()
    balance: bool = False
    """Over the fewest domains of its preferred level as evenly as can be: a wish."""
    selector: dict[Name, tuple[str, ...]] = {}
    """Node label -> values allowed."""
    nodes: tuple[Name, ...] = ()
    """Only these nodes; empty: any."""
    not_nodes: tuple[Name, ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    @property
    def has_share(self) -> bool:
        """True where each pod takes a part of one GPU."""
        return self.gpu_milli is not None or self.gpu_memory_mib is not None

    @property
    def levels_named(self) -> tuple[str, ...]:
        """Every level that one of its rules or wishes names."""
        named = [self.required_level, self.preferred_level]
        named += [s.level for s in self.slices] + [s.level for s in self.spread]
        return tuple(level for level in named if level)

    @field_validator("selector", mode="before")
    @classmethod
    def _one_value_is_a_list(cls, value: object) -> object:
        if isinstance(value, dict):
            return {k: (v,) if isinstance(v, str) else v for k, v in value.items()}
        return value

    @model_validator(mode="after")
    def _request_is_one_kind(self) -> Self:
        kinds = [k for k in ("gpus", "gpu_milli", "gpu_memory_mib") if getattr(self, k)]
        if len(kinds) > 1:
            raise ValueError(f"podset {self.name!r} asks for {' and '.join(kinds)}; ask for one of them")
        return self

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        if self.finished > self.count:
            raise ValueError(f"podset {self.name!r}: {self.finished} pods finished of {self.count}")
        if self.min_count is not None and self.min_count > self.count:
            raise ValueError(f"podset {self.name!r}: min_count {self.min_count} exceeds count {self.count}")
        outer = self.count
        for piece in self.slices:
            if outer % piece.size:
                whole = "count" if outer == self.count else "outer slice"
                raise ValueError(
                    f"podset {self.name!r}: slices of {piece.size} on level {piece.level!r} do not divide the "
                    f"{whole} of {outer}"
                )
            outer = piece.size
        if self.balance and self.preferred_level is None:
            raise ValueError(f"podset {self.name!r}: balance needs a preferred_level")
        return self


class Together(Frozen):
    """The named podsets (all where empty) lie in one domain of `level`."""

    level: Name
    podsets: tuple[Name, ...] = ()


class Apart(Frozen):
    """No domain of `level` holds two of `podsets`, or this job and one of `jobs`."""

    level: Name
    podsets: tuple[Name, ...] = ()
    jobs: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _names_somebody(self) -> Self:
        if not self.jobs and len(self.podsets) < 2:
            raise ValueError("apart needs two podsets or one job to keep away from")
        return self


class Job(Frozen):
    """A gang. Pods of its own name in the allocations are its living members: they stay and count."""

    name: Name
    podsets: tuple[PodSet, ...]
    queue: str = ""
    tenant: str = ""
    priority: Integer = 0
    """Higher goes first; jobs of equal priority are one class."""
    submit_s: Seconds = 0
    walltime_s: Duration | None = None
    """Longest run time; None: unknown."""
    after: tuple[Name, ...] = ()
    """Jobs of this request, queued or running, that have to end before it starts."""
    kind: Literal["training", "inference", "dev"] = "training"
    preemptible: bool = False
    communication: Literal["ring", "all_to_all", "none"] = "ring"
    """What crossing a level costs: per domain more, per pair of pods, nothing."""
    together: tuple[Together, ...] = ()
    apart: tuple[Apart, ...] = ()
    exclusive_level: Name | None = None
    """No other job in any domain of this level that it uses."""
    may_span_fabrics: bool = False
    """True: its pods may lie under roots that have no link between them."""

    @property
    def levels_named(self) -> tuple[str, ...]:
        """Every level that one of its own rules names (those of its podsets apart)."""
        named = [t.level for t in self.together] + [a.level for a in self.apart]
        return (*named, self.exclusive_level) if self.exclusive_level else tuple(named)

    @model_validator(mode="after")
    def _podsets_fit(self) -> Self:
        if not self.podsets:
            raise ValueError(f"job {self.name!r} has no podset")
        check_unique(f"podset of job {self.name!r}", (p.name for p in self.podsets))
        names = {p.name for p in self.podsets}
        ruled = [p for t in self.together for p in t.podsets] + [p for a in self.apart for p in a.podsets]
        for podset in ruled:
            check_known(f"podset of job {self.name!r}", podset, names)
        if self.name in self.after:
            raise ValueError(f"job {self.name!r} is to start after itself; name other jobs")
        if any(self.name in rule.jobs for rule in self.apart):
            raise ValueError(f"job {self.name!r} is to stay apart from itself; name other jobs")
        return self


class JobGroup(Frozen):
    """Jobs that belong together."""

    name: Name
    jobs: tuple[Name, ...]
    all_or_none: bool = True
    """All of them are admitted or none is."""
    together_level: Name | None = None
    """All their pods lie in one domain of this level."""
