"""Pattern files: what they hold (``types``) and how they are read (``load``)."""

from logscope.packs.load import builtin_dir, load_packs, read_files
from logscope.packs.types import (
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
)

__all__ = [
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
    "load_packs",
    "read_files",
]
