"""Check pattern files against their own samples: what ``logscope patterns check`` does, and what users' packs must pass."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from logscope.events import Recogniser
from logscope.packcheck.envelope import envelope_problems, envelope_regex_problems, message_of
from logscope.packcheck.forms import form_problems, frequency_problems, range_problems, regex_problem
from logscope.packcheck.samples import sample_problems
from logscope.packs import Packs
from logscope.packs.load import pack_files, read_understood
from logscope.packs.problems import Problem, pack_error

__all__ = ["Checked", "check_packs", "load_checked_packs", "message_of"]


class Checked(Struct, frozen=True):
    """What a check looked at."""

    events: int
    forms: int
    samples: int


def check_packs(packs: Packs) -> Checked:
    """Try every form on every sample.

    Raises:
        PackError: with all problems, each with file:line and what to do.
    """
    problems = _problems(packs)
    if problems:
        raise pack_error(problems, packs.files)
    forms = [form for pattern in packs.patterns for form in pattern.forms]
    return Checked(len(packs.patterns), len(forms), sum(len(form.samples) for form in forms))


def load_checked_packs(extra_dirs: Iterable[Path] = ()) -> tuple[Packs, Checked]:
    """Read the built-in pattern files and those of ``extra_dirs``, and check them.

    Raises:
        PackError: with all problems of both; what could not be read has not been tried on samples.
    """
    packs, problems = read_understood(pack_files(extra_dirs))
    if problems:
        raise pack_error([*problems, *_problems(packs)], packs.files)
    return packs, check_packs(packs)


def _problems(packs: Packs) -> list[Problem]:
    """Return all problems. A regex that is none, or that runs away, is not tried on samples."""
    problems = list(envelope_regex_problems(packs.envelope))
    envelope_is_usable = not problems
    usable = []
    for pattern in packs.patterns:
        problems.extend(range_problems(pattern))
        unusable = [problem for form in pattern.forms if (problem := regex_problem(pattern, form))]
        problems.extend(unusable)
        if not unusable:
            problems.extend(problem for form in pattern.forms for problem in form_problems(pattern, form))
            usable.append(pattern)
    problems.extend(frequency_problems(packs))
    if envelope_is_usable:
        problems.extend(envelope_problems(packs.envelope))
        recogniser = Recogniser(replace(packs, patterns=tuple(usable)), dense=True)
        for pattern in usable:
            problems.extend(problem for form in pattern.forms for problem in sample_problems(pattern, form, recogniser))
    return problems
