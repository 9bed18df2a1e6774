"""What a local name can hold at a line: assignments, ``+=`` and ``.append`` are followed through the branches that lead there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from .template import Choice, Evaluator, Hole, Template

_MOST_STATES = 12
_DEEPEST = 4
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
States = tuple[Template, ...] | None


class Scope:
    """The statements of one function (or module), inside of another one."""

    def __init__(self, body: Sequence[ast.stmt], outer: Scope | None = None) -> None:
        self._body, self._outer = body, outer
        self._depth = 0
        self._assigned = {name for stmt in body for name in _assigned_names(stmt)}
        self.evaluator = Evaluator(self.texts, self.lists)

    def texts(self, name: str, line: int) -> States:
        """Return the texts that a name can hold just before a line; None if it holds anything else, or is not known."""
        found = self._find(name, line, as_list=False)
        return found if found and any(any(not isinstance(p, Hole) for p in text) for text in found) else None

    def lists(self, name: str, line: int) -> States:
        """Return the lists of texts that a name can hold, one template of items each (of a dict: one of all values)."""
        return self._find(name, line, as_list=True)

    def _find(self, name: str, line: int, as_list: bool) -> States:
        if name not in self._assigned:
            return self._outer._find(name, 1 << 60, as_list) if self._outer else None
        if self._depth >= _DEEPEST:
            return None
        self._depth += 1
        try:
            states, _ = self._walk(name, self._body, line, None, as_list)
        finally:
            self._depth -= 1
        return states

    def _walk(
        self, name: str, body: Sequence[ast.stmt], line: int, states: States, as_list: bool
    ) -> tuple[States, bool]:
        """Return the states after the statements, and whether the line was reached."""
        for stmt in body:
            if stmt.lineno > line:
                return states, True
            blocks = list(_blocks(stmt))
            if stmt.lineno <= line <= (stmt.end_lineno or stmt.lineno):
                for block in blocks:
                    if block and block[0].lineno <= line <= (block[-1].end_lineno or line):
                        return self._walk(name, block, line, states, as_list)[0], True
                return states, True
            if not blocks:
                states = self._step(name, stmt, states, as_list)
                continue
            ends = [self._walk(name, block, line, states, as_list)[0] for block in blocks]
            if not (isinstance(stmt, ast.If) and stmt.orelse) and not isinstance(stmt, (ast.With, ast.AsyncWith)):
                ends.append(states)
            states = _merged(end for block, end in zip([*blocks, []], ends, strict=False) if not _leaves(block))
        return states, False

    def _step(self, name: str, stmt: ast.stmt, states: States, as_list: bool) -> States:
        match stmt:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                return self._start(value, as_list)
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                return self._start(value, as_list)
            case ast.AugAssign(target=ast.Name(id=target), op=ast.Add(), value=value) if target == name:
                if isinstance(value, ast.Constant) and not isinstance(value.value, str):
                    return None
                added = self._items(value) if as_list else self.evaluator.template(value)
                return tuple(state + added for state in states or ((),))
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr="append"), args=[item])):
                if target == name and as_list:
                    return tuple((*state, *self._item(item)) for state in states or ((),))
        return states

    def _start(self, value: ast.expr, as_list: bool) -> States:
        if not as_list:
            is_number = isinstance(value, ast.Constant) and not isinstance(value.value, str)
            return None if is_number else (self.evaluator.template(value),)
        if isinstance(value, ast.Call) and value.args and isinstance(value.args[-1], ast.Dict):
            value = value.args[-1]  # defaultdict(..., {...})
        if isinstance(value, ast.Dict):
            return tuple(self.evaluator.template(item) for item in value.values) or None
        return (self._items(value),) if isinstance(value, (ast.List, ast.Tuple)) else None

    def _items(self, value: ast.expr) -> Template:
        if not isinstance(value, (ast.List, ast.Tuple)):
            return ()
        return tuple(piece for item in value.elts for piece in self._item(item))

    def _item(self, item: ast.expr) -> Template:
        """Return one item as one piece."""
        template = self.evaluator.template(item)
        return template if len(template) == 1 else (Choice("", (template,)),)


def _assigned_names(stmt: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement assigns, not looking into functions."""
    if isinstance(stmt, _FUNCTIONS):
        return
    targets: list[ast.expr] = []
    if isinstance(stmt, ast.Assign):
        targets = stmt.targets
    elif isinstance(stmt, (ast.AugAssign, ast.AnnAssign)):
        targets = [stmt.target]
    yield from (target.id for target in targets if isinstance(target, ast.Name))
    for block in _blocks(stmt):
        for inner in block:
            yield from _assigned_names(inner)


def _blocks(stmt: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement."""
    if isinstance(stmt, _FUNCTIONS):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(stmt, name, None)
        if isinstance(block, list) and block:
            yield block
    for handler in getattr(stmt, "handlers", ()):
        yield handler.body


def _leaves(block: Sequence[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


def _merged(ends: Iterator[States]) -> States:
    merged = dict.fromkeys(text for end in ends for text in end or ())
    return tuple(merged)[:_MOST_STATES] or None
