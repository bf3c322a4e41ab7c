"""What a function returns is the array itself, a view or a copy just where NumPy returns one."""

import warnings

import numpy as np
import pytest

from tests.tracer.support import assert_as_numpy
from tests.tracer.view_expressions import EXPRESSIONS, writer

X = np.arange(1.0, 17).reshape(4, 4)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_writes_reach_what_they_reach_in_numpy(expression: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's of views that it will lock one day
        assert_as_numpy(writer(expression), X)
