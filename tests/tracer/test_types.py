"""Random expressions of mixed dtypes: dtype, shape and numbers are NumPy's."""

from typing import Any

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pullback.errors import NumericalError
from tests.tracer.support import TOLERANCE, execute, traced

DTYPES = ("b", "i1", "i4", "i8", "u1", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
SHAPES = ((), (1,), (3,), (2, 1), (2, 3), (0,), (0, 3))
BINARY = (
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "maximum",
    "minimum",
    "equal",
    "less",
    "logical_and",
    "hypot",
    "power",
)
UNARY = ("negative", "absolute", "sqrt", "exp", "square", "floor", "sign", "isfinite", "conjugate", "tanh")
REDUCE = ("sum", "mean", "max", "prod", "any", "std", "cumsum", "argmin")
NUMBERS = (2, 0.5, True, 1 + 1j, -3)

arrays = st.builds(
    lambda kind, shape, seed: (np.random.default_rng(seed).integers(1, 4, shape)).astype(kind),
    st.sampled_from(DTYPES),
    st.sampled_from(SHAPES),
    st.integers(0, 99),
)
steps = st.one_of(
    st.tuples(st.just("binary"), st.sampled_from(BINARY), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("unary"), st.sampled_from(UNARY), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("reduce"), st.sampled_from(REDUCE), st.integers(0, 9), st.just(0)),
    st.tuples(st.just("number"), st.sampled_from(BINARY[:8]), st.integers(0, 9), st.integers(0, len(NUMBERS) - 1)),
)


def run(program: list[tuple[str, str, int, int]], *inputs: Any) -> list[Any]:
    """A stack of values; each step uses earlier ones. A step that NumPy refuses is left out, on both sides alike."""
    values = list(inputs)
    for kind, name, i, j in program:
        x = values[i % len(values)]
        y = NUMBERS[j] if kind == "number" else values[j % len(values)]
        try:
            values.append(getattr(np, name)(x, y) if kind in ("binary", "number") else getattr(np, name)(x))
        except (TypeError, ValueError, OverflowError):
            values.append(x)
    return values


def orders_complex_numbers(program: list[tuple[str, str, int, int]], values: list[Any]) -> bool:
    """Reductions that order complex numbers are refused."""
    return any(name in ("max", "argmin") for _, name, _, _ in program) and any(np.iscomplexobj(v) for v in values)


def tolerances(program: list[tuple[str, str, int, int]], values: list[Any]) -> list[float]:
    """Of each value, that of the coarsest dtype among what it was made from: what float16 has rounded is no better for
    being a float64 later."""
    own = [TOLERANCE.get(np.asarray(v).dtype.str[1:], 0.0) for v in values]
    found = own[: len(values) - len(program)]
    for kind, _, i, j in program:
        operands = (i, j) if kind == "binary" else (i,)
        found.append(max(own[len(found)], *[found[k % len(found)] for k in operands]))
    return found


# A deviation in float16 between two numbers of which neither is further from the exact one, carried into float64.
FLOAT16_STEPS = [("reduce", "sum", 0, 0), ("unary", "negative", 0, 0), ("reduce", "std", 1, 0), ("binary", "add", 2, 4)]
FLOAT16_INPUTS = [np.array(3, "i1"), np.array([[3, 2, 2], [1, 1, 1]], "f2")]


@example(FLOAT16_INPUTS, FLOAT16_STEPS)
@settings(max_examples=1000, deadline=None, derandomize=True)
@given(st.lists(arrays, min_size=1, max_size=3), st.lists(steps, min_size=1, max_size=6))
def test_random_expressions_have_numpys_types_and_values(inputs: list[Any], program: list[Any]) -> None:
    with np.errstate(all="ignore"):
        wanted = run(program, *inputs)
        assume(not orders_complex_numbers(program, wanted))
        result = traced(lambda *xs: run(program, *xs), *inputs)
        try:
            found = execute(result, *inputs)
        except NumericalError:  # integers to negative powers: NumPy refuses the step, a program the call
            assume(False)
    within = tolerances(program, wanted)
    for number, (x, y) in enumerate(zip(found, wanted, strict=True)):
        y = np.asarray(y)
        assert np.asarray(x).dtype == y.dtype, (number, program)
        assert np.shape(x) == y.shape, (number, program)
        if y.dtype.kind in "fc" and np.isfinite(y).all() and (np.abs(y) < 1e3).all():
            near = within[number]
            np.testing.assert_allclose(x, y, rtol=near, atol=near, err_msg=str((number, program)))
