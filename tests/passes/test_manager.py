"""The pass manager and the pipeline: order, checks, dumps, bisecting, and what is said when a pass fails."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pullback.config import Options
from pullback.errors import PassError
from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter
from pullback.ir.graph import Function, Location, Op
from pullback.ir.ops import OPS
from pullback.ir.parse import parse_function
from pullback.ir.text import print_function
from pullback.ir.types import parse_type
from pullback.passes.base import Context, count_ops, doc_of
from pullback.passes.manager import report, run_passes
from pullback.passes.pipeline import OPTIMISE, ORDER, broken_orders, optimise, passes_by_name


def example() -> Function:
    b = Builder(Location("model.py", 3, "f"))
    f = Emitter(b, OPS)
    x = f.wrap(b.param(parse_type("f64[3]"), "x"))
    y = f.neg(f.neg(x)) * 1.0 + (2.0 * x) * (2.0 * x)
    return b.function("example", [y.value], source=Location("model.py", 2, "f"))


@dataclass(frozen=True)
class Breaks:
    """Fails, or does harm, in a chosen way."""

    how: str
    name: str = "breaks"

    def run(self, function: Function, ctx: Context) -> Function:
        for op in function.ops:
            if op.name == "add":
                return self.harm(function, op)
        return function

    def harm(self, function: Function, op: Op) -> Function:
        match self.how:
            case "raises":
                raise KeyError("lost")
            case "invalid":
                return replace(function, body=replace(function.body, ops=function.ops[1:]))
            case "numbers":
                return replace(function, body=replace(function.body, results=(function.params[0],)))
            case _:
                return replace(function, body=replace(function.body, results=()))


def run(how: str, options: Options) -> str:
    with pytest.raises(PassError) as caught:
        run_passes(example(), [Breaks(how)], Context.of(options))
    return str(caught.value)


def test_the_two_tables_of_the_pipeline_agree() -> None:
    assert list(broken_orders(OPTIMISE)) == []


def test_a_broken_order_is_noticed() -> None:
    wrong = [step for step in OPTIMISE if step.name != "fold"]
    assert any("no step is called fold" in line for line in broken_orders(wrong))
    assert any("does not hold" in line for line in broken_orders(OPTIMISE[::-1]))


def test_each_step_and_order_has_a_reason_and_each_pass_a_contract() -> None:
    assert all(step.why for step in OPTIMISE)
    assert all(pair.why for pair in ORDER)
    assert all(len(doc_of(step)) > 40 for step in passes_by_name().values())


def test_the_example_gets_smaller_and_its_stage_is_optimised() -> None:
    before = example()
    after, ran = optimise(before, Context.of(Options(verify="each", check="numbers")))
    assert after.stage == "optimised"
    assert count_ops(after) < count_ops(before)
    assert [r.name for r in ran][:4] == ["detach", "dissolve", "dce", "fold"]
    assert "cse" in report(ran)
    assert "times" not in report(ran)
    assert "constant-right" in report(ran, rules=True)


def test_a_pass_runs_again_only_if_something_changed() -> None:
    b = Builder()
    x = b.param(parse_type("f64[3]"), "x")
    function = b.function("nothing", [x])
    after, ran = optimise(function, Context())
    assert after.body is function.body
    assert sorted(r.name for r in ran) == sorted(passes_by_name())


def test_passes_and_rules_can_be_skipped() -> None:
    ctx = Context.of(Options(skip=("cse", "involution")))
    _, ran = optimise(example(), ctx)
    assert "cse" not in [r.name for r in ran]
    assert "involution" not in ctx.tally.counts
    assert "identity" in ctx.tally.counts


def test_a_limit_stops_after_so_many_rewrites_and_each_number_gives_a_right_program() -> None:
    full = Context()
    complete, _ = optimise(example(), full)
    total = full.tally.total
    assert total > 3
    for limit in range(total + 1):
        ctx = Context.of(Options(limit=limit, verify="each", check="numbers"))
        after, _ = optimise(example(), ctx)
        assert ctx.tally.total == limit
    assert print_function(after) == print_function(complete)


def test_the_watcher_sees_each_pass() -> None:
    seen: list[str] = []
    optimise(example(), Context(), lambda name, before, after: seen.append(f"{name}{'' if before is after else '*'}"))
    assert seen[:6] == ["detach", "dissolve", "dce", "fold", "cse*", "simplify*"]


def test_dumps_go_to_the_terminal_or_to_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    optimise(example(), Context.of(Options(dump=("cse",))))
    assert "// after cse" in capsys.readouterr().err
    optimise(example(), Context.of(Options(dump=("all",), dump_dir=str(tmp_path))))
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files[:2] == ["example.01.detach.txt", "example.02.dissolve.txt"]
    assert parse_function((tmp_path / files[0]).read_text())
    assert capsys.readouterr().err == ""


def test_a_failing_pass_is_named_with_its_op_the_users_line_and_the_command(tmp_path: Path) -> None:
    message = run("raises", Options(dump_dir=str(tmp_path)))
    assert "pass breaks failed on example at add, model.py:3 f: KeyError: 'lost'" in message
    command = message.split("repeat it with: ")[1]
    assert command == f"pullback opt --pass breaks {tmp_path}/example.breaks.txt"
    text = (tmp_path / "example.breaks.txt").read_text()
    assert text.startswith(f"// {command}\n// 'lost'\n")
    assert print_function(parse_function(text)) == print_function(example())


def test_broken_ir_is_found_after_the_pass_that_broke_it() -> None:
    message = run("invalid", Options(verify="each"))
    assert "pass breaks failed" in message
    assert "is not defined before it" in message
    assert "PULLBACK=verify=each pullback opt --pass breaks" in message


def test_changed_numbers_are_found_when_asked_for() -> None:
    assert "result 0 at (0,): " in run("numbers", Options(check="numbers"))


def test_a_pass_may_not_change_what_a_function_takes_and_gives() -> None:
    assert "changed the types" in run("types", Options())
