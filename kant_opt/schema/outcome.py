"""The answer: placement, value and bound per objective level, a reason for each job not placed, the run's record."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kant_opt.schema.base import Bytes, Count, Frozen, Integer, Name, PositiveCount
from kant_opt.schema.placement import Placement

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]
ReasonKind = Literal["impossible", "not_now", "outbid", "quota", "group", "not_found"]
RelaxationKind = Literal[
    "retry", "level", "slices", "spread", "apart", "span", "pods", "quota", "open", "jobs", "preemptible", "nodes"
]


class LevelValue(Frozen):
    """One objective level: value reached, best value proven possible, and who proved it."""

    name: str
    """Term name; `admitted[7]` is priority class 7."""
    sense: Literal["max", "min"]
    value: int
    bound: int | None
    """No answer with the same values on the levels before is better than this; None: nothing proven."""
    bound_source: str = ""

    @property
    def gap(self) -> int | None:
        """|value - bound|, an absolute integer; None without a bound."""
        return None if self.bound is None else abs(self.value - self.bound)

    @property
    def relative_gap(self) -> float | None:
        """gap / max(1, |value|); None without a bound."""
        return None if self.gap is None else self.gap / max(1, abs(self.value))

    @property
    def proven(self) -> bool:
        """True where value and bound meet."""
        return self.gap == 0


class CauseCount(Frozen):
    """How many nodes one cause excludes."""

    cause: str
    nodes: int


class LevelFit(Frozen):
    """How close the best domain of one level comes."""

    level: str
    domain: tuple[str, ...]
    fits: int
    needed: int
    unit: Literal["pods", "slices"]


class QuotaRaise(Frozen):
    """How much more one quota would have to allow: `more` on its guaranteed share, and on its limit if it has one."""

    queue: Name
    resource: Literal["gpu", "cpu_milli", "memory_bytes"]
    pool: str = ""
    more: PositiveCount | Bytes


class Relaxation(Frozen):
    """One change, to the job or to the cluster as it is after the placement, that lets the job in."""

    kind: RelaxationKind
    """level: required levels and ties move out to `level` (empty: dropped). slices: slices move out to it. spread: up
    to `amount` pods per domain. apart: rules that keep pods apart move in to `level`. span: the job may span fabrics.
    pods: `amount` fewer pods of `podset`. jobs: the jobs in `names` leave. preemptible: the same, of preemptible jobs
    alone. nodes: what runs on the nodes in `names` leaves. open: the nodes in `names` become schedulable and lose their
    taints. quota: `quotas` are raised. retry: nothing changes, it fits; it was not tried, or not found, before."""
    proven: bool
    """True: no smaller change of this kind lets the job in. False: a smaller one is not ruled out."""
    podset: str = ""
    level: str = ""
    amount: Count = 0
    """How many pods fewer, pods per domain, jobs or nodes."""
    names: tuple[Name, ...] = ()
    quotas: tuple[QuotaRaise, ...] = ()
    sentence: str = ""


class Reason(Frozen):
    """Why one job is not placed."""

    job: str
    kind: ReasonKind
    """impossible: not even on the empty fabric. not_now: room is taken by what runs. outbid: fits alone, other jobs of
    this request came first. quota: its queue's limit. group: another job of its group is not placed.
    not_found: the search's limit was reached; no proof that it cannot."""
    podset: str = ""
    short: str = ""
    """The resource or rule that is short: gpu, gpu share, cpu, memory, pods, level, nodes, ..."""
    fits: tuple[LevelFit, ...] = ()
    causes: tuple[CauseCount, ...] = ()
    """Every node under exactly one cause: the counts add up to all nodes."""
    blockers: tuple[str, ...] = ()
    """Node or job names whose leaving would help, at most a handful."""
    relaxations: tuple[Relaxation, ...] = ()
    """The smallest changes that let it in, one per kind that can; filled on demand, see `relaxations`."""
    sentence: str


class Flag(Frozen):
    """Something odd in the state of the cluster that does not stop the answer."""

    subject: str
    text: str


class RentTable(Frozen):
    """The rents of the leaves inside one domain, their common parent."""

    domain: tuple[str, ...] = ()
    """Path of the parent domain; empty: the whole fabric."""
    rents: tuple[Integer, ...]
    """rents[x] is the rent of a leaf with x free nodes, in 1 / scale of a unit of traffic; starts at 0, never falls."""


class RentMarket(Frozen):
    """Gangs of whole nodes that compete for the same leaves, and the rents there."""

    jobs: tuple[Name, ...]
    tables: tuple[RentTable, ...]


class Certificate(Frozen):
    """Why the traffic of any placement of all `markets`' jobs is at least `bound`: see docs/concepts/rents.md.

    Any rents prove a bound, so there is nothing to trust: what they prove is computed again in whole numbers.
    """

    scale: PositiveCount
    markets: tuple[RentMarket, ...]
    bound: Count


class RunRecord(Frozen):
    """How the answer came about. Only `seconds` differs between equal runs."""

    backend: str
    seconds: float = 0.0
    seed: int = 0
    limit_hit: str = ""
    """The limit that bit, empty where none did."""
    formulation: str = ""
    """The integer program that was solved, where one was: what it folds, its variables, and those it has unfolded."""
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = {}


class Outcome(Frozen):
    """The verified answer to one request."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    status: Status
    placement: Placement | None
    """None where there is no answer at all."""
    levels: tuple[LevelValue, ...] = ()
    reasons: tuple[Reason, ...] = ()
    flags: tuple[Flag, ...] = ()
    certificate: Certificate | None = None
    """For the traffic bound, where it is by rents."""
    run: RunRecord
