"""Which gangs are admitted where not all fit: as many GPUs of every class, and then the least traffic."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kant_opt.engine import place
from kant_opt.schema import Outcome
from kant_opt.testing.builders import gang, racks


def values(outcome: Outcome) -> dict[str, int]:
    return {level.name: level.value for level in outcome.levels}


def test_gangs_that_need_no_cut_are_taken_before_one_that_does() -> None:
    """Four nodes in two racks. The gang of four is cut; two gangs of two are as many GPUs and are not."""
    request = racks("8,8|8,8", jobs=[gang("large", 4, 8), gang("a", 2, 8), gang("b", 2, 8)])
    assert values(place(request, backend="e-binpack"))["traffic"] == 1
    found = place(request, backend="search")
    assert found.placement is not None
    assert {job.job for job in found.placement.jobs} == {"a", "b"}
    assert found.status == "OPTIMAL"
    assert [reason.kind for reason in found.reasons] == ["outbid"]


def test_a_higher_class_is_never_given_up_for_traffic() -> None:
    """The gang of four is of a higher class, so it stays, cut as it is."""
    request = racks("8,8|8,8", jobs=[gang("large", 4, 8, priority=1), gang("a", 2, 8), gang("b", 2, 8)])
    found = place(request, backend="search")
    assert found.placement is not None
    assert {job.job for job in found.placement.jobs} == {"large"}
    assert found.status == "OPTIMAL"


def test_fewer_gpus_are_never_taken_for_less_traffic() -> None:
    """Five nodes in racks of three and two: four and one fill them with one cut; three and one leave a node idle."""
    request = racks("8,8,8|8,8", jobs=[gang("four", 4, 8), gang("three", 3, 8), gang("one", 1, 8)])
    outcome = place(request, backend="search")
    assert values(outcome)["admitted[0]"] == 5 * 8000
    assert values(outcome)["traffic"] == 1


def test_a_cheaper_set_that_does_not_fit_is_not_taken() -> None:
    """By counting, 3 + 3 + 2 cost nothing in racks of four, less than 6 + 2; but 3 and 3 leave one node in each rack,
    and the gang of two is cut after all."""
    jobs = [gang("six", 6, 8), gang("x", 3, 8), gang("y", 3, 8), gang("z", 2, 8)]
    found = place(racks("8,8,8,8|8,8,8,8", jobs=jobs), backend="search")
    assert values(found)["admitted[0]"] == 8 * 8000
    assert values(found)["traffic"] == 1
    assert found.status == "OPTIMAL"


SIZES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 1)), min_size=2, max_size=8)


@settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(SIZES, st.sampled_from(["8,8|8,8|8", "8,8,8|8,8,8/8,8|8", "8,8,8,8|8"]))
def test_never_worse_than_the_greedy(gangs: list[tuple[int, int]], spec: str) -> None:
    request = racks(spec, jobs=[gang(f"g{i}", n, 8, priority=p) for i, (n, p) in enumerate(gangs)])
    greedy, found = place(request, backend="e-binpack"), place(request, backend="search")
    for one, two in zip(greedy.levels, found.levels, strict=True):
        if one.value != two.value:
            assert (two.value > one.value) == (one.sense == "max")
            return
