"""Every math function against arbitrary precision: `python -m pytest tests/codegen/test_math.py`.

One table drives all: where to look, what is right, and, where the error cannot be small beside a result near zero, the
size beside which it is small.
"""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest
from mpmath import mp, mpf

from pullback.codegen.math import MATH, MathCalls
from pullback.codegen.target import NO_OPT, Target, compile_module, host_target, load_object, optimised_ir
from pullback.errors import CodegenError
from tests.codegen.math_kernels import Kernel, error_in_ulp, exact_values
from tests.codegen.math_points import Case, around, between, half_turns, one, sizes, subnormal
from tests.codegen.math_special_cases import SPECIAL_CASES

ALL, TINY, POSITIVE = sizes(-1020, 1020), sizes(-60, 3), sizes(-1020, 1020, False)
F32, NEAR = sizes(-120, 120), between(-20, 20)
INVERSE = (between(-1, 1), sizes(-200, 0))

CASES = {
    "exp": one(mp.exp, between(-746, 710), between(-104, 89), between(-1, 1), TINY),
    "exp2": one(lambda x: mpf(2) ** x, between(-1076, 1024), between(-150, 128), between(-1, 1)),
    "expm1": one(mp.expm1, between(-40, 710), between(-2, 2), TINY, subnormal),
    "log": one(mp.log, POSITIVE, between(0.3, 3), around(1.0, -50, -2), subnormal),
    "log1p": one(mp.log1p, POSITIVE, between(-1, 3), TINY, subnormal),
    "log2": one(lambda x: mp.log(x, 2), POSITIVE, between(0.3, 3), around(1.0, -50, -2), subnormal),
    "log10": one(mp.log10, POSITIVE, between(0.3, 3), around(1.0, -50, -2), subnormal),
    "sin": one(mp.sin, NEAR, ALL, half_turns, TINY, sizes(10, 40), subnormal),
    "cos": one(mp.cos, NEAR, ALL, half_turns, TINY, sizes(10, 40)),
    "tan": one(mp.tan, NEAR, ALL, half_turns, TINY, sizes(10, 40), subnormal),
    "sinh": one(mp.sinh, between(-711, 711), NEAR, TINY, subnormal),
    "cosh": one(mp.cosh, between(-711, 711), NEAR, TINY),
    "tanh": one(mp.tanh, NEAR, between(-1, 1), TINY, subnormal),
    "arcsin": one(mp.asin, *INVERSE, around(0, -1.2, 0), subnormal),
    "arccos": one(mp.acos, *INVERSE, around(0, -1.2, 0)),
    "arctan": one(mp.atan, NEAR, ALL, TINY, subnormal),
    "arcsinh": one(mp.asinh, NEAR, ALL, TINY, subnormal),
    "arccosh": one(mp.acosh, between(1, 3), sizes(0, 1020, False)),
    "arctanh": one(mp.atanh, between(-1, 1), TINY, subnormal),
    "cbrt": one(lambda x: mp.sign(x) * mp.cbrt(abs(x)), ALL, F32, subnormal),
    "erf": one(mp.erf, between(-6, 6), TINY, subnormal),
    "erfc": one(mp.erfc, between(-6, 27), between(0, 10), TINY),
    "pow": Case(
        mp.power,
        (
            (sizes(-1020, 1020, False), between(-1, 1)),
            (between(0.5, 2), between(-1000, 1000)),
            (between(0.5, 2), between(-126, 126)),
            (subnormal, between(-0.9, 0.9)),
            (lambda rng, n: -rng.integers(1, 40, n).astype(float), lambda rng, n: rng.integers(-9, 9, n).astype(float)),
        ),
    ),
    "hypot": Case(mp.hypot, ((NEAR, NEAR), (ALL, ALL), (F32, F32), (subnormal, subnormal))),
    "arctan2": Case(mp.atan2, ((NEAR, NEAR), (ALL, ALL), (F32, F32), (TINY, TINY), (subnormal, NEAR))),
    "logaddexp": Case(
        lambda x, y: max(x, y) + mp.log1p(mp.exp(-abs(x - y))),
        ((NEAR, NEAR), (ALL, ALL), (TINY, TINY)),
        lambda x, y: max(abs(x), abs(y)),
    ),
    "logaddexp2": Case(
        lambda x, y: max(x, y) + mp.log1p(mpf(2) ** -abs(x - y)) / mp.log(2),
        ((NEAR, NEAR), (ALL, ALL), (TINY, TINY)),
        lambda x, y: max(abs(x), abs(y)),
    ),
    "lgamma": Case(
        lambda x: mp.log(abs(mp.gamma(x))) if abs(x) < 1e4 else mp.loggamma(x),
        ((between(0, 20),), (sizes(-60, 800, False),), (around(1, -40, -3),), (around(2, -40, -3),), (between(-9, 0),)),
        # below zero: the difference of two terms
        lambda x: 0.0 if x > 0 else 8.0,
    ),
    "digamma": Case(
        mp.digamma,
        ((between(0, 20),), (sizes(-60, 800, False),), (around(1.4616321449683623, -40, -3),), (between(-9, 0),)),
        lambda x: 0.0 if x > 0 else 8.0 / abs(np.sin(np.pi * x)),
    ),
    "polygamma": Case(
        lambda x: mp.polygamma(2, x),
        ((between(0, 20),), (sizes(-20, 20, False),), (between(-5, 0),)),
        lambda x: 0.0 if x > 0 else 600 / abs(np.sin(np.pi * x)) ** 3,
        {"n": 2},
    ),
    **SPECIAL_CASES,
}

