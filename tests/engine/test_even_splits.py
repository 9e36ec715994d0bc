"""Balance is a wish: it never makes a gang fail, with whatever rules it is combined."""

from __future__ import annotations

from typing import Any

from kant_opt.engine import place
from kant_opt.schema import Job, Outcome, Slice, Spread
from kant_opt.testing.builders import gang, podset, racks


def evenly(most: int) -> dict[str, Any]:
    """Return the rules of a podset that is even over racks, at most so many pods in one."""
    spread = (Spread(level="rack", max_per_domain=most),)
    return {"preferred_level": "rack", "spread": spread, "balance": True}


def racks_of(outcome: Outcome) -> dict[str, int]:
    assert outcome.placement is not None
    found: dict[str, int] = {}
    for pods in outcome.placement.jobs[0].pods:
        rack = pods.node.split("n")[0]
        found[rack] = found.get(rack, 0) + pods.count
    return found


def test_slices_that_a_spread_forbids_fit_nowhere() -> None:
    """Two pods per node slice, one pod per rack: impossible, and said so, not crashed."""
    job = Job(
        name="j",
        podsets=(
            podset(
                "main",
                2,
                0,
                gpu_milli=1,
                min_count=1,
                preferred_level="node",
                balance=True,
                slices=(Slice(level="node", size=2),),
                spread=(Spread(level="rack", max_per_domain=1),),
            ),
        ),
    )
    assert place(racks("1,2|2", jobs=[job])).reasons[0].kind == "impossible"


def test_a_pod_that_no_node_holds() -> None:
    rules: dict[str, Any] = {
        "preferred_level": "rack",
        "spread": (Spread(level="rack", max_per_domain=1),),
        "balance": True,
    }
    assert place(racks("1,2|2", jobs=[gang("a", 1, 3, **rules)])).reasons[0].kind == "impossible"


def test_a_spread_cuts_the_even_share() -> None:
    """Twelve pods over three racks of ten, at most five in one: 4, 4, 4 and not 6, 6."""
    rules: dict[str, Any] = {
        "preferred_level": "rack",
        "spread": (Spread(level="rack", max_per_domain=5),),
        "balance": True,
    }
    assert racks_of(place(racks("10|10|10", jobs=[gang("a", 12, **rules)]))) == {"r1": 4, "r2": 4, "r3": 4}
