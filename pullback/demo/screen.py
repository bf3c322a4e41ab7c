"""What the demo shows: a progress bar and a table."""

import sys
import time
from collections.abc import Sequence
from typing import TextIO

WIDTH = 32
REDRAW = 0.05
EIGHTHS = " ▏▎▍▌▋▊▉"


class Progress:
    """A bar that redraws itself on a terminal; elsewhere four plain lines, which logs can keep."""

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label = label
        self.stream = stream or sys.stderr
        self.live = self.stream.isatty()
        self.begin = time.perf_counter()
        self.drawn = 0.0
        self.quarter = 0

    def show(self, done: int, steps: int, loss: float) -> None:
        """Show that `done` of `steps` are done."""
        now = time.perf_counter()
        if self.live and (now - self.drawn >= REDRAW or done == steps):
            self.drawn = now
            left = (now - self.begin) / done * (steps - done)
            end = "\n" if done == steps else ""
            self.stream.write(f"\r{self._text(done, steps, loss)}  {left:4.1f} s left\x1b[K{end}")
            self.stream.flush()
        elif not self.live and 4 * done // steps > self.quarter:
            self.quarter = 4 * done // steps
            self.stream.write(f"{self.label}: step {done} of {steps}, loss {loss:.4f}\n")

    def _text(self, done: int, steps: int, loss: float) -> str:
        full, part = divmod(8 * WIDTH * done // steps, 8)
        bar = ("█" * full + EIGHTHS[part] * (full < WIDTH)).ljust(WIDTH)
        return f"{self.label:<20}\x1b[36m{bar}\x1b[0m {done:>4}/{steps}  loss {loss:.4f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a head, the first column to the left and the others to the right."""
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    lines = [_line(head, widths), "-" * (sum(widths) + 3 * (len(widths) - 1)), *(_line(row, widths) for row in rows)]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    return "   ".join([first, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))])


def duration(seconds: float) -> str:
    """Return a time with three digits and the unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
