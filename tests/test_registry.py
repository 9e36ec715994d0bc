"""Registries and the errors they raise."""

from __future__ import annotations

import doctest

import pytest

from kant_opt import registry
from kant_opt.errors import InputError, KantOptError, UnknownName
from kant_opt.registry import Registry


@pytest.fixture
def colours() -> Registry[int]:
    made: Registry[int] = Registry("colour")
    made.add("red", 1)
    made.add("green", 2)
    return made


def test_parts_come_in_the_order_of_registration(colours: Registry[int]) -> None:
    assert (list(colours), len(colours), colours["green"]) == (["red", "green"], 2, 2)
    assert list(colours.items()) == [("red", 1), ("green", 2)]
    assert "red" in colours
    assert "blue" not in colours


def test_a_second_part_of_one_name_is_refused_and_the_first_stays(colours: Registry[int]) -> None:
    with pytest.raises(ValueError, match="colour 'red' is registered twice"):
        colours.add("red", 3)
    assert colours["red"] == 1


def test_the_decorator_returns_what_it_registers() -> None:
    parts: Registry[type] = Registry("part")

    @parts.register("a")
    class A:
        pass

    assert parts["a"] is A


def test_an_unknown_name_is_told_with_the_known_ones(colours: Registry[int]) -> None:
    with pytest.raises(UnknownName, match=r"^unknown colour 'gren': did you mean 'green'\? known: green, red$"):
        colours["gren"]
    with pytest.raises(UnknownName, match=r"^unknown colour 'xyz': known: green, red$"):
        colours["xyz"]
    with pytest.raises(UnknownName, match=r"known: none$"):
        Registry[int]("thing")["a"]


def test_a_long_list_of_names_is_cut_and_counted() -> None:
    error = UnknownName("node", "q", [f"n{i:02}" for i in range(30)])
    assert "n19, ... (30 in all)" in str(error)
    assert "n20" not in str(error)


def test_an_error_tells_place_problem_and_way_out() -> None:
    error = InputError("3 is odd", place="nodes.0", way_out="use 2")
    assert isinstance(error, KantOptError)
    assert isinstance(error, ValueError)
    assert str(error) == "nodes.0: 3 is odd: use 2"
    assert str(error.within("a.json")) == "a.json: nodes.0: 3 is odd: use 2"
    assert str(InputError("3 is odd").within("a.json")) == "a.json: 3 is odd"


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(registry)
    assert result.attempted > 0
    assert result.failed == 0
