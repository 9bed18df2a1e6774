"""The pattern files against what SGLang releases print, from the checked-in digest; the opt-in mark reads the releases themselves."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from conformance.digest import exact_range, form_ids, range_problems, read_digest
from conformance.exceptions import unseen, waivers
from conformance.harvest import harvest_text
from conformance.judge import bears, judge
from conformance.new_release import blocks, compare, report_lines, unknown, unknown_arguments
from conformance.releases import FIRST, cache_dir, fetch, sorted_releases
from conformance.render import Number, render
from conformance.report import fault_lines
from conformance.run import Finding, judge_releases
from logscope.events import Recogniser
from logscope.model import Event
from logscope.packcheck import load_checked_packs
from logscope.packs import Packs, load_packs
from logscope.scan import ReadState
from logscope.units import GIB

SOURCE = """
import logging
logger = logging.getLogger(__name__)
GB = 1 << 30

class Pool:
    def finalize(self):
        k_size, v_size = self.sizes()
        name = f"{self.label} KV Cache" if self.label else "KV Cache"
        logger.info(
            f"{name} is allocated. dtype: {self.dtype}, #tokens: {self.size}, "
            f"K size: {k_size / GB:.2f} GB, V size: {v_size / GB:.2f} GB"
        )
        msg = "Load weight begin. "
        msg += "avail mem=%.2f GB"
        logger.info(msg % avail)
        logger.info("Memory pool end. avail mem=%.2f GB", get_available_gpu_memory(self.device))
        if self.size <= 0:
            raise RuntimeError("Not enough memory. Please try to increase --mem-fraction-static.")
"""


@pytest.fixture(scope="module")
def packs() -> Packs:
    return load_packs()


def test_the_digest_covers_every_release_from_the_first_on() -> None:
    releases = read_digest().releases
    assert list(releases) == sorted_releases(list(releases))
    assert releases[0] == FIRST
    assert len(releases) >= 142
    digest = read_digest()
    assert [] == [release for release in releases if not digest.counts(release)]


def test_the_digest_covers_every_release_that_a_pattern_names(packs: Packs) -> None:
    named = {bound for _, form in form_ids(packs) for bound in (form.since, form.until) if bound}
    assert named
    assert set() == named - set(read_digest().releases)


def test_the_range_of_every_form_is_exact(packs: Packs) -> None:
    """``since`` is the first release that prints the wording, ``until`` the first one after the last that does."""
    assert [] == list(range_problems(read_digest(), packs))


def test_most_forms_are_seen_in_a_release(packs: Packs) -> None:
    ids = [name for name, _ in form_ids(packs)]
    seen = [name for name in ids if exact_range(read_digest(), name)]
    assert len(seen) > 0.7 * len(ids)


def test_exceptions_name_forms_that_exist_and_give_reasons(packs: Packs) -> None:
    ids = [name for name, _ in form_ids(packs)]
    assert [] == [entry.form for entry in unseen() if not any(name.startswith(entry.form) for name in ids)]
    assert all(len(entry.reason) > 10 for entry in (*unseen(), *waivers()))


def test_messages_are_read_from_source_and_recognised(packs: Packs) -> None:
    messages = harvest_text(SOURCE, "sglang/srt/mem_cache/memory_pool.py")
    assert ["log", "log", "log", "raise"] == [message.kind for message in messages]
    recogniser = Recogniser(packs, dense=True)
    verdicts = [
        judge(rendered, "0.5.17", recogniser, strict=bears(message) is not None)
        for message in messages
        for rendered in render(message, "0.5.17", {})
    ]
    assert [None] * len(verdicts) == [verdict.fault for verdict in verdicts]
    assert [
        "kv_cache.allocated",
        "kv_cache.allocated",
        "load_weights.begin",
        "memory_pool.end",
        "failure.not_enough_memory",
    ] == [verdict.fits[0].pattern.id for verdict in verdicts]


def test_what_a_release_does_not_print_and_an_unknown_wording_are_faults(packs: Packs) -> None:
    source = SOURCE.replace("avail mem=%.2f GB", "avail mem=%.2f MB")
    messages = harvest_text(source, "sglang/srt/mem_cache/memory_pool.py")
    recogniser = Recogniser(packs, dense=True)
    faults = [judge(r, "0.4.4", recogniser, strict=True).fault for m in messages for r in render(m, "0.4.4", {})]
    assert ["out of range", "out of range", "drift", "drift", None] == faults


def test_a_message_without_a_form_and_a_number_without_a_field_are_faults(packs: Packs) -> None:
    source = 'logger.info(f"Memory pool end. avail mem={avail:.2f} GB")\nlogger.info(f"New pool: {size:.2f} GB")'
    recogniser = Recogniser(packs, dense=True)
    known, unknown = (
        next(render(message, "0.5.9", {})) for message in harvest_text(source, "sglang/srt/mem_cache/memory_pool.py")
    )
    assert judge(known, "0.5.9", recogniser, strict=True).fault is None
    assert judge(replace(known, numbers=(Number("1.23", "GB"),)), "0.5.9", recogniser, strict=True).fault == "number"
    assert judge(unknown, "0.5.9", recogniser, strict=True).fault == "miss"
    assert judge(unknown, "0.5.9", recogniser, strict=False).fault is None


def test_alternatives_and_parts_that_are_added_later_are_followed() -> None:
    source = """
