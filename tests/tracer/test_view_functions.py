"""What a function returns is the array itself, a view or a copy just where NumPy returns one."""

import warnings
from typing import Any

import numpy as np
import pytest

from tests.tracer.support import assert_as_numpy
from tests.tracer.view_expressions import EXPRESSIONS

X = np.arange(1.0, 17).reshape(4, 4)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_writes_reach_what_they_reach_in_numpy(expression: str) -> None:
    code = compile(expression, "expression", "eval")

    def function(x: Any) -> Any:
        x = np.copy(x)
        lower = x[1:]
        made = eval(code, {"np": np, "x": x})
        if isinstance(made, float):  # a scalar
            return made * 1.0, x
        facts = made is x, made.flags.writeable, made.flags.c_contiguous, made.flags.f_contiguous
        first = made.copy()
        if made.flags.writeable:
            made[...] = np.arange(made.size).reshape(made.shape) * 0.5
            made += x.sum()
            x[0, 0] = 99.0
        return first, made.copy(), x, lower.copy(), str(facts)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's of views that it will lock one day
        assert_as_numpy(function, X)
