"""Programs as one page to read in a browser: a row for each program, a column for each stage or pass."""

import html
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_STYLE = """body{font:13px/1.4 monospace;margin:1em;background:#fff;color:#222}
.row{display:flex;gap:1em;align-items:flex-start;overflow-x:auto}
details{border:1px solid #ccc;border-radius:4px;padding:.4em;min-width:14em}
details[open]{min-width:36em}summary{cursor:pointer;font-weight:bold}
pre{margin:.4em 0}.v{cursor:pointer;color:#06c}.hit{background:#fd5}.c{color:#888}"""

_SCRIPT = """document.addEventListener('click',e=>{if(!e.target.classList.contains('v'))return;
const t=e.target.textContent,d=e.target.closest('pre');
d.querySelectorAll('.hit').forEach(x=>x.classList.remove('hit'));
d.querySelectorAll('.v').forEach(x=>{if(x.textContent===t)x.classList.add('hit')})})"""


class Column(NamedTuple):
    """The text of a program behind one pass; shown folded where the pass changed nothing."""

    name: str
    text: str
    is_open: bool = True


def row(title: str, columns: Sequence[Column]) -> str:
    """One program. A click on a value shows its uses."""
    return f"<h1>{html.escape(title)}</h1><div class=row>{''.join(map(_column, columns))}</div>"


def page(rows: Iterable[str], title: str = "pullback") -> str:
    """A self-contained page."""
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{_STYLE}</style>"
        f"{''.join(rows)}<script>{_SCRIPT}</script>\n"
    )


def _column(column: Column) -> str:
    lines = []
    for line in column.text.splitlines():
        code, mark, comment = line.partition("//")
        words = [f"<span class=v>{w}</span>" if w.startswith("%") else html.escape(w) for w in _words(code)]
        lines.append("".join(words) + (f"<span class=c>{html.escape(mark + comment)}</span>" if mark else ""))
    state = " open" if column.is_open else ""
    return f"<details{state}><summary>{html.escape(column.name)}</summary><pre>{chr(10).join(lines)}</pre></details>"


def _words(code: str) -> list[str]:
    words, current = [], ""
    for char in code:
        inside = current.startswith("%")
        if char == "%" or (inside and not (char.isalnum() or char == "_")):
            words.append(current)
            current = ""
        current += char
    return [*words, current]
