"""Pattern files: what they hold (``types``), and how they are read (``builtin``; TOML: ``load``, ``envelope``, ``values``).

What reads TOML is not imported here: the built-in pattern files are stored in another form.
"""

from logscope.packs.builtin import builtin_dir, load_packs
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
    "Sample",
    "Secret",
    "builtin_dir",
    "compile_regex",
    "load_packs",
]
