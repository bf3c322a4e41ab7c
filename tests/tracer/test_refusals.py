"""Every refused construct names itself, the user's line and the nearest supported way.

`REFUSED_NAMES` must have an expression for each name that the classification refuses. `CONSTRUCTS` are those that no
classification lists: conversions, protocols of Python, functions that take arrays apart on their own.
"""

import array
import copy
import ctypes
import decimal
import itertools
import json
import math
import pickle
import random
import re
import secrets
import statistics
import struct
import threading
from typing import Any

import numpy as np
import pytest

from pullback.errors import PullbackError
from pullback.tracer.functions import catalogue
from pullback.tracer.functions.classes import METHODS
from tests.tracer.support import traced
from tests.tracer.view_expressions import evaluating

X = np.arange(1.0, 5).reshape(2, 2)
OUT = np.zeros((2, 2))
REPEATED = itertools.repeat(OUT)  # an array that no name leads to

REFUSED_NAMES: dict[str, str] = {
    "np.packbits": "np.packbits(x)",
    "np.unpackbits": "np.unpackbits(x)",
    "np.isnat": "np.isnat(x)",
    "np.busday_count": "np.busday_count(x, x)",
    "np.busday_offset": "np.busday_offset(x, x)",
    "np.is_busday": "np.is_busday(x)",
    "np.datetime_as_string": "np.datetime_as_string(x)",
    "np.array2string": "np.array2string(x)",
    "np.array_repr": "np.array_repr(x)",
    "np.array_str": "np.array_str(x)",
    "np.save": "np.save('file', x)",
    "np.savez": "np.savez('file', x)",
    "np.savez_compressed": "np.savez_compressed('file', a=x)",
    "np.savetxt": "np.savetxt('file', x)",
    "np.asmatrix": "np.asmatrix(x)",
    "np.bmat": "np.bmat([[x, x]])",
    "np.nditer": "np.nditer([x, None])",
    "np.nested_iters": "np.nested_iters(x, [[0], [1]])",
    "np.frompyfunc": "np.frompyfunc(lambda v: v * 2, 1, 1)(x)",
    "np.from_dlpack": "np.from_dlpack(x)",
    "data": "x.data",
    "ctypes": "x.ctypes",
    "tobytes": "x.tobytes()",
    "tofile": "x.tofile('file')",
    "dump": "x.dump('file')",
    "dumps": "x.dumps()",
    "byteswap": "x.byteswap()",
    "getfield": "x.getfield(float)",
    "setfield": "x.setfield(1.0, float)",
}

NAMES = {"np.frompyfunc": "<lambda>"}  # what a message calls it, where that is not its name

