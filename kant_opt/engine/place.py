"""Where do these gangs go, now? One verified answer, measured and bounded, with a reason for each that stays out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from time import perf_counter

from kant_opt.backends import (
    BACKENDS,
    Answer,
    Backend,
    Deadline,
    OnEvent,
    Order,
    Proof,
    Stop,
    Taken,
    Task,
    find_proof,
)
from kant_opt.backends.cpsat import CpSat
from kant_opt.backends.exact import Exact
from kant_opt.engine.levels import bounds_of, level_values, values_of_levels
from kant_opt.engine.reasons import Explainer
from kant_opt.errors import BackendUnavailable, WrongAnswer
from kant_opt.fabric import build_fabric, check_levels
from kant_opt.metrics import measure
from kant_opt.schema import (
    LevelValue,
    Limits,
    Outcome,
    PlacedJob,
    PlacedPods,
    Placement,
    Reason,
    Request,
    RunRecord,
    Status,
)
from kant_opt.verify import verify
from kant_opt.view import Cluster, Free, Quotas, compile_gangs

log = logging.getLogger("kant_opt")
AUTO = {"batch": "search", "online": "e-binpack"}
"""Where `backend="auto"` begins: gangs known together may change places, gangs that come one by one may not."""
THEN = Exact("cp-sat", CpSat, most=20_000, work=0.05)
"""Whom it asks where a batch is not proven optimal then: for answers in seconds, so in small programs only."""
_AFTERWARDS = 4.0
"""Verifying and measuring a whole answer cost about so many times what reading the cluster did before the search."""


def place(
    request: Request,
    *,
    backend: str = "auto",
    order: Order = "batch",
    limits: Limits | None = None,
    prove: bool = True,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
) -> Outcome:
    """Place the request's jobs and return a verified outcome.

    `backend` is a name in BACKENDS ("auto" picks by AUTO), `order` whether gangs are taken by priority and size or as
    given, `limits` replaces the request's. Without `prove` bounds are by counting alone and no solver is loaded for
    them. `on_event` is told what is found on the way, also from other threads; `stop`, asked by another thread, a
    signal's handler or `on_event` itself, ends the search: the best answer until then is verified and returned, with
    `limit_hit` "stopped". Never raises for bad luck: what cannot be placed has a reason. Raises
    InputError or UnknownName for data or names that cannot be meant, WrongAnswer for a bug of ours. About 20 us per
    pod and a pass over the nodes per new pod shape.

    >>> from kant_opt.schema import FabricSpec, Job, Node, PodSet
    >>> nodes = tuple(Node(name=f"n{i}", path=(f"leaf{i // 2}",), gpus=8) for i in range(4))
    >>> gang = Job(name="train", podsets=(PodSet(count=2, gpus=8),))
    >>> outcome = place(Request(fabric=FabricSpec(levels=("leaf",)), nodes=nodes, jobs=(gang,)))
    >>> outcome.status, outcome.placement.jobs[0].nodes
    ('OPTIMAL', ('n0', 'n1'))
    """
    started = perf_counter()
    limits = limits or request.limits
    chosen = _backend(AUTO[order] if backend == "auto" else backend)
    deadline = Deadline(limits.deadline_ms, stop)
    fabric = build_fabric(request.fabric, request.nodes)
    check_levels(request, fabric)
    cluster = Cluster(request, fabric)
    free, quotas, gangs = Free(cluster), Quotas(cluster), compile_gangs(cluster)
    search_until = deadline.earlier(_AFTERWARDS * (perf_counter() - started))
    task = Task(cluster, free, quotas, gangs, order, limits, search_until, on_event)
    answer = chosen.solve(task)
    outcome = _judged(task, answer, chosen.name, deadline, prove=prove)
    _tell(task, outcome)
    if backend == "auto" and prove and _is_worth_more(task, outcome):
        answer.bounds = bounds_of(outcome)
        THEN.improve(task, answer)
        outcome = _judged(task, answer, f"{chosen.name}, {THEN.name}", deadline, prove=prove)
        _tell(task, outcome)
    run = outcome.run.model_copy(update={"seconds": round(perf_counter() - started, 4)})
    return outcome.model_copy(update={"run": run})


def _tell(task: Task, outcome: Outcome) -> None:
    """Pass on what the outcome says: what was news before is verified now."""
    for level in outcome.levels:
        task.tell(outcome.run.backend, level.name, "incumbent", level.value)
        if level.bound is not None:
            task.tell(level.bound_source, level.name, "bound", level.bound)


def _is_worth_more(task: Task, outcome: Outcome) -> bool:
    """Return whether a solver is to be asked: gaps are left, and nobody has wishes that the objective does not count
    and the answer at hand meets (pods spread evenly, or close together below the leaves).
    """
    if task.order != "batch" or task.deadline.passed or outcome.status not in ("FEASIBLE", "UNKNOWN"):
        return False
    wishes = any(
        part.podset.balance or part.preferred == task.cluster.tree.node_depth
        for gang in task.gangs
        for part in gang.parts
    )
    return not wishes and THEN.available()


def _judged(task: Task, answer: Answer, backend: str, deadline: Deadline, *, prove: bool) -> Outcome:
    """Return the answer as an outcome: verified, measured, explained and bounded, the last two as time allows."""
    cluster, fabric, request = task.cluster, task.cluster.tree.fabric, task.cluster.request
    placement = to_placement(cluster, answer)
    if broken := verify(request, placement, fabric):
        raise WrongAnswer(
            f"backend {backend!r} broke a rule: {'; '.join(str(v) for v in broken[:3])}; please report the request"
        )
    values = values_of_levels(request.objective, measure(request, placement, fabric))
    explainer = Explainer(cluster, task.free, task.limits.search_states)
    reasons = explainer.explain(answer, deadline)
    proof = _proof(task, answer, explainer, values, deadline, prove=prove)
    levels, certificate = level_values(values, proof, answer)
    status = _status(answer, reasons, levels)
    limit = "" if status == "OPTIMAL" else "stopped" if task.deadline.stop.asked else answer.limit_hit
    return Outcome(
        status=status,
        placement=placement,
        levels=levels,
        reasons=reasons,
        flags=tuple(explainer.before.flags),
        certificate=certificate,
        run=RunRecord(
            backend=backend,
            seed=task.limits.seed,
            limit_hit=limit,
            formulation=answer.formulation,
            notes=tuple(answer.notes),
            versions=_versions(),
        ),
    )


def to_placement(cluster: Cluster, answer: Answer) -> Placement:
    """Return an answer as a document: jobs in the order of the request, those with nothing to place left out."""
    pods: dict[str, list[Taken]] = {}
    for gang, taken in answer.taken:
        for job in gang.jobs if len(gang.jobs) > 1 else ():  # one that grows by nothing is listed for its group
            pods.setdefault(job.name, [])
        for t in taken:
            pods.setdefault(t.part.job.name, []).append(t)
    jobs = [job for job in cluster.request.jobs if job.name in pods]
    return Placement(jobs=tuple(placed_job(cluster, job.name, pods[job.name]) for job in jobs))


def placed_job(cluster: Cluster, job: str, taken: list[Taken]) -> PlacedJob:
    """Return the pods of one job, by podset and node. GPUs are named unless the pods take all of the node's."""
    found = []
    for podset, pods in _by_podset(taken):
        for t in sorted(pods, key=lambda t: t.node):
            node = cluster.nodes[t.node]
            all_of_it = t.part.shape.gpus * t.pods == node.gpus
            gpus = () if all_of_it or not t.part.shape.uses_gpu else t.gpus
            found.append(PlacedPods(podset=podset, node=node.name, count=t.pods, gpus=gpus))
    return PlacedJob(job=job, pods=tuple(found))


