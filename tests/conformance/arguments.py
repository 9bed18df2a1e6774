"""The arguments of a release: the fields of its ServerArgs, as the log prints them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_SERVER_ARGS = Path("sglang/srt/server_args.py")
_GROUPS = Path("sglang/srt/arg_groups/fields")  # from 0.5.20 on the fields of ServerArgs are collected from here


def argument_names(root: Path) -> list[str]:
    """Return the names of the arguments of an unpacked release, in alphabetical order.

    Raises:
        FileNotFoundError: it has no server_args.py.
    """
    names: set[str] = set()
    for path in (root / _SERVER_ARGS, *(root / _GROUPS).glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8-sig", errors="replace"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and (node.name == "ServerArgs" or path.parent.name == _GROUPS.name):
                names.update(_fields(node))
    return sorted(name for name in names if not name.startswith("_"))


def _fields(server_args: ast.ClassDef) -> Iterator[str]:
    for node in server_args.body:
        is_field = isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node.annotation)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_field:
            yield node.target.id
