"""What the loader and the check refuse: each with file:line and what to do, and all of it in one error."""

# ruff: noqa: E501  (one case a line: a table is read in columns)

from __future__ import annotations

from pathlib import Path

import pytest

from logscope.errors import PackError
from logscope.packcheck import check_packs, load_checked_packs
from logscope.packs import Packs, builtin_dir, load_packs
from logscope.packs.builtin import STORED, read_stored, stored_form
from logscope.packs.load import pack_files, read_files

GOOD = """\
[phase]
id    = "mine"
title = "Mine"
order = 55

[[event]]
id       = "mine.took"
means    = "my allocator took memory"
edge     = "point"
said_by  = "every rank"
contains = "my allocator took"
fields.amount = { unit = "GiB" }
fields.name   = { unit = "text", optional = true }

  [[event.form]]
  since = "0.5.0"
  until = "0.5.9"
  regex = '''^my allocator took (?P<amount>-?[\\d.]+) GB(?: for (?P<name>\\w+))?'''
  rejects = ["my allocator took nothing"]
    [[event.form.sample]]
    line = "[2026-01-05 10:00:00 TP0] my allocator took 1.25 GB for graphs"
    want = { amount = 1.25, name = "graphs" }

  [[event.form]]
  since = "0.5.9"
  regex = '''^my allocator took (?P<amount>-?[\\d.]+) GiB'''
    [[event.form.sample]]
    line = "[2026-01-05 10:00:00 TP0] my allocator took 1.25 GiB"
    want = { amount = 1.25 }
"""

ENVELOPE = """\
[[outer]]
id    = "stamp"
regex = '''^<(?P<origin>\\w+)> '''
rejects = ["< a> text"]
  [[outer.sample]]
  line = "<node7> Load weight begin."
  want = { origin = "node7", rest = "Load weight begin." }

[[sglang]]
id    = "braced"
regex = '''\\[<(?P<tags>TP\\d+)>\\] '''
  [[sglang.sample]]
  line = "[<TP3>] Load weight begin."
  want = { tags = "TP3", rest = "Load weight begin." }

[[suffix]]
id    = "mark"
regex = '''<<$'''
  [[suffix.sample]]
  line = "Load weight begin.<<"
  want = { rest = "Load weight begin." }

[[block]]
id        = "dump"
begins    = "Dump of the device:"
continues = '''^\\s'''

[[secret]]
id    = "pin"
regex = '''pin (?P<secret>\\d+)'''
keep  = '''^0$'''
rejects = ["pin none"]
  [[secret.sample]]
  line = "pin 1234"
  want = { rest = "pin <redacted>" }
"""


def read(tmp_path: Path, **files: str) -> Packs:
    """Read pattern files without the built-in ones, but for the envelope; ``mine`` is shown as mine.toml."""
    paths = [(builtin_dir() / "envelope.toml", "patterns/envelope.toml")]
    for name, text in files.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        paths.append((path, path.name))
    return read_files(paths)


def problems(tmp_path: Path, **files: str) -> list[str]:
    """Return what is refused, by the loader or else by the check."""
    with pytest.raises(PackError) as refused:
        check_packs(read(tmp_path, **files))
    return refused.value.problems


def changed(old: str, new: str, text: str = GOOD) -> str:
    assert 1 == text.count(old), f"{old!r} stands {text.count(old)} times in the text"
    return text.replace(old, new)


def test_good_files_are_accepted(tmp_path: Path) -> None:
    checked = check_packs(read(tmp_path, mine=GOOD, envelope=ENVELOPE))
    assert (1, 2, 2) == (checked.events, checked.forms, checked.samples)


