"""Whole programs, a third of them writing in place: the interpreted program gives the number NumPy gives."""

import copy
from typing import Any

import numpy as np
import pytest

from tests.programs import inplace, inplace_grids, inplace_linear
from tests.programs.table import PROGRAMS
from tests.tracer.support import execute, traced

IN_PLACE = [
    p
    for module in (inplace, inplace_grids, inplace_linear)
    for p in (module.PROGRAMS.values() if isinstance(module.PROGRAMS, dict) else module.PROGRAMS)
]
ALL = {p.name: p for p in (*PROGRAMS.values(), *IN_PLACE)}


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_traced_program_gives_numpys_number(name: str) -> None:
    program = ALL[name]
    arguments: tuple[Any, ...] = program.sample(1)
    wanted = program.function(*copy.deepcopy(arguments))
    compiled = traced(program.function, *arguments)
    np.testing.assert_allclose(execute(compiled, *arguments), wanted, rtol=1e-10)
