"""Capacities: the most pods that rules of counting leave to each domain, inner and outer rules together."""

from __future__ import annotations

from kant_opt.fabric import build_fabric
from kant_opt.schema import Job, Request, Slice, Spread
from kant_opt.testing.builders import gang, racks
from kant_opt.view import Cluster, Free, capacities, compile_gangs


def room(request: Request) -> list[list[int]]:
    free = Free(Cluster(request, build_fabric(request.fabric, request.nodes)))
    (compiled,) = compile_gangs(free.cluster)
    return [r.tolist() for r in capacities(free, compiled.parts[0])]


def of(spec: str, job: Job) -> list[list[int]]:
    return room(racks(spec, jobs=(job,)))


def test_sums_per_level() -> None:
    assert of("3,4|1/2", gang("a", 20)) == [[10], [8, 2], [7, 1, 2], [3, 4, 1, 2]]


def test_slices_round_down_on_each_level() -> None:
    """Nodes of 3, 4, 1 hold slices of 2 as 2, 4, 0; six pods are one rack slice of four and half of the next."""
    sizes = (Slice(level="rack", size=4), Slice(level="node", size=2))
    assert of("3,4,1|2", gang("a", 8, slices=sizes)) == [[4], [4, 0], [2, 4, 0, 0]]


def test_a_spread_outside_binds_the_domains_inside() -> None:
    """One pod per rack leaves a node of four no more than one."""
    assert of("4,4|4", gang("a", 4, spread=(Spread(level="rack", max_per_domain=1),))) == [[2], [1, 1], [1, 1, 1]]


def test_a_slice_outside_closes_domains_whose_outer_domain_holds_none() -> None:
    """The rack of 3 cannot host a slice of 4, so its node is closed though it has room."""
    assert of("3|4", gang("a", 4, slices=(Slice(level="rack", size=4),))) == [[4], [0, 4], [0, 4]]