def say(size, label):
    msg = "Pool"
    if label:
        msg += f" {label}"
    else:
        msg += " (no label)"
    kind = {"cuda": "CUDA graph", "cpu": "CPU graph"}
    logger.info(msg + ": %d tokens of a %s", size, kind[label])
    parts = ["one", f"two {size}"]
    parts.append("three")
    print(", ".join(parts))
"""
    lines = [r.text for m in harvest_text(source, "sglang/srt/managers/a.py") for r in render(m, "0.5.9", {})]
    shapes = {re.sub(r"\d+", "N", line) for line in lines}
    pools = {
        f"Pool {name}: N tokens of a {kind}" for name in ("text", "(no label)") for kind in ("CUDA graph", "CPU graph")
    }
    assert pools | {"one, two N, three"} == shapes


@pytest.mark.conformance
@pytest.mark.parametrize("release", ["0.4.4", "0.5.9", "0.5.23"])
def test_a_release_is_recognised(release: str) -> None:
    """Downloads the release if the cache does not hold it."""
    Path(cache_dir()).mkdir(parents=True, exist_ok=True)
    results = list(judge_releases([release], jobs=1))
    assert [] == fault_lines(results)
    used = {form for finding in results[0].findings for form in finding.forms}
    known = read_digest()
    assert used == {form for form in known.forms if release in known.used_in(form)}
    assert Version(release) >= Version(FIRST)


def finding(
    template: str, forms: tuple[str, ...] = (), fault: str | None = None, bearing: str | None = "memory"
) -> Finding:
    line = "[2026-01-05 10:00:00 TP3] Brand new pool is ready. size=2.50 GB\n"
    return Finding("0", template, "sglang/srt/pool.py:7", "f", "log", bearing, forms, fault, "", line, at_launch=True)


OLD_POOL = finding("Memory pool end. avail mem={:.2f} GB", ("memory_pool.end#0",))
NEW_POOL = finding("Memory pool end. free mem={:.2f} GB", fault="drift")
BRAND_NEW = finding("Brand new pool is ready. size={:.2f} GB", fault="miss")
KEPT = finding("KV cache of {} tokens", ("kv_cache.allocated#0",))
GONE = finding("Something else entirely: {} MiB", ("kv_cache.dtype#0",))


def test_messages_of_two_releases_are_new_changed_or_vanished() -> None:
    difference = compare([OLD_POOL, KEPT, GONE], [NEW_POOL, KEPT, BRAND_NEW, finding("not of a launch", bearing=None)])
    assert (BRAND_NEW,) == difference.new
    assert ((OLD_POOL, NEW_POOL),) == difference.changed
    assert (GONE,) == difference.vanished


def test_the_report_of_a_release_says_where_until_is_due() -> None:
    lines = list(report_lines(compare([KEPT, GONE], [KEPT]), "9.9.9", {"kv_cache.allocated#0": True}))
    assert "# 9.9.9: 0 new, 0 changed, 1 vanished messages" == lines[0]
    assert '#   do      until = "9.9.9" on kv_cache.dtype#0, if it has none' == lines[-1]


def test_what_a_release_says_anew_becomes_a_pattern_file_that_knows_it(tmp_path: Path) -> None:
    (tmp_path / "new.toml").write_text(blocks(unknown([BRAND_NEW, KEPT]), "9.9.9"))
    packs, _ = load_checked_packs([tmp_path])
    recogniser = Recogniser(packs)
    (event,) = recogniser.read("x", [BRAND_NEW.line.encode()], ReadState())
    assert isinstance(event, Event)
    assert ("9.9.9", [round(2.5 * GIB)]) == (event.form.since, [value.value for value in event.values.values()])


def test_arguments_of_a_release_are_the_fields_of_its_server_args(tmp_path: Path) -> None:
    groups = tmp_path / "sglang/srt/arg_groups/fields"
    groups.mkdir(parents=True)
    source = "class PortArgs:\n    new_port: int\nclass ServerArgs:\n    tp_size: int = 1\n    LIST: ClassVar[int]\n    _own: int = 3\n"
    (tmp_path / "sglang/srt/server_args.py").write_text(source)
    assert [] == unknown_arguments(tmp_path)
    (groups / "memory.py").write_text(
        "class Memory(msgspec.Struct):\n    brand_new_flag: A[int, 'x'] = 1\n    page_size: int\n"
    )
    assert ["# arguments, to be listed in patterns/server_args.toml: brand_new_flag"] == unknown_arguments(tmp_path)


@pytest.mark.conformance
@pytest.mark.parametrize("release", [FIRST, "0.4.4", "0.5.9", "0.5.23"])
def test_arguments_of_releases_are_known(release: str) -> None:
    assert [] == unknown_arguments(fetch(release, cache_dir()))


def test_a_release_without_unknown_messages_needs_no_block() -> None:
    assert "" == blocks(unknown([KEPT]), "9.9.9")