def _by_podset(taken: list[Taken]) -> list[tuple[str, list[Taken]]]:
    """Return the pods per podset, in the job's order of podsets."""
    pods: dict[str, list[Taken]] = {}
    for t in taken:
        pods.setdefault(t.part.podset.name, []).append(t)
    order = [podset.name for podset in taken[0].part.job.podsets] if taken else []
    return [(name, pods[name]) for name in order if name in pods]


def _backend(name: str) -> Backend:
    found = BACKENDS[name]
    if not found.available():
        raise BackendUnavailable(f"backend {found.name!r} is not installed")
    return found


def _proof(
    task: Task, answer: Answer, explainer: Explainer, values: Mapping[str, int], deadline: Deadline, *, prove: bool
) -> Proof:
    """Return the bounds of the answer's levels. Past the deadline no gang is tried alone, and they are the weaker."""
    admitted = [gang for gang, _ in answer.taken]
    possible = admitted + [
        gang for gang, why in answer.failed if why == "limit" or deadline.late or not explainer.impossible_alone(gang)
    ]
    seconds = deadline.seconds_left if prove else 0
    known = "traffic" in answer.bounds or task.order == "online"  # one by one, nobody waits for a solver
    stop = None if seconds == 0 or known else deadline.stop
    return find_proof(task.cluster, explainer.before, possible, admitted, values, task.rents, seconds, whole=stop)


def _status(answer: Answer, reasons: tuple[Reason, ...], levels: tuple[LevelValue, ...]) -> Status:
    if answer.failed and not answer.taken:
        return "UNKNOWN" if any(r.kind == "not_found" for r in reasons) else "INFEASIBLE"
    return "OPTIMAL" if all(level.proven for level in levels) else "FEASIBLE"


def _versions() -> dict[str, str]:
    found = {}
    for package in ("kant-opt", "numpy", "networkx"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            log.debug("%s is not installed as a package", package)
    return found
