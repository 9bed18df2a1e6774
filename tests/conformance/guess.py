"""What a hole prints: a value by its format and by the name of its expression; distinctive, and the same in every run."""

from __future__ import annotations

import re
import zlib

from .template import Hole

TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.11/site-packages/sglang/srt/managers/scheduler.py", line 100, in run\n'
    "    run()\n"
    "ValueError: no such kernel\n"
)
_FLOAT = re.compile(r"^[<>^ ,+0-9]*\.(\d+)[fgeGE]?$|^\d*[fge]$")
_PERCENT = re.compile(r"\.(\d+)%$")
_WHOLE = re.compile(r"^[<>^ ,+\d]*d?$|^,$")
# the first rule whose regex is found in the expression says what it prints
_BY_NAME: tuple[tuple[str, str], ...] = (
    (r"format_exc\(|exception_traceback|traceback$|^tb$|stack_trace", TRACEBACK),
    (r"quant_str$", "quant=fp8, fmt=e4m3"),
    (r"^server_args$", "ServerArgs(model_path='/models/m', tp_size=8, mem_fraction_static=0.88)"),
    (
        r"server_args_for_logging|resolved_dict",
        "{'model_path': '/models/m', 'tp_size': 8, 'mem_fraction_static': 0.88}",
    ),
    (r"(?i)dtype|torch\.(?:bfloat16|float)", "torch.bfloat16"),
    (r"(?i)__name__|^type\(|\bcls\b|class_name|architecture|model_type|model_class|arch$", "LlamaForCausalLM"),
    (
        r"(?i)(?:^|[._])(?:e|ex|exc|err|error|exception|reason|detail|details|hint|reasons|last_error|error_msg|msg|message)$",
        "no such kernel",
    ),
    (r"(?i)^repr\((?:e|ex|exc|err)\)$", "RuntimeError('no such kernel')"),
    (r"(?i)(?:path|dir|file|filename|folder|cache_key|root)(?:\(\))?$|os\.path", "/models/m"),
    (r"(?i)url|endpoint|address|addr$|init_method|ipc_name", "tcp://127.0.0.1:20000"),
    (r"(?i)(?:^|[._])host(?:name)?(?:_ip)?$|_ip$|\bip$", "127.0.0.1"),
    (r"(?i)signum", "15"),
    (r"^cls_name$", "CustomAllReduceV2"),
    (r"max_bs$|status_code|memory_allocated|num_tokens_per_bs", "INT"),
    (
        r"^os\.getpid|(?:^|\.)(?:topk|size_mb|floor|gamma|full|swa)$|dim$|\d_(?:size|num)|gained$|_cost_tokens$",
        "INT",
    ),
    (r"(?:^|\.)(?:soft|include_parent)$", "True"),
    (r"^tuple\(|shape\b", "(1, 2, 4)"),
    (r"rids$", "['a', 'b']"),
    (r"(?i)^frame$", "<frame at 0x7f00, code run>"),
    (
        r"(?i)_str$|label|backend|(?:^|[._])(?:name|kind|mode|reason|method|algo\w*|layout|status|state|prefix|suffix|tag)(?:\.value)?$|_name$|_mode$|_key$|_prefix$|\.value$|\.name$",
        "text",
    ),
    (r"(?i)version|__version__", "2.27.3"),
    (
        r"^list\(|^sorted\(|^\[|_list$|_sizes$|_shapes$|capture_bs|capture_num_tokens|_bs$|batch_sizes|supported_|SUPPORTED|\.shape$|_ids$|_patterns$",
        "[1, 2, 4]",
    ),
    (r"^set\(|^dict\(|^\{|config$|kwargs$|_dict$", "{'a': 1}"),
    (
        r"(?i)^(?:not )?(?:is|has|use|enable|disable|should|can)_|[._](?:is|has|use|enable|disable|uses|should|supports)_|is not None"
        r"|enabled$|[!=]=|\bnot\b",
        "True",
    ),
    (r"(?i)pid$|exit_?code|returncode|rank|port$|world_size|(?:^|[._])(?:tp|dp|pp|ep)$", "INT"),
    (r"(?i)_gb\b|_mb\b|_gib\b|\bgb\b|GB\b|1 << 30|1024|mem_usage|memory|(?:^|[._])mem(?:$|[._])", "FLOAT"),
    (
        r"(?i)elapsed|duration|time\(\)|_time$|perf_counter|seconds|timeout|_s$|fraction|ratio|usage|throughput|tic\b|conservativeness|factor\b|scale$",
        "FLOAT",
    ),
    (
        r"(?i)size|num|len|tokens?|count|max|min|limit|bytes|page|slots?|idx|index|\bid$|_id$|step|layers?|reqs?|requests|rows|total|capacity|length|width|depth|bits|size|heads|rate|\bn$|\bm$|\bk$|\bN$|\bK$|level|bs$|signum|cap$|^[ijr]$",
        "INT",
    ),
)
# values that change the wording around them, or are sometimes missing
_VARIANTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:^|\.)soft$", ("False", "True")),
    (r"(?:^|\.)speculative_num_draft_tokens$", ("4", "None")),
)
_RULES = tuple((re.compile(regex), value) for regex, value in _BY_NAME)


