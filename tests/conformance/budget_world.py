"""SGLang's own sizing functions, run without SGLang: cut from an unpacked release by ``ast`` and executed among stubs.

Nothing of a release is imported or kept. A name that a function uses and that is not given is ``NOTHING``: it is false, and so is
all that is made of it. Objects are ``Bag``s, whose missing attributes are None.
"""

from __future__ import annotations

import ast
import builtins
import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Nothing:
    """Stands for whatever does not matter: false, not above anything, callable, and all its parts are like it."""

    def __bool__(self) -> bool:
        return False

    def __call__(self, *_args: Any, **_named: Any) -> Nothing:
        return self

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __gt__(self, _other: object) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())


NOTHING = Nothing()


class Bag(SimpleNamespace):
    """An object with the attributes given; others are None. ``override`` sets attributes, as SGLang's contexts do."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> Bag:
        return type(self)(**{name: copy.deepcopy(value, memo) for name, value in vars(self).items()})

    def override(self, _why: str, **values: Any) -> None:
        vars(self).update(values)


class Stop(Exception):  # noqa: N818 # no error: the function got where it is to stop
    """The pool has been sized; what follows would allocate it."""


class Runner(Bag):
    """The ``self`` of sizing functions: knows the functions cut from its class, and stops where pools are allocated."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "req_to_token_pool":
            raise Stop
        functions = vars(self).get("_functions", {})
        return functools.partial(functions[name], self) if name in functions else None

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "req_to_token_pool":
            raise Stop
        super().__setattr__(name, value)


class Names(dict[str, Any]):
    """The globals of cut functions: what is not given is NOTHING."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        return NOTHING


class Module:
    """What ``from x import y`` inside a cut function gives: the names of the world."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._names[name]


def make_names(**given: Any) -> Names:
    """Return globals with the few things that all cut functions need."""
    names = Names(math=math, dataclass=dataclasses.dataclass, copy=copy, logger=NOTHING, logging=NOTHING)
    names["ceil_align"] = lambda value, step: -(-value // step) * step
    names["ceil_div"] = lambda value, step: -(-value // step)
    module = Module(names)
    inside = dict(vars(builtins))
    inside["__import__"] = lambda *_args, **_named: module
    names["__builtins__"] = inside
    names["__name__"] = "cut"
    names.update(given)
    return names


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8-sig"))


@functools.cache
def _code(path: Path, owner: str) -> dict[str, Any]:
    """Return the code of the functions of a file by name: of classes whose name begins with ``owner``, of the module for ""."""
    bodies: Iterable[ast.AST] = [_tree(path)]
    if owner:
        bodies = [node for node in _tree(path).body if isinstance(node, ast.ClassDef) and node.name.startswith(owner)]
    found = {}
    for body in bodies:
        for node in ast.iter_child_nodes(body):
            if isinstance(node, ast.FunctionDef):
                node.decorator_list = []
                found[node.name] = _compiled(node, path)
    return found


@functools.cache
def _class_code(path: Path) -> dict[str, Any]:
    return {node.name: _compiled(node, path) for node in _tree(path).body if isinstance(node, ast.ClassDef)}


@functools.cache
def _statement_code(path: Path, test: str) -> Any:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == test:
            return _compiled(node, path)
    return None


def _compiled(node: ast.stmt, path: Path) -> Any:
    future = ast.parse("from __future__ import annotations").body
    return compile(ast.Module(body=[*future, node], type_ignores=[]), str(path), "exec")


def cut_functions(path: Path, names: Names, wanted: Callable[[str], bool], owner: str = "") -> dict[str, Any]:
    """Execute functions of a file (of its classes whose name begins with ``owner``) among the names, and return them."""
    found: dict[str, Any] = {}
    for name, code in _code(path, owner).items():
        if wanted(name):
            exec(code, names)  # noqa: S102 # the point of this module
            found[name] = names[name]
    return found


def cut_classes(path: Path, names: Names, wanted: Iterable[str]) -> None:
    """Execute classes of a file into the names, in the order of the file."""
    for name, code in _class_code(path).items():
        if name in wanted:
            exec(code, names)  # noqa: S102 # the point of this module


def cut_constants(path: Path, names: Names) -> None:
    """Give the names the plain constants of a file."""
    for node in _tree(path).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.targets[0], ast.Name)
        ):
            names[node.targets[0].id] = node.value.value


def cut_statement(path: Path, test: str, names: Names) -> bool:
    """Execute the first ``if`` of a file whose test reads like this; return whether there is one."""
    code = _statement_code(path, test)
    if code is not None:
        exec(code, names)  # noqa: S102 # the point of this module
    return code is not None


@functools.cache
def find_file(root: Path, definition: str, places: tuple[str, ...]) -> Path:
    """Return the first of the places that defines a function."""
    for place in places:
        path = root / "sglang" / "srt" / place
        if path.is_file() and f"def {definition}(" in path.read_text(encoding="utf-8-sig"):
            return path
    raise FileNotFoundError(f"{root}: no {definition} in {', '.join(places)}")
