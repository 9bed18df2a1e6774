"""Printed numbers become base units with the step of their last digit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logscope.units import (
    GIB,
    KIB,
    MIB,
    NUMBER_UNITS,
    TEXT_UNITS,
    UNIT_NAMES,
    Quantity,
    count_text,
    gib,
    parse_number,
    result_name,
    seconds_text,
    to_gib,
)


@pytest.mark.parametrize(
    ("text", "unit", "value", "resolution"),
    [
        ("21.71", "GiB", 23_310_934_999, 10_737_419),
        ("10", "GiB", 10 * GIB, GIB),
        ("-1.86", "GiB", -1_997_159_793, 10_737_419),
        ("0.00", "GiB", 0, 10_737_419),
        ("512", "MiB", 512 * MIB, MIB),
        ("2048", "KiB", 2048 * KIB, KIB),
        ("64.00", "GB", 64_000_000_000, 10_000_000),
        ("15.25", "MB", 15_250_000, 10_000),
        ("128.0", "kB", 128_000, 100),
        ("21474836480", "bytes", 21_474_836_480, 1),
        ("9216.50", "bytes", 9216.5, 0.01),
        ("7.23", "s", 7.23, 0.01),
        ("250", "ms", 0.25, 0.001),
        ("-561981", "tokens", -561_981, 1),
        ("178,880", "tokens", 178_880, 1),
        ("1_000", "count", 1000, 1),
        ("0.88", "ratio", 0.88, 0.01),
        ("50", "percent", 0.5, 0.01),
        ("1e-05", "ratio", 1e-05, 1e-05),
        ("1e3", "count", 1000, 1),
        ("03:27", "clock", 207, 1),
        ("1:02:03", "clock", 3723, 1),
    ],
)
def test_printed_number_becomes_base_units(text: str, unit: str, value: float, resolution: float) -> None:
    assert Quantity(value, resolution) == parse_number(text, unit)


@pytest.mark.parametrize(
    "text", ["", "None", "?", "nan", "NaN", "sNaN", "inf", "-Infinity", "1.2.3", "12 GB", "--5", "1e999999999"]
)
@pytest.mark.parametrize("unit", ["GiB", "tokens", "s"])
def test_what_is_no_finite_number_is_unknown(text: str, unit: str) -> None:
    assert None is parse_number(text, unit)


@pytest.mark.parametrize("text", ["", "27", "1:2:3:4", "-1:30", "0:1a", "03:", ":27", "1.5:00", "0:²"])
def test_what_is_no_clock_is_unknown(text: str) -> None:
    assert None is parse_number(text, "clock")


def test_bytes_and_counts_are_whole_numbers() -> None:
    for text, unit in (("21.71", "GiB"), ("0.01", "MiB"), ("3", "tokens"), ("60", "s")):
        quantity = parse_number(text, unit)
        assert quantity is not None
        assert (int, int) == (type(quantity.value), type(quantity.resolution))


@given(st.integers(-99_999_999, 99_999_999), st.sampled_from(["GiB", "MiB", "KiB", "GB", "MB", "kB"]))
def test_neighbouring_prints_still_touch(hundredths: int, unit: str) -> None:
    first, second = (parse_number(f"{n / 100:.2f}", unit) for n in (hundredths, hundredths + 1))
    assert first is not None
    assert second is not None
    assert first.meets(second)
    assert second.meets(first)


@given(st.decimals(-9999, 9999, places=2))
def test_the_value_printed_again_is_the_same_print(number: object) -> None:
    quantity = parse_number(str(number), "GiB")
    assert quantity is not None
    assert f"{number:.2f}".replace("-0.00", "0.00") == gib(quantity.value, quantity.resolution).replace(",", "")


def test_a_print_that_is_two_steps_away_does_not_meet() -> None:
    first, second = parse_number("21.70", "GiB"), parse_number("21.72", "GiB")
    assert first is not None
    assert second is not None
    assert not first.meets(second)


def test_half_a_step_is_the_error_of_a_print() -> None:
    quantity = Quantity(100, 10)
    assert (95, 105) == (quantity.low, quantity.high)


def test_sums_and_differences_add_the_errors() -> None:
    assert Quantity(7, 3) == Quantity(5, 1) + Quantity(2, 2)
    assert Quantity(3, 3) == Quantity(5, 1) - Quantity(2, 2)


@pytest.mark.parametrize(
    ("field", "unit", "result"),
    [
        ("avail_mem", "GiB", "avail_mem_bytes"),
        ("elapsed", "ms", "elapsed_s"),
        ("spent", "clock", "spent_s"),
        ("tokens", "tokens", "tokens"),
        ("full_layer_tokens", "tokens", "full_layer_tokens"),
        ("total_bytes", "bytes", "total_bytes"),
        ("bytes", "bytes", "bytes"),
        ("rate", "percent", "rate"),
        ("model_type", "text", "model_type"),
        ("batch_sizes", "list", "batch_sizes"),
    ],
)
def test_result_name_carries_the_base_unit_once(field: str, unit: str, result: str) -> None:
    assert result == result_name(field, unit)


def test_unit_names_are_those_of_numbers_and_texts() -> None:
    assert (*NUMBER_UNITS, *TEXT_UNITS) == UNIT_NAMES
    assert len(set(UNIT_NAMES)) == len(UNIT_NAMES)


@pytest.mark.parametrize(
    ("byte_count", "resolution", "text"),
    [
        (10.42 * GIB, 0.01 * GIB, "10.42"),
        (10.42 * GIB, 1, "10.42"),
        (61.3 * GIB, 0.2 * GIB, "61.3"),
        (-1.86 * GIB, 1, "-1.86"),
        (-0.001 * GIB, 1, "0.00"),
        (1234.5 * GIB, 1, "1,234.50"),
    ],
)
def test_gib_text_has_the_decimals_that_were_printed(byte_count: float, resolution: float, text: str) -> None:
    assert text == gib(byte_count, resolution)


def test_other_texts() -> None:
    assert 1.5 == to_gib(1.5 * GIB)
    assert "1,234" == seconds_text(1234.4)
    assert "7.23" == seconds_text(7.23, 0.01)
    assert "159,269" == count_text(159_269)