def variants(hole: Hole) -> tuple[str, ...]:
    """Return the texts to try for a hole that is worth more than one; () for all others."""
    if hole.spec:
        return ()
    return next((texts for regex, texts in _VARIANTS if re.search(regex, hole.expr)), ())


def printed_value(hole: Hole, index: int, before: str, after: str) -> str:
    """Return the text that a hole prints.

    Args:
        hole: the expression and its format.
        index: which hole of the message it is; no two print the same number.
        before: the literal text in front of it, which may say its unit.
        after: the literal text behind it.
    """
    seed = zlib.crc32(hole.expr.encode()) % 89 + 10
    spec = hole.spec
    percent = _PERCENT.search(spec)
    if percent:
        return f"{seed % 90 + 1 + index / 10:.{percent[1]}f}%"
    decimals = _FLOAT.match(spec)
    if decimals and spec:
        return f"{_number(seed, index):.{decimals[1] or 6}f}"
    if spec and ("x" in spec or "X" in spec):
        return f"{seed * 4096:x}"
    if spec and "d" in spec:
        return str(_whole(seed, index))
    if spec and "," in spec:
        return f"{_whole(seed, index) * 1000:,}"
    value = _by_name(hole.expr, before, after)
    if value == "INT":
        return str(_whole(seed, index))
    if value == "FLOAT":
        return _free_float(hole.expr, seed, index)
    quoted = hole.conv == "r" and value[:1].isalpha() and value not in ("True", "False", "None") and "." not in value
    if value in ("True", "['a', 'b']"):
        return value
    return f"'{value}'" if quoted or (hole.conv == "r" and value.startswith("/")) else value


def _by_name(expr: str, before: str, after: str) -> str:
    if expr == "size_mb":
        return "INT"
    if re.match(r"\s*(?:GB|GiB|MB|MiB|KB|KiB)\b", after) or re.match(r"\s?(?:s|sec|secs|ms|seconds?)\b", after):
        return "FLOAT"
    if re.match(r"\s*(?:tokens?|bytes|slots|requests|pages|layers|ranks)\b", after) and not re.search(
        r"_s$|list|ids$", expr
    ):
        return "INT"
    if after[:1] == "'" and before[-1:] == "'":
        return next((value for regex, value in _RULES if regex.search(expr) and value[:1] in "/t2"), "text")
    found = next((value for regex, value in _RULES if regex.search(expr)), None)
    word = re.search(r"(\w+)[=:] ?$", before)
    if found is None and word:
        found = next((value for regex, value in _RULES if regex.search(word[1])), None)
    return found or "text"


def _number(seed: int, index: int) -> float:
    return seed + (index * 7 + 3) / 100 + seed / 1000 + 0.000417 * seed


def _whole(seed: int, index: int) -> int:
    return seed * 100 + index * 7 + 3


def _free_float(expr: str, seed: int, index: int) -> str:
    rounded = re.match(r"round\(.*, (\d)\)$", expr)
    if rounded:
        return f"{_number(seed, index):.{rounded[1]}f}"
    if re.match(r"int\(|math\.(?:ceil|floor)", expr) or "//" in expr:
        return str(_whole(seed, index))
    return repr(round(_number(seed, index), 9))