# (what is wrong, text replaced, by what, line, words of the problem, words of the advice)
REFUSED = [
    ("syntax", 'means    = "my', "means    = my", 8, "not TOML", "mend the syntax"),
    ("unknown phase key", 'title = "Mine"', 'titel = "Mine"', 3, "unknown key 'titel' in [phase]", "did you mean 'title'?"),
    ("unknown event key", "contains =", "contians =", 11, "unknown key 'contians' in an event", "did you mean 'contains'?"),
    ("unknown form key", 'since = "0.5.0"', 'sinse = "0.5.0"', 16, "unknown key 'sinse' in a form", "did you mean 'since'?"),
    ("unknown field key", "{ unit = \"text\", optional", "{ unit = \"text\", optinal", 13, "unknown key 'optinal' in field 'name'", "'optional'"),
    ("unknown sample key", 'want = { amount = 1.25 }', 'wants = { amount = 1.25 }', 29, "unknown key 'wants' in a sample", "did you mean 'want'?"),
    ("unknown table", "[[event]]\n", "[[evant]]\n", 6, "unknown key 'evant' in a pattern file", "did you mean 'event'?"),
    ("no phase id", 'id    = "mine"\n', "\n", 1, "'id' is missing", 'add  id = "..."'),
    ("no order", "order = 55\n", "\n", 1, "'order' is missing", "add  order = 55"),
    ("order is no number", "order = 55", 'order = "55"', 4, "'order' is '55', not a whole number", "add  order = 55"),
    ("order is true", "order = 55", "order = true", 4, "'order' is True, not a whole number", "add  order = 55"),
    ("no event id", 'id       = "mine.took"\n', "\n", 6, "'id' is missing", 'add  id = "..."'),
    ("no literal", 'contains = "my allocator took"\n', "\n", 6, "event 'mine.took' has no literal", 'add  contains = "..."'),
    ("text is a number", 'title = "Mine"', "title = 7", 3, "'title' is 7, not a text", 'write  title = "..."'),
    ("flag is a text", 'title = "Mine"', 'dense = "yes"', 3, "'dense' is 'yes', not true or false", "write  dense = true"),
    ("list is a number", 'title = "Mine"', "pair_by = 3", 3, "'pair_by' is 3, not a text or a list of texts", 'write  pair_by = ["..."]'),
    ("literals are numbers", 'contains = "my allocator took"', "contains = [1, 2]", 11, "'contains' is [1, 2], not a text", 'write  contains = ["..."]'),
    ("want is no table", "want = { amount = 1.25 }", "want = 1.25", 29, "'want' is 1.25, not a table", "write  want = { ... }"),
    ("field is no table", 'fields.amount = { unit = "GiB" }', 'fields.amount = "GiB"', 12, "field 'amount' is 'GiB', not a table", "write  fields.amount ="),
    ("release is a number", 'since = "0.5.0"', "since = 0.5", 16, "'since' is 0.5, not a text", 'write  since = "..."'),
    ("unknown edge", 'edge     = "point"', 'edge     = "pont"', 9, "'edge' is 'pont'", "did you mean 'point'?"),
    ("unknown speaker", '"every rank"', '"all ranks"', 10, "'said_by' is 'all ranks'", "known are every rank, rank 0"),
    ("unknown unit", '{ unit = "GiB" }', '{ unit = "Gib" }', 12, "'unit' is 'Gib'", "did you mean 'GiB'?"),
    ("no unit", '{ unit = "GiB" }', "{ optional = true }", 12, "field 'amount' has no unit", 'add  unit = "..."'),
    ("group without a field", "took (?P<amount>-?[\\d.]+) GiB'''", "took (?P<amount>-?[\\d.]+) (?P<of>GiB)'''", 24, "group 'of' has no field", "add  fields.of ="),
    ("required field without a group", "took (?P<amount>-?[\\d.]+) GiB'''", "took [\\d.]+ GiB'''", 24, "field 'amount' of 'mine.took' has no group in this form", "(?P<amount>...)"),
    ("neither regex nor pairs", "  regex = '''^my allocator took (?P<amount>-?[\\d.]+) GiB'''\n", "\n", 24, "a form needs either 'regex' or 'pairs'", "write one of them"),
    ("regex and pairs", "GiB'''\n", "GiB'''\n  pairs = {}\n", 24, "a form needs either 'regex' or 'pairs'", "write one of them"),
    ("sample that does not fit", 'took 1.25 GiB"', 'took some GiB"', 27, "the sample does not fit its form of 'mine.took'", "mend the regex or the sample"),
    ("sample of the other form", 'took 1.25 GiB"', 'took 1.25 GB"', 27, "the sample does not fit its form of 'mine.took', but mine.took (mine.toml:15)", "mend"),
    ("sample without its literal", 'took 1.25 GiB"', 'takes 1.25 GiB"', 27, "the sample holds none of its form's literals ['my allocator took']", "mend 'contains'"),
    ("wrong value", "want = { amount = 1.25 }", "want = { amount = 1.5 }", 27, "the sample gives '1.25' for 'amount', wanted 1.5", "mend the regex or 'want'"),
    ("wanted value that is not read", "want = { amount = 1.25 }", "want = { amont = 1.25 }", 27, "the sample gives nothing for 'amont'", "mend the regex or 'want'"),
    ("reject that fits", "took nothing", "took 3 GB", 15, "fits what it must reject: 'my allocator took 3 GB'", "make the regex stricter"),
    ("overlapping releases", 'since = "0.5.9"', 'since = "0.5.8.post1"', 24, "overlap with those of mine.toml:15", "close the older one with 'until'"),
    ("open release range beside another", 'since = "0.5.9"\n', "\n", 24, "overlap with those of mine.toml:15", "close the older one"),
    ("empty range", 'until = "0.5.9"', 'until = "0.5.0"', 15, "the range 0.5.0..0.5.0 is empty", "the first release without the wording"),
    ("no release", 'until = "0.5.9"', 'until = "next"', 15, "not a release: Invalid version: 'next'", 'write  since = "0.4.6.post5"'),
    ("id of another phase", '"mine.took"', '"other.took"', 7, "event 'other.took' is not led by its phase", "call it 'mine.took'"),
    ("short literal", 'contains = "my allocator took"', 'contains = "took"', 15, "literal 'took' of 'mine.took' is too short", "5 characters at least"),
    ("empty literal", 'contains = "my allocator took"', 'contains = ["my allocator took", ""]', 15, "a literal of 'mine.took' is empty", "write  contains"),
    ("no regex at all", "GiB'''", "GiB('''", 24, "not a regex", "mend the regex"),
    ("regex that runs away", "'''^my allocator took (?P<amount>-?[\\d.]+) GiB'''", "'''(?P<amount>[\\d.]+) GiB|(a+)+$'''", 24, "does not finish in", "avoid nested repeats"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "what", "do"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])  # fmt: skip
