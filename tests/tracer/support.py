"""Tracing a function and running its program with the interpreter, for tests of the tracer alone."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.ir.interpret import interpret
from pullback.ir.verify import verify
from pullback.tracer.entry import Traced, describe, trace
from pullback.tracer.tree import flatten

TOLERANCE = {"f2": 2e-3, "f4": 2e-6, "f8": 1e-12, "c8": 2e-6, "c16": 1e-12}


def traced(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Traced:
    """`fn` traced for these arguments, with their values."""
    leaves, tree = flatten((args, kwargs))
    result = trace(fn, tree, [describe(leaf) for leaf in leaves], leaves)
    verify(result.function)
    return result


def execute(program: Traced, *args: Any, **kwargs: Any) -> Any:
    """The result of a program for arguments of the same kinds."""
    leaves, _ = flatten((args, kwargs))
    values = [np.asarray(leaves[k]) for k in program.leaves] + [extra.source for extra in program.extras]
    results = interpret(program.function, values)
    return program.out_tree.unflatten([o.value if o.kind == "static" else results[o.index] for o in program.outputs])


def evaluated(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`fn` by way of its program."""
    return execute(traced(fn, *args, **kwargs), *args, **kwargs)


def assert_as_numpy(fn: Callable[..., Any], *args: Any) -> Traced:
    """The program of `fn` gives NumPy's results: structure, dtypes, shapes and numbers."""
    with np.errstate(all="ignore"):
        wanted = fn(*copy.deepcopy(args))
    program = traced(fn, *args)
    assert_equal(execute(program, *args), wanted)
    return program


def assert_equal(found: Any, wanted: Any, path: str = "result") -> None:
    if isinstance(wanted, tuple | list):
        assert type(found) is type(wanted), path
        assert len(found) == len(wanted), path
        for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
            assert_equal(x, y, f"{path}[{k}]")
        return
    if wanted is None or isinstance(wanted, str):
        assert found == wanted, path
        return
    x, y = np.asarray(found), np.asarray(wanted)
    assert x.dtype == y.dtype, f"{path}: {x.dtype} for {y.dtype}"
    assert x.shape == y.shape, f"{path}: {x.shape} for {y.shape}"
    tolerance = TOLERANCE.get(y.dtype.str[1:], 0)
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=path)
