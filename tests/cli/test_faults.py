"""`pullback bisect` and `pullback reduce`, on passes that are wrong on purpose."""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pullback.cli import main
from pullback.cli.faults import STEPS, bisect, reduce
from pullback.cli.target import UsageError
from pullback.config import Options
from pullback.ir.graph import Function, Op, walk
from pullback.ir.ops import OPS
from pullback.ir.parse import parse_function
from pullback.passes.base import Context, Pass, Rebuild, map_regions, with_body
from pullback.passes.bisect import first_fault
from pullback.passes.shrink import shrink
from pullback.record import record

PROGRAM = """// stage: traced
func @f(%x: f64[4], %y: f64[4], %n: i64[]) -> (f64[4], f64[], i64[]) {
  %0 = mul %x, %y : f64[4]
  %1 = exp %0 : f64[4]
  %2 = add %1, %x : f64[4]
  %3 = tanh %2 : f64[4]
  %4 = add %3, %y : f64[4]
  %5 = sub %4, %1 : f64[4]
  %6 = sum %5 {axes = [0]} : f64[]
  %7 = sin %4 : f64[4]
  return %7, %6, %n
}
"""


@record(frozen=True)
class SubtractFirst:
    """Wrong on purpose: `x - y` becomes `y - x`. Also counts a right rewrite for each `add`."""

    name: str = "wrong"

    def run(self, function: Function, ctx: Context) -> Function:
        return with_body(function, self._region(function.body, ctx))

    def _region(self, region: Any, ctx: Context) -> Any:
        new = Rebuild()
        for op in region.ops:
            current = new.current(op, map_regions(op, lambda inner: self._region(inner, ctx)))
            if op.name == "add" and ctx.tally.may("turned_add"):
                current = _turned(current)
            if op.name == "sub" and ctx.tally.may("turned_sub"):
                current = _turned(current)
            new.keep(op, current)
        return new.region(region)


@record(frozen=True)
class Stumbling:
    """Wrong on purpose: raises at `tanh`."""

    name: str = "stumbling"

    def run(self, function: Function, ctx: Context) -> Function:
        if any(op.name == "tanh" for op in walk(function.body)):
            raise KeyError("tanh")
        return function


def _turned(op: Op) -> Op:
    return Op(OPS[op.name], op.operands[::-1], op.attrs, tuple(r.type for r in op.results), op.regions, op.loc)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "f.txt"
    path.write_text(PROGRAM)
    return path


def arguments(target: Path, **more: Any) -> argparse.Namespace:
    return argparse.Namespace(target=str(target), **{"failing": None, "out": None, **more})


def names(text: str) -> list[str]:
    return [op.name for op in walk(parse_function(text).body)]


def test_the_wrong_rewrite_is_found_among_right_ones(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bisect(arguments(file), (*STEPS, SubtractFirst())) == 1
    said = capsys.readouterr().out
    assert "wrong is the first to be wrong on f: NumbersError: result" in said
    assert "is number 3, turned_sub" in said
    assert "PULLBACK=limit=2" in said
    assert "PULLBACK=skip=turned_sub" in said
    path = said.rpartition("pullback reduce ")[2].strip()
    assert names(Path(path).read_text()) == names(PROGRAM)


def test_a_pass_that_raises_is_found(file: Path) -> None:
    fault = first_fault(parse_function(PROGRAM), (*STEPS, Stumbling()), Options())
    assert fault is not None
    assert (fault.step, fault.problem, fault.rewrite) == ("stumbling", "KeyError: 'tanh'", None)
    assert first_fault(parse_function(PROGRAM), (*STEPS, Stumbling()), Options(skip=("stumbling",))) is None


def test_nothing_is_found_where_nothing_is_wrong(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bisect(arguments(file)) == 0
    assert "every pass, and native code" in capsys.readouterr().out
    assert main(["bisect", str(file)]) == 0
    with pytest.raises(UsageError, match="does not fail"):
        reduce(arguments(file))


@pytest.mark.parametrize(("step", "left"), [(SubtractFirst(), ["sub"]), (Stumbling(), ["tanh"])])
def test_what_does_not_matter_is_cut_away(
    file: Path, tmp_path: Path, step: Pass, left: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "small.txt"
    assert reduce(arguments(file, out=str(out)), (step,)) == 0
    small = parse_function(out.read_text())
    assert [op.name for op in walk(small.body)] == left
    assert len(small.results) == 1
    assert len(small.params) == (2 if left == ["sub"] else 1)
    assert "8 ops before, 1 after" in capsys.readouterr().err


def test_the_exit_status_of_a_command_may_tell_what_fails(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "import sys; sys.exit(7 if ' exp ' in open(sys.argv[1]).read() else 0)"
    command = f'{sys.executable} -c "{script}" {{}}'
    assert main(["reduce", str(file), "--command", command]) == 0
    assert names(capsys.readouterr().out) == ["exp"]
    assert main(["reduce", str(file), "--command", "true {}"]) == 2
    assert main(["reduce", str(file), "--command", "false"]) == 2


def test_the_body_of_a_loop_is_made_smaller_too(tmp_path: Path) -> None:
    source = tmp_path / "loops.py"
    source.write_text(
        "import numpy as np\nimport pullback as pb\n\n\ndef f(x):\n"
        "    def step(i, c):\n        return np.sin(c) * x - np.exp(c) / 3.0\n\n"
        "    return pb.fori_loop(0, 3, step, x)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-m", "pullback", "dump", f"{source}:f", "--args", "f64[3]", "--stage", "traced"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    function = parse_function(shown.stdout)

    def fails(candidate: Function) -> bool:
        return any(op.name == "exp" for op in walk(candidate.body))

    inside = [op.name for op in walk(shrink(function, fails).body)]
    assert "exp" in inside
    assert not {"sin", "mul", "sub", "div"} & set(inside)
    assert len(inside) < sum(1 for _ in walk(function.body)) // 2
