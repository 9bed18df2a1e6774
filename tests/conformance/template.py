"""Message templates: literal text, holes and choices, and how a Python expression becomes one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hole:
    """A value that is printed: the expression, its format spec, and "r" where it is a repr."""

    expr: str
    spec: str = ""
    conv: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several texts; choices with the same key go together."""

    key: str
    options: tuple[Template, ...]


Template = tuple[str | Hole | Choice, ...]
Flat = tuple[str | Hole, ...]
Resolve = Callable[[str, int], "tuple[Template, ...] | None"]

_MOST_OPTIONS = 12
_PRINTF = re.compile(r"%(?:\((\w+)\))?([#0\- +]*\d*(?:\.\d+)?)[hlL]?([diouxXeEfFgGcrsa%])")
_BRACE = re.compile(r"\{\{|\}\}|\{([^{}:!]*)(?:!([rsa]))?(?::([^{}]*))?\}")


def source_of(node: ast.AST) -> str:
    """Return an expression on one line."""
    return re.sub(r"\s+", " ", ast.unparse(node))


def normalised(template: Template) -> str:
    """Return the template as one text in which the expressions of the holes do not count, only their formats."""
    out = []
    for piece in template:
        if isinstance(piece, str):
            out.append(piece)
        elif isinstance(piece, Hole):
            out.append(f"{{:{piece.spec}}}" if piece.spec else "{}")
        else:
            out.append("<" + "|".join(sorted({normalised(option) for option in piece.options})) + ">")
    return re.sub(r"\s+", " ", "".join(out)).strip()


def literal_length(template: Template) -> int:
    """Return how many letters of literal text a template has at most."""
    return sum(
        sum(map(str.isalpha, piece))
        if isinstance(piece, str)
        else max((literal_length(option) for option in piece.options), default=0)
        if isinstance(piece, Choice)
        else 0
        for piece in template
    )


