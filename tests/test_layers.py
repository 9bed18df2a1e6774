"""The package keeps its order: imports point one way, libraries stay where they belong, modules and functions stay short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import logscope

PACKAGE = Path(logscope.__file__).parent
DESIGN = Path(__file__).parent.parent / "docs" / "design.md"
MODULES = sorted(PACKAGE.rglob("*.py"))

LONGEST_MODULE = 300
LONG_MODULES = {
    "frames.py": "the schema of all frames, a plain table, beside the functions that fill it",
}
LONGEST_FUNCTION = 39
LONG_FUNCTIONS = {
    ("commands/events.py", "events"): "half of it is the signature: one parameter per flag",
    ("commands/check.py", "check"): "half of it is the signature: one parameter per flag",
    ("commands/diff.py", "diff"): "half of it is the signature: one parameter per flag",
    ("commands/explain.py", "explain"): "half of it is the signature: one parameter per flag",
    ("report/diff_data.py", "diff_data"): "a plain list: one line per field of docs/json.md",
    ("report/explain.py", "explanation_data"): "a plain list: one line per field of docs/json.md",
    ("report/timeline.py", "launch_data"): "a plain list: one line per field of docs/json.md",
}
LIBRARIES = {"typer": ("commands/", "cli.py"), "rich": ("commands/", "render/")}


def place_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def unit_of(place: str) -> str:
    """Return the row table's name of a module: its own, or that of the package it is in."""
    return place.partition("/")[0].removesuffix(".py")


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def rows() -> dict[str, int]:
    """Return module -> row, from the table in docs/design.md."""
    table = re.findall(r"^\| (\d+) \| ((?:`\w+` ?)+)\|", DESIGN.read_text(encoding="utf-8"), flags=re.MULTILINE)
    pairs = [(name, int(row)) for row, names in table for name in re.findall(r"`(\w+)`", names)]
    assert len(pairs) == len(dict(pairs)), "a module has two rows"
    return dict(pairs)


def imported_units(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, unit of this package that is imported). What ``__init__`` imports for type checkers it loads when it is asked for."""
    tree = tree_of(path)
    skipped: set[ast.AST] = set()
    if place_of(path) == "__init__.py":
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                skipped.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place_of(path)}:{node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "logscope":
                is_module = len(parts) > 1 and ((PACKAGE / f"{parts[1]}.py").exists() or (PACKAGE / parts[1]).is_dir())
                yield node.lineno, parts[1] if is_module else "__init__"


def test_modules_are_found() -> None:
    assert len(MODULES) > 20


def test_every_module_has_a_row_and_every_row_a_module() -> None:
    assert {unit_of(place_of(path)) for path in MODULES} == set(rows())


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_imports_point_to_earlier_rows(path: Path) -> None:
    row, own = rows(), unit_of(place_of(path))
    wrong = [
        f"{place_of(path)}:{line}: {own} (row {row[own]}) imports {other} (row {row[other]})"
        for line, other in imported_units(path)
        if other != own and row[other] >= row[own]
    ]
    assert [] == wrong


def imported_libraries(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module.partition(".")[0]


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_terminal_libraries_stay_at_the_edge(library: str) -> None:
    places = {
        place_of(path)
        for path in MODULES
        if library in dict(map(reversed, imported_libraries(ast.walk(tree_of(path)))))
    }  # type: ignore[arg-type] # pairs
    assert places, f"{library} is not used any more"
    assert [] == [place for place in sorted(places) if not place.startswith(LIBRARIES[library])]


def at_module_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when a module is imported: not the insides of functions, nor what is for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from at_module_level(child)


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_pandas_is_not_imported_with_a_module(path: Path) -> None:
    assert [] == [
        line
        for line, name in imported_libraries(at_module_level(tree_of(path)))
        if name in ("pandas", "numpy", "pyarrow")
    ]


def constant_value(node: ast.AST) -> int | float | None:
    """Return the value of a number, or of an operation on numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = constant_value(node.left), constant_value(node.right)
        if left is None or right is None or right > 64:
            return left * right if isinstance(node.op, ast.Mult) and left is not None and right is not None else None
        if isinstance(node.op, ast.LShift) and isinstance(left, int) and isinstance(right, int):
            return left << right
        if isinstance(node.op, ast.Pow):
            return float(left) ** float(right)
        if isinstance(node.op, ast.Mult):
            return left * right
    return None


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_only_units_knows_what_a_gib_is(path: Path) -> None:
    found = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.expr) and constant_value(node) == 2**30]
    assert bool(found) == (place_of(path) == "units.py")


@pytest.mark.parametrize("text", ["1 << 30", "2**30", "1024**3", "1024 * 1024 * 1024", "1073741824"])
def test_a_gib_is_seen_in_all_its_spellings(text: str) -> None:
    assert 2**30 == constant_value(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_nothing_is_printed_but_by_the_command_line(path: Path) -> None:
    calls = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert [] == calls or place_of(path) == "cli.py"


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_modules_stay_short(path: Path) -> None:
    count = len(path.read_text(encoding="utf-8").splitlines())
    assert count < LONGEST_MODULE or place_of(path) in LONG_MODULES, (
        f"{count} lines: make it a package of the same name"
    )


@pytest.mark.parametrize("path", MODULES, ids=place_of)
def test_functions_stay_short(path: Path) -> None:
    long = [
        f"{place_of(path)}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
        and (place_of(path), node.name) not in LONG_FUNCTIONS
    ]
    assert [] == long


def test_exceptions_name_what_exists() -> None:
    """Whoever splits a long module or function strikes it off the list."""
    places = {place_of(path): path for path in MODULES}
    assert set(LONG_MODULES) <= set(places)
    for place, function in LONG_FUNCTIONS:
        names = [node.name for node in ast.walk(tree_of(places[place])) if isinstance(node, ast.FunctionDef)]
        assert function in names, (place, function)