def test_what_is_wrong_is_refused_at_its_line_with_advice(
    old: str, new: str, line: int, what: str, do: str, tmp_path: Path
) -> None:
    found = problems(tmp_path, mine=changed(old, new))
    at = [problem for problem in found if problem.startswith(f"mine.toml:{line}: ")]
    assert any(what in problem.split("\n")[0] for problem in at), found
    assert any(problem.split("\n")[1].startswith("  do: ") and do in problem for problem in at), found
    assert all(problem.startswith("mine.toml:") for problem in found)


def test_there_are_cases() -> None:
    assert len(REFUSED) > 40


ENVELOPE_REFUSED = [
    ("unknown key", "id    = \"stamp\"", "name  = \"stamp\"", 2, "unknown key 'name' in [[outer]]", "did you mean"),
    ("unknown table", "[[suffix]]", "[[sufix]]", 16, "unknown key 'sufix' in the envelope", "did you mean 'suffix'?"),
    ("no id", "id    = \"stamp\"\n", "\n", 1, "'id' is missing", 'add  id = "..."'),
    ("prefix without a regex", "regex = '''^<(?P<origin>\\w+)> '''\n", "\n", 1, "'regex' is missing", 'add  regex = "..."'),
    ("invalid regex", "'''<<$'''", "'''<<($'''", 18, "not a regex", "mend the regex"),
    ("no group for the tags", "(?P<tags>TP\\d+)", "(?P<rank>TP\\d+)", 11, "the regex has no group 'tags'", "name it  (?P<tags>...)"),
    ("no group for the secret", "(?P<secret>\\d+)", "(?P<hidden>\\d+)", 30, "the regex has no group 'secret'", "name it  (?P<secret>...)"),
    ("invalid keep", "'''^0$'''", "'''^0($'''", 31, "not a regex", "mend the regex"),
    ("block without its inside", "continues = '''^\\s'''\n", "\n", 23, "'continues' is missing", 'add  continues = "..."'),
    ("prefix without a sample", '  [[outer.sample]]\n  line = "<node7> Load weight begin."\n  want = { origin = "node7", rest = "Load weight begin." }\n', "", 1, "'stamp' has no sample", "add one"),
    ("suffix without a sample", '  [[suffix.sample]]\n  line = "Load weight begin.<<"\n  want = { rest = "Load weight begin." }\n', "", 16, "'mark' has no sample", "add one"),
    ("secret without a sample", '  [[secret.sample]]\n  line = "pin 1234"\n  want = { rest = "pin <redacted>" }\n', "", 28, "'pin' has no sample", "add one"),
    ("sample without the prefix", '"<node7> Load', '"node7 Load', 5, "the sample does not hold 'stamp'", "mend the regex or the sample"),
    ("sample without the secret", '"pin 1234"', '"pin abcd"', 33, "the sample does not hold 'pin'", "mend the regex or the sample"),
    ("wrong origin", 'origin = "node7"', 'origin = "node8"', 5, "the sample gives 'node7' for 'origin', wanted 'node8'", "mend the regex or 'want'"),
    ("wrong rest", 'want = { tags = "TP3", rest = "Load weight begin." }', 'want = { rest = "begin." }', 12, "for 'rest', wanted 'begin.'", "mend the regex or 'want'"),
    ("not partial", 'want = { origin = "node7", rest', 'want = { partial = "yes", rest', 5, "the sample is not partial", "mend the regex or 'want'"),
    ("reject that fits", '"< a> text"', '"<a> text"', 1, "'stamp' fits what it must reject: '<a> text'", "make the regex stricter"),
    ("kept secret", '"pin none"', '"pin 77"', 28, "'pin' fits what it must reject: 'pin 77'", "make the regex stricter"),
    ("prefix of nothing", "'''^<(?P<origin>\\w+)> '''", "'''^(?:<(?P<origin>\\w+)> )?'''", 1, "prefix 'stamp' fits an empty text", "make the regex stricter"),
    ("no release", "regex = '''^<(", "since = 'next'\nregex = '''^<(", 1, "not a release", 'write  since = "0.4.6.post5"'),
    ("runs away", "'''^<(?P<origin>\\w+)> '''", "'''^<(?P<origin>(?:\\w+ ?)+)> '''", 1, "the regex takes too long on long input", "avoid nested repeats"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "what", "do"), [case[1:] for case in ENVELOPE_REFUSED], ids=[case[0] for case in ENVELOPE_REFUSED])  # fmt: skip
