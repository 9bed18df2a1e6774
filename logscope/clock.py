"""Clocks as logs print them. Only differences between readings of one clock mean anything: zones are never mixed."""

from __future__ import annotations

import math
import re
from datetime import datetime
from functools import lru_cache

DAY_S = 86_400.0
_TIME_ONLY = re.compile(r"(\d{1,2}):(\d\d):(\d\d)(?:[.,](\d+))?$")
_YEAR_S = 366 * DAY_S  # of the year that stands for the one that syslog leaves out
_GLOG = re.compile(r"(?:\[rank\d+\]:\s*)?\[?[EWIF]\d{3,4} (\d\d:\d\d:\d\d)")
_LOCAL = re.compile(r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(?:[.,]\d+)?")
_NAMED_ZONE = re.compile(r"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) [A-Z]{2,6}$")
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d(?:\.\d+)?)$")


@lru_cache(maxsize=8192)
def read_clock(text: str) -> tuple[float, bool] | None:
    """Read a printed time.

    Returns:
        (seconds, has a date): seconds since 1970 as if UTC where no zone is printed, or only its name, or seconds of the day when no
        date is. None for anything that is no time.
    """
    text = text.strip()
    time_only = _TIME_ONLY.fullmatch(text)
    if time_only:
        hours, minutes, seconds, fraction = time_only.groups()
        return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}"), False
    syslog = _SYSLOG.fullmatch(text)
    try:
        if syslog:  # no year: any leap year will do, only differences count
            stamp = datetime.strptime(f"2000 {syslog[1]} {syslog[2]} {syslog[3][:8]} +0000", "%Y %b %d %H:%M:%S %z")
            return stamp.timestamp(), True
        stamp = datetime.fromisoformat(_NAMED_ZONE.sub(r"\1", text).replace(",", "."))
    except ValueError:
        return None
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=_UTC)).timestamp(), True


_UTC = datetime.fromisoformat("2000-01-01T00:00:00+00:00").tzinfo


def seconds_between(earlier: str | None, later: str | None) -> float | None:
    """Return the seconds from one printed time to another of the same clock.

    A clock without a date may pass midnight once, one without a year the end of the year.

    Returns:
        None when one of them is missing or unreadable, or only one has a date. Negative when time runs backwards.
    """
    if earlier is None or later is None:
        return None
    first, second = read_clock(earlier), read_clock(later)
    if first is None or second is None or first[1] != second[1]:
        return None
    difference = second[0] - first[0]
    if not first[1]:
        return difference + DAY_S if difference < -DAY_S / 2 else difference
    if abs(difference) > _YEAR_S / 2 and _SYSLOG.fullmatch(earlier.strip()) and _SYSLOG.fullmatch(later.strip()):
        return difference + math.copysign(_YEAR_S, -difference)
    return difference


def seconds_to_glog(earlier: str, text: str) -> float | None:
    """Return the seconds from a printed time to that in the head of a line of glog ("[rank3]:[E227 09:32:20.123 x.cpp:1] ...").

    torch's C++ prints such lines, with a local time and no year. Only the time of day is taken: the line is less than half a day later.

    Returns:
        None where the text has no such head, the other time is of a zone that it names, or the line would be earlier.
    """
    head, first = _GLOG.match(text), read_clock(earlier) if _LOCAL.fullmatch(earlier.strip()) else None
    second = read_clock(head[1]) if head else None
    if first is None or second is None:
        return None
    passed = (second[0] - math.floor(first[0])) % DAY_S
    return passed if passed < DAY_S / 2 else None
