"""Quantities are exact: compared with fractions built from their parts."""

from __future__ import annotations

import doctest
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kant_opt import units
from kant_opt.errors import InputError
from kant_opt.units import format_bytes, milli_cpu, num_bytes, quantity, whole

SCALES: dict[str, Fraction] = {
    **{suffix: Fraction(1000**i) for i, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])},
    **{suffix: Fraction(1024**i) for i, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], start=1)},
    **{suffix: Fraction(1, 1000**i) for i, suffix in enumerate(["m", "u", "n"], start=1)},
}


@settings(deadline=None, derandomize=True)
@given(
    st.integers(0, 9999),
    st.integers(0, 999),
    st.sampled_from(list(SCALES)),
    st.sampled_from(["", "-", "+"]),
)
def test_a_quantity_is_its_number_times_its_unit(units_: int, thousandths: int, suffix: str, sign: str) -> None:
    expected = (units_ + Fraction(thousandths, 1000)) * SCALES[suffix] * (-1 if sign == "-" else 1)
    text = f"{sign}{units_}.{thousandths:03}{suffix}"
    if abs(expected) < 2**62:
        assert Fraction(quantity(text)) == expected
    else:
        with pytest.raises(InputError, match="too large"):
            quantity(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("1e3", 1000), ("1E3", 1000), ("2E", 2 * 10**18), ("1e-3", Fraction(1, 1000)), (".5", Fraction(1, 2))],
        *[("5.", 5), ("12e2k", 1_200_000), (" 8 ", 8), ("0", 0), ("9e-999", Fraction(9, 10**999))],
        ("1.00000000000000000000000000000000000000001Gi", Fraction(10**41 + 1, 10**41) * 2**30),  # all digits count
    ],
)
def test_exponents_and_short_forms(text: str, value: Fraction | int) -> None:
    assert Fraction(quantity(text)) == value


@pytest.mark.parametrize(
    "text", ["", " ", "eight", "1 Gi", "1.2.3", "--1", "1e", "0x10", "1Gi2", "NaN", "inf", "1e9999", "٣", "1,5", "e3"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        quantity(text)


def test_the_refusal_names_value_and_way_out() -> None:
    with pytest.raises(InputError, match=r"'64GB' has the unknown unit 'GB': use m, k, M, G, Ki, Mi, Gi"):
        quantity("64GB")
    with pytest.raises(InputError, match=r"'x{64}' is not a quantity: write e.g. '8', '1500m', '64Gi'"):
        quantity("x" * 10_000)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("1500u", 1, 2), ("8", 8000, 8000), ("-1500u", -2, -1), ("1n", 0, 1)]
)
def test_capacities_round_down_and_requests_up(text: str, low: int, high: int) -> None:
    """A thousandth more of room than there is, or less asked than needed, would place what does not fit."""
    assert (milli_cpu(text), milli_cpu(text, up=True)) == (low, high)


@settings(deadline=None, derandomize=True)
@given(st.decimals(min_value=-(10**9), max_value=10**9, places=6))
def test_rounding_stays_within_one(value: Decimal) -> None:
    assert whole(value) <= value < whole(value) + 1
    assert whole(value, up=True) - 1 < value <= whole(value, up=True)


def test_bytes() -> None:
    assert num_bytes("64Gi") == 64 * 1024**3
    assert num_bytes("64G") == 64 * 1000**3
    assert num_bytes("1.5Ki", up=True) == 1536


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (2**36, "64 GiB"), (10 * 2**30, "10 GiB")],
)
def test_bytes_for_people(value: int, text: str) -> None:
    assert format_bytes(value) == text


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(units)
    assert result.attempted > 0
    assert result.failed == 0