def test_what_is_wrong_in_an_envelope_is_refused_at_its_line_with_advice(
    old: str, new: str, line: int, what: str, do: str, tmp_path: Path
) -> None:
    found = problems(tmp_path, mine=GOOD, envelope=changed(old, new, ENVELOPE))
    at = [problem for problem in found if problem.startswith(f"envelope.toml:{line}: ")]
    assert any(what in problem.split("\n")[0] for problem in at), found
    assert any(problem.split("\n")[1].startswith("  do: ") and do in problem for problem in at), found


def test_an_unfinished_file_is_refused_at_its_last_line(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, mine='[phase]\nid = "mine"\norder = [1,\n')
    assert problem.startswith("mine.toml:3: not TOML")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'[phase]\nid = "\xff"\n')
    with pytest.raises(PackError, match=r"mine\.toml:1: cannot be read: .*\n  do: give a readable UTF-8 file"):
        read_files([(path, "mine.toml")])


def test_a_form_without_a_sample_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, mine=GOOD[: GOOD.rindex("    [[event.form.sample]]")])
    assert problem.startswith("mine.toml:24: a form of 'mine.took' has no sample\n  do: add  [[event.form.sample]]")


def test_an_event_without_a_form_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, mine=GOOD[: GOOD.index("  [[event.form]]")])
    assert problem.startswith("mine.toml:6: event 'mine.took' has no [[event.form]]")