class Evaluator:
    """Turns expressions into templates; ``resolve(name, line)`` gives the texts that a name can hold there."""

    def __init__(self, resolve: Resolve, resolve_list: Resolve) -> None:
        self._resolve, self._resolve_list = resolve, resolve_list

    def template(self, node: ast.expr) -> Template:
        """Return the template of a message expression; what is not understood is one hole."""
        match node:
            case ast.Constant(value=value):
                return (str(value),)
            case ast.JoinedStr(values=values):
                return tuple(piece for value in values for piece in self._part(value))
            case ast.BinOp(left=left, op=ast.Add(), right=right) if self.is_text(left) or self.is_text(right):
                return self.template(left) + self.template(right)
            case ast.BinOp(left=left, op=ast.Mod(), right=right) if self.is_text(left):
                return self.printf(left, right.elts if isinstance(right, ast.Tuple) else [right])
            case ast.IfExp(test=test, body=body, orelse=orelse) if self.is_text(body) or self.is_text(orelse):
                return (Choice(source_of(test), (self.template(body), self.template(orelse))),)
            case ast.BoolOp(op=ast.Or(), values=values) if self.is_text(values[-1]):
                return (Choice(source_of(node), tuple(self.template(value) for value in values)),)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=ast.Name(id=name)):
                return _choice(name, self._resolve_list(name, node.lineno)) or (Hole(source_of(node)),)
            case ast.Name(id=name):
                return _choice(name, self._resolve(name, node.lineno)) or (Hole(name),)
        return (Hole(source_of(node)),)

    def is_text(self, node: ast.expr) -> bool:
        """Tell whether an expression has literal text of its own."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, str)
            case ast.JoinedStr():
                return True
        return any(not isinstance(piece, Hole) for piece in self.template(node))

    def printf(self, text: ast.expr, args: Sequence[ast.expr]) -> Template:
        """Return the template of ``text % args``."""
        options = tuple(self._printf(flat, args) for flat in _flat(self.template(text)))
        return options[0] if len(options) == 1 else (Choice(source_of(text), options),)

    def _printf(self, flat: Flat, args: Sequence[ast.expr]) -> Template:
        values = iter(args)
        named = args[0] if len(args) == 1 and isinstance(args[0], ast.Dict) else None

        def piece(found: re.Match[str]) -> Template:
            if found[3] == "%":
                return ("%",)
            node = _named(named, found[1]) if named and found[1] else next(values, None)
            if node is None or isinstance(node, ast.Starred):
                return (Hole(found[1] or "value"),)
            spec = found[2] + found[3] if found[3] not in "sra" else ""
            return self._hole(node, spec, "r" if found[3] == "r" else "")

        out: list[str | Hole | Choice] = []
        for part in flat:
            out += _substitute(_PRINTF, part, piece) if isinstance(part, str) else (part,)
        return tuple(out)

    def _part(self, node: ast.expr) -> Template:
        if not isinstance(node, ast.FormattedValue):
            return self.template(node)
        spec = ""
        if isinstance(node.format_spec, ast.JoinedStr):
            spec = "".join(str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant))
        return self._hole(node.value, spec, chr(node.conversion) if node.conversion > 0 else "")

    def _hole(self, node: ast.expr, spec: str, conv: str) -> Template:
        if not spec and conv != "r" and not isinstance(node, ast.Constant):
            return self.template(node)
        return (Hole(source_of(node), spec, conv),)

    def _call(self, node: ast.Call) -> Template:
        match node.func:
            case ast.Attribute(value=ast.Constant(value=str(text)), attr="format"):
                return self._format(text, node)
            case ast.Attribute(value=ast.Constant(value=str(text)), attr="join") if len(node.args) == 1:
                return self._join(text, node.args[0]) or (Hole(source_of(node)),)
            case ast.Attribute(value=inner, attr="strip" | "rstrip" | "lstrip") if self.is_text(inner):
                return self.template(inner)
            case ast.Name(id="str") | ast.Attribute(attr="dedent" | "cleandoc") if len(node.args) == 1:
                return self.template(node.args[0])
        return (Hole(source_of(node)),)

    def _format(self, text: str, node: ast.Call) -> Template:
        named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
        numbers = iter(range(len(node.args)))

        def piece(found: re.Match[str]) -> Template:
            if found[0] in ("{{", "}}"):
                return (found[0][0],)
            name = found[1] or str(next(numbers, ""))
            value = node.args[int(name)] if name.isdigit() and int(name) < len(node.args) else named.get(name)
            return self._hole(value, found[3] or "", found[2] or "") if value else (Hole(name),)

        return tuple(_substitute(_BRACE, text, piece))

    def _join(self, text: str, items: ast.expr) -> Template | None:
        if isinstance(items, (ast.List, ast.Tuple)):
            return _joined(text, [self.template(item) for item in items.elts])
        if isinstance(items, ast.Name):
            lists = self._resolve_list(items.id, items.lineno)
            return _choice(
                items.id,
                tuple(_joined(text, [(item,) for item in one]) for one in lists or ()),
            )
        return None


def _flat(template: Template) -> list[Flat]:
    """Return the alternatives of a template, without choices."""
    found: list[Flat] = [()]
    for piece in template:
        ends = [end for option in piece.options for end in _flat(option)] if isinstance(piece, Choice) else [(piece,)]
        found = [start + end for start in found for end in ends][:_MOST_OPTIONS]
    return found


def _named(node: ast.Dict, name: str) -> ast.expr | None:
    keys = (key.value if isinstance(key, ast.Constant) else None for key in node.keys)
    return dict(zip(keys, node.values, strict=True)).get(name)


def _joined(text: str, parts: Sequence[Template]) -> Template:
    out: list[str | Hole | Choice] = []
    for index, part in enumerate(parts):
        out += [text, *part] if index else part
    return tuple(out)


def _choice(key: str, options: tuple[Template, ...] | None) -> Template | None:
    if not options:
        return None
    return options[0] if len(options) == 1 else (Choice(key, options[:_MOST_OPTIONS]),)


def _substitute(
    regex: re.Pattern[str], text: str, piece: Callable[[re.Match[str]], Template]
) -> Iterator[str | Hole | Choice]:
    at = 0
    for found in regex.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        yield from piece(found)
        at = found.end()
    if at < len(text):
        yield text[at:]
