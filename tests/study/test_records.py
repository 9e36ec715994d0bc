"""Stored instances and what is known of them: every record is verified again, and only better answers change one."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from kant_opt.engine import place
from kant_opt.errors import InputError, UnknownName
from kant_opt.io import load_placement, save
from kant_opt.schema import LevelValue, Outcome, Placement, Request
from kant_opt.study import Instances, Record, check, digest_of, instances, merged, read_records, submit
from kant_opt.study.records import outcome_or_placement
from kant_opt.study.spans import SPANS, spans
from kant_opt.testing.brute_force import brute_force
from kant_opt.testing.builders import gang, placement, racks

SHIPPED = Instances()
RECORDS = read_records(SHIPPED.best_known)
TOYS = SHIPPED.names("toy/*")
TOO_MANY_TO_TRY = {"toy/greedy-trap", "toy/three-into-two"}
"""12 nodes: their optimum is argued by 0 traffic and all admitted, which nothing can better."""


@pytest.mark.parametrize("name", [n for n in RECORDS if n.startswith("toy/")])
def test_a_record_of_a_toy_holds(name: str) -> None:
    assert list(check(SHIPPED, RECORDS[name])) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in RECORDS if not n.startswith("toy/")])
def test_a_record_holds(name: str) -> None:
    assert list(check(SHIPPED, RECORDS[name])) == []


def test_one_large_record_holds_and_every_solution_has_a_record() -> None:
    if "slurm-2048" in RECORDS:
        assert list(check(SHIPPED, RECORDS["slurm-2048"])) == []
    solutions = set(SHIPPED.folder.rglob("solutions/*.json.gz"))
    assert solutions == {SHIPPED.solution(name) for name in RECORDS}


def test_every_toy_is_known_and_told_of() -> None:
    text = (SHIPPED.folder / "toy" / "README.md").read_text()
    for name in TOYS:
        assert all(level.proven for level in RECORDS[name].levels)
        assert f"| `{name.removeprefix('toy/')}` |" in text
    assert len(TOYS) == text.count("\n| `") >= 10


@pytest.mark.parametrize("name", [n for n in TOYS if n not in TOO_MANY_TO_TRY])
def test_a_toys_best_value_is_that_of_trying_all_placements(name: str) -> None:
    best = brute_force(SHIPPED.load(name)).values
    assert best == tuple((level.name, level.value) for level in RECORDS[name].levels)


def test_the_others_cannot_be_bettered() -> None:
    for name in TOO_MANY_TO_TRY:
        admitted, *costs = RECORDS[name].levels
        wanted = sum(1000 * p.count * p.gpus for job in SHIPPED.load(name).jobs for p in job.podsets)
        assert (admitted.value, [level.value for level in costs]) == (wanted, [0, 0, 0])


def test_a_generated_instance_is_the_same_again_and_as_full_as_it_says() -> None:
    for name, nodes in (("spans/10k-odd-full", 10_240), ("spans/10k-even-over", 11_264)):
        request = SHIPPED.load(name)
        assert request.name == name
        assert sum(podset.count for job in request.jobs for podset in job.podsets) == nodes
        assert digest_of(request) == digest_of(spans(SPANS[name]))


def test_a_changed_request_has_another_digest() -> None:
    one, other = racks("8|8", jobs=[gang("a", 2, 8)]), racks("8|8", jobs=[gang("a", 2, 4)])
    assert digest_of(one) == digest_of(one.model_copy()) != digest_of(other)


# -- submitting ------------------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path: Path) -> Instances:
    """A folder with one instance, `f/one`: a gang of 2 nodes on racks of 3 and 2."""
    (tmp_path / "f").mkdir()
    save(racks("8,8,8|8,8", jobs=[gang("a", 2, 8)]), tmp_path / "f" / "one.json")
    return Instances(tmp_path)


CUT = placement(a={"r1n1": 1, "r2n1": 1})  # traffic 1, both racks broken
BROKEN = placement(a={"r1n1": 1, "r1n2": 1})  # traffic 0, one rack broken
BEST = placement(a={"r2n1": 1, "r2n2": 1})  # fills the rack of 2


def values(record: Record) -> list[int]:
    return [level.value for level in record.levels]


def test_a_better_answer_replaces_the_record_and_its_solution_a_worse_one_nothing(mine: Instances) -> None:
    assert mine.names() == ("f/one",)
    record, changed = submit(mine, "f/one", BROKEN, backend="me")
    assert (values(record), changed, record.backend) == ([16000, 0, 0, 1], True, "me")
    assert [level.bound for level in record.levels] == [None] * 4  # a placement proves nothing
    before = mine.best_known.read_bytes()
    assert submit(mine, "f/one", CUT) == (record, False)
    assert mine.best_known.read_bytes() == before
    record, changed = submit(mine, "f/one", BEST)
    assert (values(record), changed) == ([16000, 0, 0, 0], True)
    assert load_placement(mine.solution("f/one")) == BEST
    assert list(check(mine, record)) == []
    assert read_records(mine.best_known) == {"f/one": record}


def test_bounds_count_only_where_they_are_believed(mine: Instances) -> None:
    outcome = place(mine.load("f/one"))
    assert submit(mine, "f/one", outcome)[0].levels[0].bound is None
    record, changed = submit(mine, "f/one", outcome, take_bounds=True)
    assert changed
    assert all(level.proven for level in record.levels)
    assert submit(mine, "f/one", BEST) == (record, False)  # bounds stay


def test_an_answer_that_breaks_a_rule_or_a_bound_that_a_solution_beats_is_refused(mine: Instances) -> None:
    with pytest.raises(InputError, match=r"f/one: the placement breaks 1 rules, first gang"):
        submit(mine, "f/one", placement(a={"r1n1": 1}))
    outcome = place(mine.load("f/one"))
    lie = outcome.levels[1].model_copy(update={"bound": 1})
    levels = (outcome.levels[0], lie, *outcome.levels[2:])
    with pytest.raises(InputError, match=r"the bound 1 of traffic is beaten by the placement's own 0"):
        submit(mine, "f/one", outcome.model_copy(update={"levels": levels}), take_bounds=True)
    worse = outcome.model_copy(update={"levels": levels, "placement": CUT})  # no lie by its own solution
    submit(mine, "f/one", BEST)
    with pytest.raises(InputError, match=r"f/one: the bound 1 of traffic \(.*\) is beaten by a verified solution of 0"):
        submit(mine, "f/one", worse, take_bounds=True)
    assert not any(level.bound for level in read_records(mine.best_known)["f/one"].levels)


def test_a_record_of_another_request_is_dropped(mine: Instances) -> None:
    submit(mine, "f/one", BEST)
    save(racks("8,8,8|8,8", jobs=[gang("a", 3, 8)]), mine.folder / "f" / "one.json")
    (old,) = read_records(mine.best_known).values()
    assert list(check(mine, old)) == ["the instance has changed since"]
    record, changed = submit(mine, "f/one", placement(a={"r1n1": 1, "r1n2": 1, "r2n1": 1}))
    assert changed
    assert values(record) == [24000, 1, 0, 2]


def test_check_finds_what_is_wrong(mine: Instances) -> None:
    record, _ = submit(mine, "f/one", BEST)
    wrong = record.levels[1].model_copy(update={"value": 3, "bound": 5})
    false = record.model_copy(update={"levels": (record.levels[0], wrong, *record.levels[2:])})
    assert list(check(mine, false)) == [
        "traffic is 3, of the solution 0",
        "traffic: bound 5 is beaten by the value 3",
    ]
    save(placement(a={"r1n1": 1}), mine.solution("f/one"))
    assert "gang" in next(check(mine, record))
    mine.solution("f/one").unlink()
    assert list(check(mine, record)) == ["its solution is missing"]
    assert list(check(mine, record.model_copy(update={"instance": "g"}))) == ["no such instance"]


def level(sense: str, value: int, bound: int | None) -> LevelValue:
    return LevelValue.model_validate({"name": sense, "sense": sense, "value": value, "bound": bound})


def known(*levels: LevelValue) -> Record:
    return Record(instance="i", digest="d", levels=levels, backend="b")


def test_bounds_hold_up_to_the_first_level_that_differs() -> None:
    """The second level's bound of a worse answer speaks of answers as good as that one on the first: 7 < 8."""
    worse = known(level("max", 7, 8), level("min", 1, 1))
    better = known(level("max", 8, 9), level("min", 5, 2))
    expected = (level("max", 8, 8), level("min", 5, 2))
    assert merged(worse, better).levels == merged(better, worse).levels == expected


