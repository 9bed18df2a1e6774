"""OpenMetrics text, which GitLab shows as changed values of a merge request: what became of rules, and the values they looked at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from logscope import __version__
from logscope.checker import Checked, Value
from logscope.checker.types import Status
from logscope.render._check import checked_of
from logscope.report import Report
from logscope.safe import clean
from logscope.units import Quantity

NAME = "openmetrics"
IS_BINARY = False

_STATUS: Mapping[Status, int] = {"pass": 0, "fail": 1, "skipped": 2, "inconclusive": 3}
_FAMILIES: Mapping[str, tuple[str, str]] = {  # dimension of a value -> (name, unit)
    "bytes": ("logscope_rule_value_bytes", "bytes"),
    "s": ("logscope_rule_value_seconds", "seconds"),
    "tokens": ("logscope_rule_value_tokens", "tokens"),
    "": ("logscope_rule_value", ""),
}


class _Family(Struct):
    """One metric: its head, and its samples by their labels."""

    name: str
    help: str
    unit: str = ""
    kind: str = "gauge"
    samples: dict[str, str] = field(default_factory=dict)

    def add(self, labels: Mapping[str, str], value: str) -> None:
        """Add a sample; one whose labels are there already gets a number, since no two may be alike."""
        number, shown = 1, _labels(labels)
        while shown in self.samples:
            number += 1
            shown = _labels({**labels, "item": str(number)})
        self.samples[shown] = value

    def lines(self) -> Iterator[str]:
        """Yield the lines of the metric, none where it has no sample."""
        if not self.samples:
            return
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {self.help}"
        suffix = "_info" if self.kind == "info" else ""
        yield from (f"{self.name}{suffix}{labels} {value}" for labels, value in self.samples.items())


def render(report: Report) -> bytes:
    """Return the results of a check as OpenMetrics text; values are rounded to what the log prints, or every run would differ.

    Raises:
        UsageError: the report is not that of a check.
    """
    families = _families(checked_of(report, NAME))
    lines = [line for family in families for line in family.lines()]
    return "".join(f"{line}\n" for line in [*lines, "# EOF"]).encode("utf-8")


def _families(checked: Checked) -> list[_Family]:
    about = _Family("logscope_launch", "What was launched.", kind="info")
    about.add({"logscope": __version__, **{_label_name(key): text for key, text in checked.properties.items()}}, "1")
    code = _Family("logscope_check_exit_code", "0 all rules hold, 1 one is broken, 3 one could not be judged.")
    code.add({}, str(checked.exit_code))
    status = _Family("logscope_rule_status", "0 pass, 1 fail, 2 skipped, 3 inconclusive.")
    values = {unit: _Family(name, "What a rule looked at.", unit) for name, unit in _FAMILIES.values()}
    several = len({result.launch for result in checked.results}) > 1
    for result in checked.results:
        own = {"rule": result.rule.id, **({"launch": str(result.launch)} if several else {})}
        status.add({**own, "level": result.rule.level}, str(_STATUS[result.status]))
        for value in result.values:
            if value.number is not None and math.isfinite(value.number.value):
                _add_value(values[_FAMILIES.get(value.dimension, _FAMILIES[""])[1]], own, value, value.number)
    return [about, code, status, *values.values()]


def _add_value(family: _Family, rule: Mapping[str, str], value: Value, number: Quantity) -> None:
    family.add({**rule, **({"rank": value.rank} if value.rank else {})}, rounded(number))


def rounded(number: Quantity) -> str:
    """Write a number as a multiple of the step of its last printed digit."""
    step = number.resolution
    if not math.isfinite(step) or step <= 0:
        return repr(number.value)
    multiple = round(number.value / step) * step
    if step >= 1:
        return str(round(multiple))
    return f"{multiple:.{math.ceil(-math.log10(step))}f}"


def _label_name(key: str) -> str:
    """Return a fact's name as a label: letters of ASCII, digits and underscores."""
    name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in key)
    return name if name[:1].isalpha() else f"fact_{name}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items()) + "}"


def _escaped(text: str) -> str:
    return clean(text).replace("\\", "\\\\").replace('"', '\\"')
