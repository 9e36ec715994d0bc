"""A gang of several shapes with one part that cannot fit even alone is refused by counting, before any search."""

from __future__ import annotations

import pytest

from kant_opt import Job, Node, PodSet, Request, place
from kant_opt.backends import placer


def test_a_part_without_room_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three pods of "many" fit at most (one per GPU), so four never do, whatever the other part takes."""

    def searched(*_: object) -> None:
        raise AssertionError("searched for what counting settles")

    monkeypatch.setattr(placer, "ExactGang", searched)
    nodes = (Node(name="a", gpus=2), Node(name="b", gpus=1))
    job = Job(name="j", podsets=(PodSet(name="many", count=4, gpus=1), PodSet(name="other", count=1)))
    (reason,) = place(Request(nodes=nodes, jobs=(job,)), backend="e-binpack").reasons
    assert reason.kind == "impossible"