def test_of_equal_answers_each_level_keeps_the_better_bound() -> None:
    one = known(level("max", 8, 9), level("min", 5, 3))
    two = known(level("max", 8, None), level("min", 5, 4))
    assert merged(one, two).levels == (level("max", 8, 9), level("min", 5, 4))


def test_mistakes_are_told(mine: Instances, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"unknown instance 'f/on': did you mean 'f/one'\?"):
        mine.load("f/on")
    with pytest.raises(InputError, match="is no folder"):
        Instances(tmp_path / "none")
    mine.best_known.write_text("{}\n")
    with pytest.raises(InputError, match=r"best-known.jsonl: line 1: .*field 'instance' is missing"):
        read_records(mine.best_known)
    mine.best_known.write_text("{\n")
    with pytest.raises(InputError, match=r"best-known.jsonl: line 1: is no JSON"):
        read_records(mine.best_known)


def test_an_answer_is_read_as_what_it_is(tmp_path: Path) -> None:
    request: Request = racks("8|8", jobs=[gang("a", 1, 8)])
    outcome = place(request)
    save(outcome, tmp_path / "o.json")
    assert isinstance(outcome_or_placement(tmp_path / "o.json"), Outcome)
    save(placement(a={"r1n1": 1}), tmp_path / "p.json")
    assert isinstance(outcome_or_placement(tmp_path / "p.json"), Placement)


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(instances)
    assert result.attempted > 0
    assert result.failed == 0
