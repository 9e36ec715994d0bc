"""A placer that is late: no exact search of one gang, and no growing of sizes, outlives the deadline."""

from __future__ import annotations

from kant_opt.backends.ebinpack import EBinpack
from kant_opt.backends.placer import Placer
from kant_opt.fabric import build_fabric
from kant_opt.schema import Job, Request
from kant_opt.testing.builders import podset, racks
from kant_opt.view import Cluster, Free, compile_gangs


def place(request: Request, *, late: bool) -> str | int:
    """Return why the only gang was not placed, or how many pods were."""
    cluster = Cluster(request, build_fabric(request.fabric, request.nodes))
    taken = Placer(Free(cluster), EBinpack(), is_late=lambda: late).place(compile_gangs(cluster)[0])
    return taken if isinstance(taken, str) else sum(t.pods for t in taken)


def test_an_exact_search_ends_at_the_deadline() -> None:
    """Nodes of 5 and 5 have room for 10 GPUs in all, but pods of 4, 3 and 3 would need 6 on one of them: only trying
    tells, and late nobody knows."""
    job = Job(name="a", podsets=tuple(podset(f"p{i}", 1, n) for i, n in enumerate((4, 3, 3))))
    request = racks("5,5", jobs=[job])
    assert place(request, late=False) == "no_room"
    assert place(request, late=True) == "limit"


def test_an_elastic_gang_stays_at_its_least_size() -> None:
    """Five pods fit and two are the least: late, the least is placed and no larger number tried."""
    request = racks("5", jobs=[Job(name="a", podsets=(podset("p", 9, 1, min_count=2),))])
    assert place(request, late=False) == 5
    assert place(request, late=True) == 2
