"""Where the pods go."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from kant_opt.schema.base import Frozen, GpuCount, Name, PositiveCount, check_unique


class PlacedPods(Frozen):
    """Pods of one podset on one node; pods take ranks in the order of the list."""

    podset: Name = "main"
    node: Name
    count: PositiveCount = 1
    gpus: tuple[tuple[GpuCount, ...], ...] = ()
    """GPU indices pod by pod; empty: any free whole GPUs of the node. Shares must name their GPU."""

    @model_validator(mode="after")
    def _indices_for_each_pod(self) -> Self:
        if self.gpus and len(self.gpus) != self.count:
            raise ValueError(f"{self.count} pods on node {self.node!r} but GPU indices for {len(self.gpus)}")
        return self


class PlacedJob(Frozen):
    """The new pods of one job; members that ran before are not repeated."""

    job: Name
    pods: tuple[PlacedPods, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes used, in order of first use."""
        return tuple(dict.fromkeys(p.node for p in self.pods))


class Placement(Frozen):
    """New pods of every admitted job. A job that is not here is not placed."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    jobs: tuple[PlacedJob, ...] = ()

    @model_validator(mode="after")
    def _jobs_once(self) -> Self:
        check_unique("placed job", (j.job for j in self.jobs))
        return self

    def of(self, job: str) -> PlacedJob | None:
        """Return the pods of `job`, None where it is not placed. Costs one pass over the jobs."""
        return next((j for j in self.jobs if j.job == job), None)
