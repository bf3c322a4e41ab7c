"""Golden files: one pass on the smallest input that needs it, numbers before text.

A file in `golden/` names its command in the first line, then has the function before and, behind `// becomes`, after.
`python -m tests.passes.test_golden` rewrites those whose text has changed, showing the difference, and only where the
interpreter agrees on both sides.
"""

import difflib
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pullback.config import Options
from pullback.ir.graph import Function
from pullback.ir.parse import parse_function
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes.base import Context, Pass
from pullback.passes.numbers import check_numbers
from pullback.passes.pipeline import optimise, passes_by_name

FOLDER = Path(__file__).parent / "golden"
FILES = sorted(FOLDER.glob("*.txt"))
COMMAND = "// pullback opt --pass "
BECOMES = "// becomes\n"


@dataclass(frozen=True)
class Golden:
    path: Path
    steps: tuple[Pass, ...]
    before: str
    after: str

    @classmethod
    def read(cls, path: Path) -> "Golden":
        command, _, rest = path.read_text(encoding="utf-8").partition("\n")
        assert command.startswith(COMMAND), f"{path.name}: the first line must be `{COMMAND}NAME`"
        known = passes_by_name()
        names = command.removeprefix(COMMAND).split(" --pass ")
        before, _, after = rest.partition(BECOMES)
        return cls(path, tuple(known[name] for name in names), before, after)

    def text(self, after: str) -> str:
        names = " --pass ".join(step.name for step in self.steps)
        return f"{COMMAND}{names}\n{self.before}{BECOMES}{after}"

    def run(self) -> tuple[Function, Function]:
        before = parse_function(self.before)
        verify(before)
        after = before
        for step in self.steps:
            after = step.run(after, Context())
            verify(after)
        check_numbers(before, after)
        return before, after


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_the_expected_text_and_the_same_numbers(path: Path) -> None:
    golden = Golden.read(path)
    before, after = golden.run()
    assert print_function(before) == golden.before
    assert print_function(after) == golden.after


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_does_nothing_to_its_own_result(path: Path) -> None:
    golden = Golden.read(path)
    _, after = golden.run()
    assert golden.steps[-1].run(after, Context()) is after


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_whole_pipeline_keeps_the_numbers(path: Path) -> None:
    before = parse_function(Golden.read(path).before)
    after, _ = optimise(before, Context.of(Options(verify="each", check="numbers")))
    check_numbers(before, after)


def test_every_pass_has_a_golden_file() -> None:
    tested = {step.name for path in FILES for step in Golden.read(path).steps}
    assert tested == set(passes_by_name())


def rewrite() -> None:
    for path in FILES:
        golden = Golden.read(path)
        before, after = golden.run()
        golden = Golden(path, golden.steps, print_function(before), golden.after)
        old, new = path.read_text(encoding="utf-8"), golden.text(print_function(after))
        sys.stdout.writelines(difflib.unified_diff(old.splitlines(True), new.splitlines(True), path.name, path.name))
        path.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
