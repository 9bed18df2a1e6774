"""Pattern files: what they hold (``types``) and how they are read (``load``, ``envelope``, ``values``)."""

from logscope.packs.load import builtin_dir, load_packs, pack_files, read_files, read_understood
from logscope.packs.problems import Problem, pack_error
from logscope.packs.types import (
    SHORTEST_LITERAL,
    Blame,
    Block,
    Edge,
    Envelope,
    Field,
    Form,
    Packs,
    Pairs,
    Pattern,
    Phase,
    Place,
    Prefix,
    Sample,
    Secret,
    compile_regex,
)

__all__ = [
    "SHORTEST_LITERAL",
    "Blame",
    "Block",
    "Edge",
    "Envelope",
    "Field",
    "Form",
    "Packs",
    "Pairs",
    "Pattern",
    "Phase",
    "Place",
    "Prefix",
    "Problem",
    "Sample",
    "Secret",
    "builtin_dir",
    "compile_regex",
    "load_packs",
    "pack_error",
    "pack_files",
    "read_files",
    "read_understood",
]