def test_a_file_without_a_phase_is_refused(tmp_path: Path) -> None:
    found = problems(tmp_path, mine=GOOD[GOOD.index("[[event]]") :])
    assert ['mine.toml:1: the file has no [phase]\n  do: add  [phase]  with  id = "..."'] == found


def test_a_duplicate_order_is_refused_with_the_place_of_the_other(tmp_path: Path) -> None:
    other = '[phase]\nid    = "other"\norder = 55\n'
    (problem,) = problems(tmp_path, mine=GOOD, other=other)
    assert "other.toml:3: order 55 is taken by phase 'mine' (mine.toml:1)\n  do: take a free number" == problem


def test_a_duplicate_event_is_refused_with_the_place_of_the_other(tmp_path: Path) -> None:
    other = changed('title = "Mine"\norder = 55\n', "")
    (problem,) = problems(tmp_path, mine=GOOD, other=other)
    assert problem.startswith("other.toml:5: event 'mine.took' exists already (mine.toml:6)\n  do: take another id")


def test_a_second_description_of_a_phase_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, mine=GOOD, other='[phase]\nid    = "mine"\norder = 77\n')
    assert "other.toml:2: phase 'mine' exists already (mine.toml:1)" == problem.split("\n")[0]


def test_events_may_stand_before_the_description_of_their_phase(tmp_path: Path) -> None:
    """Files are read in the order of their names, which is not that of the launch."""
    events = changed('title = "Mine"\norder = 55\n', "")
    packs = read(tmp_path, a=events, b='[phase]\nid = "mine"\norder = 55\n')
    assert ["mine"] == list(packs.phases)
    assert ["mine.took"] == [pattern.id for pattern in packs.patterns]


def test_events_for_a_phase_that_is_not_there_are_refused(tmp_path: Path) -> None:
    events = changed('title = "Mine"\norder = 55\n', "")
    found = problems(tmp_path, mine='[phase]\nid = "mined"\norder = 55\n', other=events)
    assert (
        "other.toml:1: there is no phase 'mine'\n  do: did you mean 'mined'?"
        == found[0][: len(found[0].split("?")[0]) + 1]
    )


def test_a_sample_matched_by_two_forms_of_two_files_is_refused(tmp_path: Path) -> None:
    other = """\
[phase]
id    = "other"
order = 56

[[event]]
id       = "other.took"
contains = "allocator took"
  [[event.form]]
  regex = '''^my allocator took [\\d.]+ GiB'''
    [[event.form.sample]]
    line = "my allocator took 2.00 GiB"
"""
    found = problems(tmp_path, mine=GOOD, other=other)
    both = "the sample fits 2 forms: "
    assert ["mine.toml:27", "other.toml:10"] == [problem.split(": ")[0] for problem in found]
    assert all(both in problem and "make the regexes exclude each other" in problem for problem in found)
    assert all("mine.took (mine.toml:24)" in problem and "other.took (other.toml:8)" in problem for problem in found)


def test_a_value_that_is_no_number_is_told(tmp_path: Path) -> None:
    text = changed("took (?P<amount>-?[\\d.]+) GiB'''", "took (?P<amount>\\w+) GiB'''").replace("1.25 GiB", "some GiB")
    (problem,) = problems(tmp_path, mine=text)
    assert problem.startswith("mine.toml:27: the sample does not fit its form of 'mine.took': a value is no number")


def test_an_invalid_regex_does_not_hide_what_is_wrong_elsewhere(tmp_path: Path) -> None:
    """Two events share a literal; one has a broken regex, and the other a wrong value."""
    other = changed('title = "Mine"\norder = 55\n', "").replace("mine.took", "mine.gave").replace("^my", "^(my")
    text = changed("want = { amount = 1.25 }", "want = { amount = 1.5 }")
    found = problems(tmp_path, mine=text, other=other)
    assert ["mine.toml:27", "other.toml:13", "other.toml:22"] == [problem.split(": ")[0] for problem in found]


