"""Slurm's own gangs, on the state Slurm was in: fewer spines, no more leaves, no more broken nodes than Slurm."""

from __future__ import annotations

from functools import cache

import pytest

from kant_opt.backends import Order
from kant_opt.engine import place
from kant_opt.metrics import measure
from kant_opt.schema import Outcome
from kant_opt.verify import verify

from .slurm import LEAST_COST, Recording, Score, folder, load

pytestmark = pytest.mark.skipif(folder() is None, reason="the recordings of Slurm are not beside the checkout")

SLURM = {
    "pow2-5": Score(23, 3, 5),
    "odd-5": Score(33, 5, 6),
    "odd-6": Score(31, 8, 8),
    "churn-odd-7": Score(30, 14, 9),
    "churn-pow2-8": Score(37, 11, 4),
}
"""As counted by the tool that recorded them, which shares no code with kant_opt."""

recording = cache(load)


@cache
def placed(name: str, order: Order) -> Outcome:
    return place(recording(name).request, order=order)


def score(name: str, order: Order) -> Score:
    outcome = placed(name, order)
    assert outcome.placement is not None
    return recording(name).score(outcome.placement)


@pytest.mark.parametrize("name", SLURM)
def test_the_recording_is_read_as_slurm_left_it(name: str) -> None:
    """Slurm's answer breaks no rule of ours and scores what the recorder's own count says."""
    found: Recording = recording(name)
    assert verify(found.request, found.slurm) == ()
    assert found.score(found.slurm) == SLURM[name]
    assert measure(found.request, found.slurm)["traffic"] == SLURM[name].cost


@pytest.mark.parametrize("order", ["online", "batch"])
@pytest.mark.parametrize("name", SLURM)
def test_every_gang_is_placed(name: str, order: Order) -> None:
    """Slurm placed them all on the same state, so all fit together."""
    outcome = placed(name, order)
    assert outcome.placement is not None
    assert outcome.reasons == ()
    assert {job.job for job in outcome.placement.jobs} == {job.name for job in recording(name).request.jobs}


@pytest.mark.parametrize("name", SLURM)
def test_in_order_of_arrival_it_needs_fewer_spines_and_no_more_of_the_rest(name: str) -> None:
    ours, slurm = score(name, "online"), SLURM[name]
    assert ours.extra_spines < slurm.extra_spines
    assert ours.extra_leaves <= slurm.extra_leaves
    assert ours.broken_nodes <= slurm.broken_nodes


@pytest.mark.parametrize("name", SLURM)
def test_all_at_once_it_needs_less_of_everything(name: str) -> None:
    """Also shows that Slurm is above the least in each recording and each number: ours is an answer with less."""
    ours, slurm = score(name, "batch"), SLURM[name]
    assert ours.extra_leaves < slurm.extra_leaves
    assert ours.extra_spines < slurm.extra_spines
    assert ours.broken_nodes < slurm.broken_nodes


@pytest.mark.parametrize("order", ["online", "batch"])
@pytest.mark.parametrize("name", SLURM)
def test_value_and_bound_lie_on_their_sides_of_the_proven_least_cost(name: str, order: Order) -> None:
    """Our counting bound may not exceed the least that HiGHS proved, nor any answer undercut it; ours stays near."""
    traffic = next(level for level in placed(name, order).levels if level.name == "traffic")
    assert traffic.bound is not None
    assert traffic.bound <= LEAST_COST[name] <= traffic.value == score(name, order).cost
    assert traffic.value <= 1.15 * LEAST_COST[name]
