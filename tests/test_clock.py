"""Printed times are read, and only differences of one clock are meant."""

import pytest

from logscope.clock import read_clock, seconds_between, seconds_to_glog


@pytest.mark.parametrize(
    ("text", "seconds", "has_date"),
    [
        ("2026-01-05 10:00:00", 1_767_607_200.0, True),
        ("2026-01-05 10:00:00.500", 1_767_607_200.5, True),
        ("2026-01-05 10:00:00,500", 1_767_607_200.5, True),
        ("2026-01-05T10:00:00Z", 1_767_607_200.0, True),
        ("2026-01-05T11:00:00+01:00", 1_767_607_200.0, True),
        ("2026-01-05T11:00:00+0100", 1_767_607_200.0, True),
        ("2026-01-05T10:00:00.250000999Z", 1_767_607_200.25, True),
        (" 2026-01-05 10:00:00 ", 1_767_607_200.0, True),
        ("Mon 2026-01-05 10:00:00 CET", 1_767_607_200.0, True),
        ("Mon 2026-01-05 10:00:00.250000 UTC", 1_767_607_200.25, True),
        ("Jan  5 10:00:00", 947_066_400.0, True),
        ("Feb 29 00:00:01", 951_782_401.0, True),
        ("23:17:01", 83_821.0, False),
        ("9:00:00.25", 32_400.25, False),
        ("10:00:00,5", 36_000.5, False),
    ],
)
def test_time_is_read(text: str, seconds: float, has_date: bool) -> None:
    assert (seconds, has_date) == read_clock(text)


@pytest.mark.parametrize(
    "text", ["", "soon", "10:00", "2026-13-05 10:00:00", "2026-01-05 25:00:00", "Foo  5 10:00:00", "Jan 32 10:00:00"]
)
def test_what_is_no_time_is_unknown(text: str) -> None:
    assert None is read_clock(text)


@pytest.mark.parametrize(
    ("earlier", "later", "difference"),
    [
        ("2026-01-05 10:00:00", "2026-01-05 10:01:05", 65.0),
        ("2026-01-05 10:00:05", "2026-01-05 10:00:00", -5.0),
        ("2025-12-31 23:59:59", "2026-01-01 00:00:01", 2.0),
        ("2026-01-05T10:00:00+01:00", "2026-01-05T10:00:00Z", 3600.0),
        ("Jan  5 10:00:00", "Jan  6 10:00:00", 86_400.0),
        ("10:00:00", "10:00:07", 7.0),
        ("10:00:07", "10:00:00", -7.0),
        ("Dec 31 23:59:59", "Jan  1 00:00:01", 2.0),
        ("Jan  1 00:00:01", "Dec 31 23:59:59", -2.0),
    ],
)
def test_seconds_between_two_readings_of_one_clock(earlier: str, later: str, difference: float) -> None:
    assert difference == seconds_between(earlier, later)


def test_clock_without_a_date_may_pass_midnight_once() -> None:
    assert 3.0 == seconds_between("23:59:58", "00:00:01")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (None, "10:00:00"),
        ("10:00:00", None),
        ("10:00:00", "2026-01-05 10:00:00"),
        ("2026-01-05 10:00:00", "10:00:00"),
        ("soon", "10:00:00"),
        ("10:00:00", ""),
    ],
)
def test_difference_of_different_clocks_is_unknown(earlier: str | None, later: str | None) -> None:
    assert None is seconds_between(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "text", "seconds"),
    [
        ("2026-02-27 09:21:51", "[rank3]:[E227 09:32:20.123456 ProcessGroupNCCL.cpp:632] [Rank 3] text", 629.0),
        ("2026-02-27 09:21:51.750", "[E1127 09:21:51.123456 ProcessGroupNCCL.cpp:632] text", 0.0),
        ("2026-02-27 23:59:00", "W0228 00:01:00.000001 140 torch/x.py:1] text", 120.0),
        ("2026-02-27 09:21:51", "[rank3]:[E227 09:21:50.000000 ProcessGroupNCCL.cpp:632] text", None),
        ("2026-02-27T09:21:51Z", "[rank3]:[E227 09:32:20.123456 ProcessGroupNCCL.cpp:632] text", None),
        ("2026-02-27 09:21:51", "RuntimeError: no clock 09:32:20", None),
    ],
)
def test_a_line_of_glog_has_a_clock_of_its_own(earlier: str, text: str, seconds: float | None) -> None:
    assert seconds == seconds_to_glog(earlier, text)
