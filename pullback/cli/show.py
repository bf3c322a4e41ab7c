"""Showing IR: with the user's source lines between the ops, coloured on a terminal, and as differences."""

import difflib
import linecache
import re
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

_LOCATION = re.compile(r"//.*?([^\s,]+):(\d+)(?: |$)")
_STYLES = [
    (re.compile(r"//.*$"), "bright_black"),
    (re.compile(r"%\w+"), "cyan"),
    (re.compile(r"@[\w.$]+"), "bold magenta"),
    (re.compile(r"\b(?:bool|[iuf]\d+|c64|c128)\[[\d,]*\]"), "green"),
    (re.compile(r"(?<== )[a-z]\w*|^\s*(?:func|return|yield|guard|check)\b"), "bold yellow"),
]


def with_sources(text: str) -> str:
    """Textual IR with a comment line of the user's source before the ops that come from it. It still parses."""
    return "".join(line + "\n" for line in _lines_with_sources(text.splitlines()))


def _lines_with_sources(lines: list[str]) -> Iterator[str]:
    last = None
    for line in lines:
        match = _LOCATION.search(line) if line.startswith(" ") else None
        place = (match[1], int(match[2])) if match else last
        if match and place != last:
            source = linecache.getline(*place).strip() if place else ""
            indent = line[: len(line) - len(line.lstrip())]
            if source and place:
                yield f"{indent}// {place[1]} | {source}"
        last = place
        yield line


def difference(before: str, after: str, names: tuple[str, str]) -> str:
    """A unified difference of two stages."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="", n=2)
    return "\n".join(lines) + "\n"


def show(text: str, color: bool | None = None) -> None:
    """Write text to standard output; coloured where that is a terminal, or as `color` says."""
    wants = sys.stdout.isatty() if color is None else color
    if not wants:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    console = Console(highlight=False, force_terminal=True, soft_wrap=True)
    for line in text.splitlines():
        console.print(_coloured(line))


def _coloured(line: str) -> Text:
    if line[:1] in "+-" and line[:3] not in ("+++", "---"):
        return Text(line, style="green" if line[0] == "+" else "red")
    styled = Text(line)
    for pattern, style in _STYLES:
        for match in pattern.finditer(line):
            styled.stylize(style, match.start(), match.end())
    return styled
