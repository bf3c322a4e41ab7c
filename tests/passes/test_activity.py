"""Activity: what lies on a differentiable path from the inputs to the outputs."""

from pullback.ir.graph import Function
from pullback.passes.activity import active_values
from pullback.passes.control import RULES
from tests.passes.making import cond, make, total


def active_names(fn: Function, params: list[bool], results: list[bool]) -> list[str]:
    active = active_values(fn.body, params, results, RULES)
    return [op.name for op in fn.ops if not active.isdisjoint(op.results)]


def test_only_what_depends_on_the_input_and_reaches_the_output_is_active() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: (f.sin(x) * f.cos(y), f.exp(x)))
    assert active_names(fn, [True, False], [True, False]) == ["sin", "mul"]
    assert active_names(fn, [True, True], [False, True]) == ["exp"]


def test_a_step_function_ends_the_path_and_the_whole_branch_behind_it() -> None:
    fn = make("f64[3]", lambda f, x: total(x * f.floor(f.exp(f.sin(x)))))
    assert active_names(fn, [True], [True]) == ["mul", "sum"]


def test_integers_and_comparisons_are_never_active() -> None:
    fn = make("f64[3]", lambda f, x: f.select(x > 0.0, x, f.astype(f.astype(x, "i8"), "f8")))
    assert active_names(fn, [True], [True]) == ["select"]


def test_nothing_is_active_behind_stop_gradient() -> None:
    fn = make("f64[3]", lambda f, x: total(f.stop_gradient(f.exp(x))))
    assert active_names(fn, [True], [True]) == []


def test_activity_looks_into_branches() -> None:
    def build(f, p, x, y):  # type: ignore[no-untyped-def]
        first, second = cond(
            f, p, lambda f, x, y: (f.sin(x), f.floor(y)), lambda f, x, y: (f.cos(x), f.ceil(y)), f.exp(x), f.log(y)
        )
        return total(first), total(second)

    fn = make("bool[] f64[3] f64[3]", build)
    assert active_names(fn, [False, True, True], [True, False]) == ["exp", "if", "sum"]
    assert active_names(fn, [False, True, True], [False, True]) == []