def test_all_problems_of_all_files_are_in_one_error(tmp_path: Path) -> None:
    """What the loader refuses does not hide what the check refuses, and lines are in order."""
    folder = tmp_path / "packs"
    folder.mkdir()
    (folder / "a.toml").write_text(changed("want = { amount = 1.25 }", "want = { amount = 1.5 }"))
    second = (
        changed('id    = "mine"', 'id    = "second"')
        .replace("order = 55", "order = 56")
        .replace("mine.took", "second.took")
    )
    (folder / "b.toml").write_text(second.replace("my allocator", "an allocator").replace("means ", "maens "))
    (folder / "c.toml").write_text("[phase\n")
    (folder / "envelope.toml").write_text(
        changed("(?P<tags>TP\\d+)", "(?P<rank>TP\\d+)", ENVELOPE).replace('"node7"', '"node8"')
    )
    with pytest.raises(PackError) as refused:
        load_checked_packs([folder])
    places = [problem.split(": ")[0].removeprefix(f"{folder}/") for problem in refused.value.problems]
    assert ["a.toml:27", "b.toml:8", "c.toml:1", "envelope.toml:5", "envelope.toml:11"] == places
    assert str(refused.value).endswith("5 problems in the pattern files")


def test_a_problem_is_counted_in_the_singular(tmp_path: Path) -> None:
    with pytest.raises(PackError, match=r"\n1 problem in the pattern files$"):
        read(tmp_path, mine=changed("order = 55\n", "\n"))


def test_lines_of_nested_tables_are_their_own(tmp_path: Path) -> None:
    """An event written inline takes no line from the events after it."""
    text = """\
[phase]
id    = "mine"
order = 55
[[event]]
id = "mine.first"
contains = "first of mine"
form = [{ regex = "^first of mine$", sample = [{ line = "first of mine" }] }]
[[event]]
id = "mine.second"
contains = "second of mine"
  [[event.form]]
  regex = "^second of mine$"
    [[event.form.sample]]
    line = "second of mine"
    [[event.form.sample]]
    line = "second of mine, too"
"""
    (problem,) = problems(tmp_path, mine=text)
    assert problem.startswith("mine.toml:15: the sample does not fit")


def test_a_folder_that_is_missing_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackError) as refused:
        load_packs([tmp_path / "nowhere", tmp_path])
    missing, empty = refused.value.problems
    assert missing.startswith(f"{tmp_path / 'nowhere'}: no such folder\n  do: ")
    assert empty.startswith(f"{tmp_path}: no pattern file (*.toml) in this folder\n  do: ")


def test_a_folder_counts_once_and_the_built_in_one_is_there_already(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    once = load_packs([tmp_path])
    assert once.files == load_packs([tmp_path, tmp_path / ".", builtin_dir()]).files


@pytest.mark.parametrize("literal", ["token usage", "HTTP/1.1", "Decode batch"])
def test_literal_of_lines_that_come_by_the_million_is_refused(literal: str, tmp_path: Path) -> None:
    mine = changed('contains = "my allocator took"', f'contains = ["my allocator took", "{literal}"]')
    (tmp_path / "mine.toml").write_text(mine)
    with pytest.raises(PackError) as refused:
        load_checked_packs([tmp_path])
    problem, _second_form = refused.value.problems
    assert f"mine.toml:15: literal '{literal}' of 'mine.took' stands in a line that a log holds by the m" in problem
    assert "to read it takes 200 times as long as to skip it\n  do: take a part of the line that only" in problem


# ---- the stored form ------------------------------------------------------------------------------------------------


def test_stored_form_says_what_the_files_say_as_long_as_they_are_the_same(tmp_path: Path) -> None:
    for path in builtin_dir().glob("*.toml"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert read_stored(tmp_path) is None
    packs = read_files(pack_files())
    (tmp_path / STORED).write_bytes(stored_form(packs, tmp_path))
    assert packs == read_stored(tmp_path)
    with (tmp_path / "serving.toml").open("a") as file:
        file.write("# changed\n")
    assert read_stored(tmp_path) is None
    assert packs == load_packs()
