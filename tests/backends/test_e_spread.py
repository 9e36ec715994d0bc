"""E-Spread: a zone for inference, spread inside it, everything else packed outside."""

from __future__ import annotations

from kant_opt.engine import place
from kant_opt.schema import Job, Request, Zone
from kant_opt.testing.builders import gang, racks
from kant_opt.verify import verify


def where(request: Request) -> dict[str, dict[str, int]]:
    outcome = place(request, backend="e-spread", order="online")
    assert outcome.placement is not None
    assert verify(request, outcome.placement) == ()
    return {job.job: {pods.node: pods.count for pods in job.pods} for job in outcome.placement.jobs}


def serving(name: str, pods: int, gpus: int = 1) -> Job:
    return gang(name, pods, gpus, kind="inference", communication="none")


ZONE = Zone(nodes=("r2n1", "r2n2", "r2n3"))


def test_inference_is_dealt_out_over_the_zone() -> None:
    """Three pods, three nodes of the zone: one each."""
    request = racks("8,8,8|8,8,8", jobs=[serving("s", 3)], inference_zone=ZONE)
    assert where(request) == {"s": {"r2n1": 1, "r2n2": 1, "r2n3": 1}}


def test_training_is_packed_outside_though_the_zone_is_tighter() -> None:
    """E-Binpack alone would take the rack with the least room, which is the zone."""
    request = racks("8,8,8,8|8,8,8", jobs=[gang("t", 2, 8)], inference_zone=ZONE)
    assert set(where(request)["t"]) <= {"r1n1", "r1n2", "r1n3", "r1n4"}


def test_what_the_zone_cannot_hold_goes_outside_and_the_other_way_round() -> None:
    """Four whole nodes of inference do not fit three; nor do four of training fit the one rack that is left."""
    jobs = [serving("s", 4, 8), gang("t", 2, 8)]
    request = racks("8,8,8|8,8,8", jobs=jobs, inference_zone=ZONE)
    found = where(request)
    assert sum(found["s"].values()) == 4
    assert sum(found["t"].values()) == 2


def test_the_zone_may_be_given_by_labels() -> None:
    request = racks("8,8|8,8", jobs=[serving("s", 2)], inference_zone=Zone(selector={"use": ("serve",)}))
    nodes = tuple(n.model_copy(update={"labels": {"use": "serve"} if n.path == ("r2",) else {}}) for n in request.nodes)
    assert where(request.model_copy(update={"nodes": nodes})) == {"s": {"r2n1": 1, "r2n2": 1}}


def test_without_a_zone_it_is_e_binpack() -> None:
    request = racks("8,8|8,8,8", jobs=[serving("s", 3), gang("t", 2, 8)])
    packed = place(request, backend="e-binpack", order="online").placement
    assert place(request, backend="e-spread", order="online").placement == packed
