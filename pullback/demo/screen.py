"""What the demo shows: progress and a table."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table


class Watched:
    """Progress of one training: a bar on a terminal; elsewhere four plain lines, which logs can keep."""

    def __init__(self, label: str, console: Console | None = None) -> None:
        self.label = label
        self.console = console or Console(stderr=True)
        self.quarter = 0
        self.bar = Progress(
            TextColumn("{task.description:<20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task(label, total=None, loss="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.bar.stop()

    def show(self, done: int, steps: int, loss: float) -> None:
        """Show that `done` of `steps` are done."""
        if self.console.is_terminal:
            self.bar.update(self.task, completed=done, total=steps, loss=f"loss {loss:.4f}")
        elif 4 * done // steps > self.quarter:
            self.quarter = 4 * done // steps
            self.console.print(f"{self.label}: step {done} of {steps}, loss {loss:.4f}", highlight=False)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return rows under a head, the first column to the left and the others to the right."""
    made = Table(header_style="bold")
    for number, name in enumerate(head):
        made.add_column(name, justify="right" if number else "left")
    for row in rows:
        made.add_row(*row)
    return made


def duration(seconds: float) -> str:
    """Return a time with three digits and the unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