TESTED_AGAINST_NUMPY = {"fmod", "mod", "floor_divide", "nextafter"}  # exact: tests/codegen/test_math_special.py


def samples(name: str, dtype: str) -> tuple[list[np.ndarray], list[mpf]]:
    rng = np.random.default_rng(list(CASES).index(name))
    draws = [[draw(rng, CASES[name].count) for draw in points] for points in CASES[name].points]
    with np.errstate(over="ignore"):
        arrays = [np.concatenate(column).astype(dtype) for column in zip(*draws, strict=True)]
    inside = np.logical_and.reduce([np.isfinite(x) & (x != 0) for x in arrays])
    arrays = [x[inside] for x in arrays]
    defined = np.isfinite(_ignoring(name, arrays))
    arrays = [x[defined] for x in arrays]
    return arrays, exact_values(CASES[name].reference, arrays)


def _ignoring(name: str, arrays: list[np.ndarray]) -> np.ndarray:
    """Finite where the function is defined."""
    x = arrays[0].astype(float)
    outside = {
        "log": x < 0,
        "log2": x < 0,
        "log10": x < 0,
        "log1p": x <= -1,
        "arccosh": x < 1,
        "arctanh": abs(x) >= 1,
        "arcsin": abs(x) > 1,
        "arccos": abs(x) > 1,
        "erfinv": abs(x) >= 1,
        "erfcinv": (x <= 0) | (x >= 2),
        "ndtri": (x <= 0) | (x >= 1),
    }.get(name, x != x)
    return np.where(outside, np.nan, x)


def test_every_function_has_a_case() -> None:
    assert set(MATH) == set(CASES) | TESTED_AGAINST_NUMPY


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", CASES)
def test_function_is_within_its_bound(name: str, dtype: str) -> None:
    case = CASES[name]
    arrays, exact = samples(name, dtype)
    got = Kernel(name, dtype, 8, **case.static)(*arrays)
    np.testing.assert_array_equal(Kernel(name, dtype, 1, **case.static)(*arrays), got)
    errors = [
        error_in_ulp(value, right, np.dtype(dtype), case.beside(*map(float, point)))
        for value, right, *point in zip(got, exact, *arrays, strict=True)
    ]
    worst = int(np.argmax(errors))
    bound = MATH[name].ulp[dtype == "f4"]
    assert errors[worst] <= bound, f"{errors[worst]:.3f} ulp at {[x[worst] for x in arrays]}: {got[worst]!r}"


