"""Lines that look like memory and that no pattern file knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logscope.events import Recogniser
from logscope.gaps import Gap, find_gaps
from logscope.model import Launch, LogLine, Node
from logscope.packs import Packs
from logscope.source import STDIN, find_sources, read_blocks


def find_unknown(launch: Launch, packs: Packs) -> tuple[Gap, ...] | None:
    """Return these lines of a launch, grouped by file and kind; None if its log is standard input, which is read once.

    Raises:
        SourceError: a log cannot be read again.
    """
    files = list(dict.fromkeys(node.file for node in launch.nodes))
    if STDIN in files:
        return None
    sources = find_sources(files)
    return tuple(gap for each in sources for gap in unknown_in(each.name, read_blocks(each, None), packs, launch.nodes))


def unknown_in(name: str, blocks: Iterable[bytes | bytearray], packs: Packs, nodes: Sequence[Node]) -> list[Gap]:
    """Return these lines of one log: what ``nodes`` say in it."""

    def is_wanted(line: LogLine) -> bool:
        if not line.whole:  # what is cut may be a line that is known
            return False
        place = (name, line.origin)
        return any((n.file, n.origin) == place and n.first_line <= line.pos.line <= n.last_line for n in nodes)

    gaps = find_gaps([(name, blocks)], Recogniser(packs, dense=True), is_wanted)
    return [gap for gap in gaps if gap.is_memory and gap.prefixed]
