"""Every message that the source of a release can print: log calls, prints, warnings, progress bars and raised errors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .scope import Scope
from .template import Template, literal_length, source_of

Kind = Literal["log", "print", "warn", "raise", "tqdm"]

_LEVELS = {"debug", "info", "warning", "warn", "error", "critical", "exception", "fatal"}
_LOGGER = re.compile(r"(?:^|\.|_)(?:log|logger|logging)(?:\(|$|\.)", re.I)
_HELPER = re.compile(r"^_*(?:rank0_|log_|print_|warn_)(?P<rest>\w*)$|^_*log$")
_HELPER_END = re.compile(r"(?:once|rank0|log|print|info|warning|debug|error|print_warning)$")
_SKIPPED = re.compile(
    r"(?:^|/)(?:tests?|lang|eval|benchmarks?|multimodal_gen|function_call|parser|jit_kernel|kernels|grpc"
    r"|bench_\w+\.py|constrained|debug_utils|profiler\.py|api)(?:/|$)"
)
_READ_IF = re.compile(r"(?:^|/)srt/(?:layers|models|hardware_backend|configs|platforms|multimodal)/")
_ERROR = re.compile(r"(?:Error|Exception)$")
_WORTH_READING = re.compile(
    r"\bGB\b|\bGiB\b|\bMB\b|\bMiB\b|GB\b|[Mm]emory|[Ww]arm(?:up|ed|ing)|autotune|elapsed|\btook\b|checkpoint\.?\b|[Aa]ll-?[Rr]educe"
)


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that a release can print. ``level`` of a raised error is its class; ``guards`` are the tests around it."""

    kind: Kind
    level: str
    template: Template
    file: str
    line: int
    function: str
    guards: tuple[str, ...]
    bar_format: str = ""

    @property
    def place(self) -> str:
        """Where it stands in the release."""
        return f"{self.file}:{self.line}"


def python_files(root: Path) -> Iterator[Path]:
    """Yield the files of an unpacked release that a launch can run."""
    for path in sorted((root / "sglang").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not _SKIPPED.search(name.removeprefix("sglang/")):
            yield path


def is_worth_reading(name: str, text: str) -> bool:
    """Tell whether a file is read: layers and models only where they speak of memory, time or weights."""
    return not _READ_IF.search(name) or _WORTH_READING.search(text) is not None


def harvest_text(text: str, name: str) -> list[Message]:
    """Return the messages of one file; a file that this Python cannot parse has none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    visitor = _Visitor(name)
    visitor.scopes.append(Scope(tree.body))
    visitor.visit(tree)
    return visitor.found


class _Visitor(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Message] = []
        self.scopes: list[Scope] = []
        self._names: list[str] = []
        self._guards: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # named by ast
        self._inside(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scopes.append(Scope(node.body, self.scopes[-1]))
        self._inside(node)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def _inside(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._names.append(node.name)
        guards, self._guards = self._guards, []
        self.generic_visit(node)
        self._guards = guards
        self._names.pop()

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        for guard, body in ((source_of(node.test), node.body), (f"not ({source_of(node.test)})", node.orelse)):
            self._guards.append(guard)
            for stmt in body:
                self.visit(stmt)
            self._guards.pop()

    def visit_Call(self, node: ast.Call) -> None:
        args = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
        match node.func:
            case ast.Attribute(value=base, attr=name) if args:
                self._method(node, source_of(base), name, args)
            case ast.Name(id=name):
                self._function(node, name, args)
        if _is_bar(node.func):
            self._bar(node)
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call) and not _ERROR.search(source_of(node.exc.func)):
            self._emit("raise", source_of(node.exc.func), node, node.exc.args[:1])
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        if node.msg is not None:
            self._emit("raise", "AssertionError", node, [node.msg])
        self.generic_visit(node)

    def _method(self, node: ast.Call, base: str, name: str, args: Sequence[ast.expr]) -> None:
        plain = re.sub(r"_(?:once|on_rank0|rank0)$", "", name)
        if _LOGGER.search(base) and plain in _LEVELS:
            level = {"warn": "warning", "fatal": "critical", "exception": "error"}.get(plain, plain)
            self._emit("log", level, node, args)
        elif _LOGGER.search(base) and name == "log" and len(args) > 1:
            self._emit("log", source_of(args[0]).split(".")[-1].lower(), node, args[1:])
        elif name == "warn" and base == "warnings":
            category = source_of(args[1]) if len(args) > 1 else "UserWarning"
            self._emit("warn", category, node, args[:1])
        elif name == "write" and base in ("sys.stdout", "sys.stderr"):
            self._emit("print", "print", node, args[:1])
        elif name in ("set_description", "set_description_str"):
            self._emit("tqdm", "tqdm", node, args[:1])
        elif name == "error" and base.endswith("parser"):
            self._emit("raise", "launch_server.py: error", node, args[:1])
        else:
            self._function(node, name, args)

    def _function(self, node: ast.Call, name: str, args: Sequence[ast.expr]) -> None:
        if name == "print":
            self._emit("print", "print", node, args, joined=True)
        elif _ERROR.search(name):  # raised here, or where it is returned to
            self._emit("raise", source_of(node.func), node, args[:1])
        elif name == "raise_error_or_warn":
            self._emit("raise", "ValueError", node, args[3:4])
            self._emit("log", "warning", node, args[3:4])
        elif name == "exit" and args and not isinstance(args[0], ast.Constant):
            self._emit("print", "print", node, args)
        elif _HELPER.search(name) and (_HELPER_END.search(name) or name.endswith("log")):
            level = "debug" if "debug" in name else "warning" if "warn" in name else "info"
            rest = args[1:] if args and re.search(r"log", source_of(args[0])[:12], re.I) and len(args) > 1 else args
            self._emit("print" if "print" in name and "once" not in name else "log", level, node, rest)

    def _bar(self, node: ast.Call) -> None:
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        if isinstance(named.get("desc"), ast.expr):
            bar_format = source_of(named["bar_format"]) if "bar_format" in named else ""
            self._emit("tqdm", "tqdm", node, [named["desc"]], bar_format=bar_format)

    def _emit(
        self,
        kind: Kind,
        level: str,
        node: ast.AST,
        args: Sequence[ast.expr],
        joined: bool = False,
        bar_format: str = "",
    ) -> None:
        if not args:
            return
        evaluator = self.scopes[-1].evaluator
        if joined:
            pieces = [piece for arg in args for piece in (" ", *evaluator.template(arg))][1:]
            template: Template = tuple(pieces)
        elif len(args) > 1:
            template = evaluator.printf(args[0], args[1:])
        else:
            template = evaluator.template(args[0])
        if literal_length(template) < 3:
            return
        where = ".".join(self._names) or "<module>"
        line = getattr(node, "lineno", 0)
        self.found.append(Message(kind, level, template, self.file, line, where, tuple(self._guards), bar_format))


def _is_bar(func: ast.expr) -> bool:
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    return name in ("tqdm", "trange", "DisabledTqdm")