@pytest.mark.parametrize("lanes", [2, 4, 16])
@pytest.mark.parametrize("name", MATH)
def test_every_width_gives_the_same_bits(name: str, lanes: int) -> None:
    rng = np.random.default_rng(3)
    arrays = [2.0 ** rng.uniform(-3, 3, 64) for _ in range(MATH[name].arity)]
    static = CASES[name].static if name in CASES else {}
    wide = Kernel(name, "f8", lanes, **static)(*arrays)
    np.testing.assert_array_equal(wide, Kernel(name, "f8", 1, **static)(*arrays))


@pytest.mark.parametrize("order", [1, 3, 7, 20])
def test_polygamma_of_every_order_is_within_its_bound(order: int) -> None:
    x = np.concatenate([np.random.default_rng(order).uniform(0, 30, 60), 2.0 ** np.arange(-30.0, 30.0)])
    got = Kernel("polygamma", "f8", 8, n=order)(x)
    exact = exact_values(lambda y: mp.polygamma(order, y), [x])
    assert max(error_in_ulp(a, r, x.dtype) for a, r in zip(got, exact, strict=True)) <= MATH["polygamma"].ulp[0]


def test_polygamma_of_an_impossible_order_is_an_error() -> None:
    with pytest.raises(CodegenError, match="n = 0"):
        Kernel("polygamma", "f8", 1, n=0)


def test_the_hardest_angles_are_reduced_exactly() -> None:
    # The doubles closest to a multiple of pi/2 relative to their size, and the ends of the range.
    x = np.array([6381956970095103 * 2.0**797, 5.319372648326541e255, np.finfo(float).max, 2.0**31, 2.0**1000])
    for name, reference in (("sin", mp.sin), ("cos", mp.cos)):
        with mp.workdps(400):
            exact = [reference(mpf(float(v))) for v in x]
        got = Kernel(name, "f8", 8)(x)
        assert max(error_in_ulp(a, r, x.dtype) for a, r in zip(got, exact, strict=True)) <= 1.0


@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "arm64-apple-macosx", "x86_64-pc-windows-msvc"])
def test_every_function_compiles_for_other_processors(triple: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = Target("generic", "", triple, 16, host_target().llvm_version)
    module = target.module()
    calls = MathCalls(module)
    b = module.function("all", "void", [("ptr", "x")])
    for type_ in ("double", "<2 x double>", "<4 x float>"):
        x = b.load(type_, b.params[0], 4)
        for name, function in MATH.items():
            static = CASES[name].static if name in CASES else {}
            b.store(calls.emit(b, name, [x] * function.arity, **static), b.params[0], 4)
    b.ret()
    calls.finish()
    assert len(compile_module(str(module), target, NO_OPT)) > 10_000


def test_the_sine_and_cosine_of_one_value_are_one_call() -> None:
    module = host_target().module()
    calls, shared = MathCalls(module), {}
    b = module.function("f", "void", [("double", "x"), ("ptr", "out")])
    for i, name in enumerate(["sin", "cos", "sin"]):
        b.store(calls.emit(b, name, [b.params[0]], shared), b.gep("double", b.params[1], i), 8)
    b.ret()
    calls.finish()
    assert str(b).count("call") == 1
    loaded = load_object(compile_module(str(module), host_target()), ["f"])
    out = np.zeros(3)
    ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_void_p)(loaded.address("f"))(0.5, out.ctypes.data)
    np.testing.assert_allclose(out, [np.sin(0.5), np.cos(0.5), np.sin(0.5)], rtol=1e-15)


@pytest.mark.parametrize("uses", [1, 5])
def test_functions_used_often_are_called_and_others_inlined(uses: int) -> None:
    module = host_target().module()
    calls = MathCalls(module, inline_up_to=4)
    b = module.function("f", "double", [("double", "x")])
    x = b.params[0]
    for _ in range(uses):
        x = calls.emit(b, "exp", [x])
    b.ret(x)
    calls.finish()
    assert ("@pb.exp.f64" in optimised_ir(str(module), host_target())) == (uses > 4)