CONSTRUCTS: dict[str, str] = {  # what it says: what is refused, then what to write
    # Python's conversions
    "float(x[0, 0])": r"float\(\).*keep it as it is",
    "complex(x[0, 0])": r"complex\(\).*astype\(complex\)",
    "'%f' % x[0, 0]": r"float\(\)",
    "math.sin(x[0, 0])": r"np\.sin for math\.sin",
    "math.isnan(x[0, 0])": r"float\(\)",
    "math.fsum(x[0])": r"float\(\)",
    "math.hypot(x[0, 0], 1.0)": r"float\(\)",
    "hash(x[0, 0])": r"no hash.*int\(x\)",
    "{x[0, 0]: 1}": "no hash",
    "set(x[0])": "no hash",
    "hash(x)": "unhashable.*NumPy's functions",
    "pickle.dumps(x)": "pickled.*result of the compiled function",
    "copy.deepcopy(x).ctypes": "no memory",
    "decimal.Decimal(x[0, 0])": "Decimal.*NumPy's functions",
    "statistics.mean(x[0])": "TracedScalar.*NumPy's functions",
    "x.nosuch": "no attribute 'nosuch'",
    # memory
    "memoryview(x)": "memoryview.*NumPy's functions",
    "np.frombuffer(x)": "bytes-like.*NumPy's functions",
    "ctypes.c_double.from_buffer(x)": "bytes-like.*NumPy's functions",
    "np.ndarray((2, 2), float, x)": "bytes-like.*NumPy's functions",
    "np.ctypeslib.as_ctypes(x)": "__array_interface__.*no memory",
    "x.__dlpack__()": "__dlpack__.*no memory",
    "x.view(np.int64)": "reinterpret its bytes.*astype",
    "x.view(np.matrix)": "as a matrix is not followed; use the array",
    "np.lib.stride_tricks.as_strided(x, (9,), (8,))": "outside the elements",
    "np.lib.stride_tricks.as_strided(x, (2,), (4,))": "multiple of the item size",
    "np.ndarray.sort(x)": "descriptor 'sort'.*the methods of arrays",
    "array.array('d', x[0])": r"float\(\)",
    # classes of arrays and dtypes
    "np.matrix(x)": "as a matrix is not followed; use the array",
    "np.rec.array(x)": "as a recarray is not followed; use the array",
    "np.rec.fromarrays([x[0], x[1]])": "conversion to a plain NumPy array",
    "np.ma.array(x)": "conversion to a plain NumPy array",
    "np.ma.array([1.0, 2.0]) + x": "conversion to a plain NumPy array",
    "x + np.ma.array([1.0, 2.0])": r"MaskedArray is not followed; use a plain array \(np\.asarray",
    "x + np.matrix([[1.0, 2.0]])": r"matrix is not followed; use a plain array \(np\.asarray",
    "np.array(x, dtype=object)": "conversion to a plain NumPy array",
    "np.array([x, None], dtype=object)": "conversion to a plain NumPy array",
    "np.zeros(2, object).__setitem__(slice(None), x[0])": "conversion to a plain NumPy array",
    "np.zeros(2, [('a', float)]).__setitem__('a', x[0])": "conversion to a plain NumPy array",
    "x.astype(object)": "dtype object cannot be traced; convert it to one of",
    "x.astype(str)": "dtype <U1 cannot be traced",
    "x.astype('datetime64[s]')": "dtype datetime64",
    "x.astype([('a', float)])": "cannot be traced; convert it to one of",
    "x + np.array(['a', 'b'])": "dtype <U1 cannot be traced",
    "np.add(x, x, dtype=object)": "dtype object cannot be traced",
    "np.sum(x, dtype=object)": "dtype object cannot be traced",
    "np.float64(x[0, 0])": r"write x\.astype\(np\.float64\) for np\.float64\(x\)",
    "np.strings.upper(x)": "np.strings.upper cannot be traced",
    "np.sort(x, order='a')": "structured arrays",
    "x.sort(order='a')": "structured arrays",
    # arrays from outside the trace
    "OUT.__setitem__(0, x[0])": "made outside the traced function.*np.zeros",
    "OUT.fill(x[0, 0])": "made outside, make that array inside|make that array inside",
    "OUT.flat.__setitem__(0, x[0, 0])": "only in arrays made inside the traced function",
    "OUT.put([0], x[0, 0])": "made outside the traced function",
    "np.add(x, 1, out=OUT)": "np.add cannot write.*np.zeros",
    "np.sum(x, axis=0, out=OUT[0])": "np.sum cannot write.*np.zeros",
    "np.einsum('ij,jk', x, x, out=OUT)": "np.einsum cannot write.*np.zeros",
    "np.add.at(OUT, [0], x[0])": "np.add.at cannot write.*np.zeros",
    "np.copyto(OUT, x)": "np.copyto cannot write.*np.zeros",
    "np.putmask(OUT, OUT > 0, x)": "np.putmask cannot write.*np.zeros",
    "np.asarray(OUT).__setitem__(0, x[0])": r"read-only.*np\.array\(x\)",
    "np.broadcast_to(x, (2, 2, 2)).__setitem__(0, 1.0)": r"read-only.*x\.copy\(\)",
    "next(REPEATED)[x > 1]": r"np\.asarray\(a\)\[i\]",
    # options
    "np.add(x, x, signature='dd->d')": "signature= is not followed; use dtype=",
    "np.subtract.reduce(x, where=x > 1)": "to use a where mask one has to specify 'initial'",
    "np.matmul(np.outer(x, x), x, keepdims=True)": "np.matmul does not support keepdims=",
    "np.matmul(x, x, axes=[0, 0, 0])": "axes must be a list with 2, 2, 2 axes",
    "np.linalg.qr(x, mode='raw')": "use mode='reduced'",
    "np.unique(x, axis=0)": "without return_",
    # randomness
    "np.random.normal(x)": "np.random.normal.*draw outside",
    "np.random.rand() * x": "np.random.rand.*draw outside",
    "np.random.default_rng().normal() * x": r"default_rng\(\) without a seed.*fixed seed",
    "np.random.RandomState().rand() * x": "without a seed.*fixed seed",
    "np.random.Generator(np.random.PCG64()).normal() * x": "without a seed.*fixed seed",
    "np.random.default_rng(0).normal(x)": "conversion to a plain NumPy array",
    "random.random() * x": "random.random.*draw outside",
    "random.Random().random() * x": "without a seed.*fixed seed",
    "random.SystemRandom().random() * x": "generator of the system.*draw outside",
    "secrets.randbits(8) * x": "generator of the system.*draw outside",
    # elsewhere
    "np.testing.assert_allclose(x, x)": "conversion to a plain NumPy array",
    "in_a_thread(x)": "another thread",
}

SPACE: dict[str, Any] = {
    "np": np,
    "OUT": OUT,
    "REPEATED": REPEATED,
    **{m.__name__: m for m in (array, copy, ctypes, decimal, json, math, pickle, random, secrets, statistics, struct)},
}


def in_a_thread(x: Any) -> None:
    raised: list[BaseException] = []

    def work() -> None:
        try:
            x + 1
        except PullbackError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise raised[0]


SPACE["in_a_thread"] = in_a_thread


def message_of(expression: str) -> str:
    """What is raised when `expression` is line 7 of the file `program.py`."""
    code = compile("\n" * 6 + expression, "program.py", "eval")
    with pytest.raises((PullbackError, TypeError, ValueError, AttributeError)) as caught:
        traced(evaluating(code, SPACE), X)
    return str(caught.value).replace("\n", " ")


def refused() -> dict[str, str]:
    """Every refused name of NumPy, with its reason."""
    found = {name: c.note for name, c in catalogue.classes().items() if c.kind == "refused"}
    return found | {name: c.note for name, c in METHODS.items() if c.kind == "refused"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_refused_name_has_an_expression_here() -> None:
    assert refused().keys() == REFUSED_NAMES.keys()


@pytest.mark.parametrize("name", REFUSED_NAMES)
def test_a_refused_name_says_which_where_why_and_what_else(name: str) -> None:
    message = message_of(REFUSED_NAMES[name])
    assert NAMES.get(name, name) in message
    assert "program.py:7" in message
    assert refused()[name] in message
    assert ";" in refused()[name], "a reason ends with what to do instead"


@pytest.mark.parametrize("expression", CONSTRUCTS)
def test_a_refused_construct_says_which_where_and_what_else(expression: str) -> None:
    message = message_of(expression)
    assert re.search(CONSTRUCTS[expression], message), message
    if "thread" not in expression:
        assert "program.py:7" in message, message
