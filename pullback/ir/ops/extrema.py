"""The larger and the smaller: of two, of all over axes, within bounds, and where it stands.

Which of 0.0 and -0.0 comes out follows NumPy where NumPy has a rule: by position, not by sign.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.errors import ShapeError, TypeRuleError
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Op, Region
from pullback.ir.opdef import PLAIN, Algebra, Custom, Library, OpDef, Scalar, ScalarBuilder, Types
from pullback.ir.ops.common import FLOAT, STEP, check_arity, check_axes, elementwise, masking, without
from pullback.ir.ops.reductions import expand, flatten_axes, reduction
from pullback.ir.types import I64, TensorType

MaybeExprs = Sequence[Expr | None]


def _pick(f: Emitter, chosen: Expr, x: Expr, y: Expr) -> Expr:
    """1 where x was chosen, 0 where y was, half at a tie."""
    return f.select(x.eq(y), f.full_like(x, 0.5), f.astype(chosen, x.dtype))


def _chosen(f: Emitter, out: Expr, x: Expr) -> Expr:
    return out.eq(x) | f.isnan(x)


def _chosen_number(f: Emitter, out: Expr, x: Expr, y: Expr) -> Expr:
    return out.eq(x) | (f.isnan(x) & f.isnan(y))


def _of_two(name: str, function: Any, doc: str, nan_wins: bool) -> OpDef:
    if nan_wins:
        rule = masking(
            lambda f, op, out, x, y: _pick(f, _chosen(f, out, x), x, y),
            lambda f, op, out, x, y: _pick(f, _chosen(f, out, y), x, y),
        )
    else:
        rule = masking(
            lambda f, op, out, x, y: _pick(f, _chosen_number(f, out, x, y), x, y),
            lambda f, op, out, x, y: _pick(f, _chosen_number(f, out, y, x), x, y),
        )
    facts = Algebra(commutative=True, associative=True, idempotent=True)
    return elementwise(name, 2, "biuf", function, rule, doc, algebra=facts)


def _second_zero(function: Any) -> Any:
    """Of zeros of both signs the second operand, as NumPy's maximum of float64 has it; its of float16 has the first."""
    return lambda x, y: function(y, x) if np.asarray(x).dtype == np.float16 else function(x, y)


def _first_zero(better: Any) -> Any:
    """Of zeros of both signs the first operand. NumPy's fmax has the first or the second, by the place in the array."""
    return lambda x, y: np.where(better(x, y) | (y != y), x, y)


MAXIMUM = _of_two(
    "maximum",
    _second_zero(np.maximum),
    "The larger; NaN if either is; of 0.0 and -0.0 the second. Derivative half each at a tie.",
    True,
)
MINIMUM = _of_two(
    "minimum",
    _second_zero(np.minimum),
    "The smaller; NaN if either is; of 0.0 and -0.0 the second. Derivative half each at a tie.",
    True,
)
FMAX = _of_two(
    "fmax",
    _first_zero(np.greater_equal),
    "The larger, NaN ignored; of 0.0 and -0.0 the first. Derivative half each at a tie.",
    False,
)
FMIN = _of_two(
    "fmin",
    _first_zero(np.less_equal),
    "The smaller, NaN ignored; of 0.0 and -0.0 the first. Derivative half each at a tie.",
    False,
)


def _flag(f: Emitter, pred: Expr, like: Expr) -> Expr:
    return f.astype(pred, like.dtype)


_WITHIN = masking(
    lambda f, op, out, x, lo, hi: _flag(f, ~((x < lo) | (x > hi)), x),
    lambda f, op, out, x, lo, hi: _flag(f, (x < lo) & (lo <= hi), x),
    lambda f, op, out, x, lo, hi: _flag(f, (x > hi) | ((x < lo) & (lo > hi)), x),
)
CLIP = elementwise(
    "clip",
    3,
    "iuf",
    lambda x, lo, hi: _second_zero(np.minimum)(_second_zero(np.maximum)(x, lo), hi),
    _WITHIN,
    "minimum(maximum(x, lo), hi). Derivative in x is 1 within the bounds and at them, 0 outside.",
    numpy=(),
)


def _clamped(x: Any, lo: Any, hi: Any) -> Any:
    low = np.where((x < lo) | (lo != lo), lo, x)
    return np.where((low > hi) | (hi != hi), hi, low)


def _emit_clamp(s: ScalarBuilder, op: Op, x: Any, lo: Any, hi: Any) -> Any:
    low = s.select(s.compare("less", x, lo), lo, x)
    low = s.select(s.compare("not_equal", lo, lo), lo, low)
    high = s.select(s.compare("greater", low, hi), hi, low)
    return s.select(s.compare("not_equal", hi, hi), hi, high)


CLAMP = elementwise(
    "clamp",
    3,
    FLOAT,
    _clamped,
    _WITHIN,
    "As clip, but x itself where it equals a bound: of zeros it keeps its own sign. NumPy clips so by single numbers.",
    numpy=(),
    lower=Scalar(_emit_clamp),
)


# ------------------------------------------------------------------ over axes: who was the extremum


def _hits(f: Emitter, op: Op, x: Expr, out: Expr) -> Expr:
    """Which elements are their group's extremum. A NaN that won is its own tie; where NaN loses, it is none."""
    wide = expand(f, op, out)
    return x.eq(wide) if op.name in ("nanmax", "nanmin") else x.eq(wide) | (f.isnan(x) & f.isnan(wide))


def _weights(f: Emitter, op: Op, x: Expr, out: Expr) -> Expr:
    """The share of each element in its group's extremum, by the `ties` rule."""
    hit, ties = _hits(f, op, x, out), op.attrs["ties"]
    if ties == "first":
        flat, perm = flatten_axes(f, op, f.astype(hit, I64))
        count = f.cumsum(flat, axis=flat.ndim - 1, reverse=False)
        shape = tuple(x.shape[p] for p in perm)
        number = f.permute(f.reshape_to(count, shape), tuple(int(k) for k in np.argsort(perm)))
        hit = hit & number.eq(1)
    mask = f.astype(hit, x.dtype)
    if ties != "equal":
        return mask
    count = f.sum(mask, axes=op.attrs["axes"])
    if op.name in ("nanmax", "nanmin"):  # a group may have no winner
        return f.strong_mul(mask, expand(f, op, f.full_like(count, 1) / count))
    return mask / expand(f, op, count)


def _extremum_vjp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], cts: MaybeExprs) -> MaybeExprs:
    """ct divided by the number of ties in the small space, then masked: one division per group, not per element."""
    (x,), (out,), (ct,) = args, outs, cts
    if ct is None:
        return (None,)
    if op.attrs["ties"] != "equal":
        return (f.strong_mul(_weights(f, op, x, out), expand(f, op, ct)),)
    mask = f.astype(_hits(f, op, x, out), x.dtype)
    return (f.strong_mul(mask, expand(f, op, ct / f.sum(mask, axes=op.attrs["axes"]))),)


def _extremum_jvp(f: Emitter, op: Op, args: Sequence[Expr], outs: Sequence[Expr], tans: MaybeExprs) -> MaybeExprs:
    (x,), (out,), (tan,) = args, outs, tans
    return (None if tan is None else f.sum(f.strong_mul(_weights(f, op, x, out), tan), axes=op.attrs["axes"]),)


def _extremum(name: str, function: Callable[..., Any], doc: str, kinds: str = "biuf") -> OpDef:
    return reduction(
        name,
        kinds,
        function,
        Custom(_extremum_vjp, _extremum_jvp),
        f"{doc} Ties share the derivative equally (`ties` equal), each gets all of it (all), or the first does "
        "(first).",
        ties=True,
        needs_elements=True,
        numpy=(name,) if name.startswith("nan") else (),
    )


MAX = _extremum("max", np.max, "Largest element over `axes`; NaN if any is. Of zeros the last, as a rule.")
MIN = _extremum("min", np.min, "Smallest element over `axes`; NaN if any is. Of zeros the last, as a rule.")
NANMAX = _extremum(
    "nanmax",
    lambda x, axis: np.fmax.reduce(x, axis=axis),
    "Largest number over `axes`; NaN if there is none. Of zeros the first, as a rule.",
    "f",
)
NANMIN = _extremum(
    "nanmin",
    lambda x, axis: np.fmin.reduce(x, axis=axis),
    "Smallest number over `axes`; NaN if there is none. Of zeros the first, as a rule.",
    "f",
)


# ------------------------------------------------------------------ argmax, argmin


def _arg_extremum(name: str, function: Callable[..., Any], word: str) -> OpDef:
    def infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
        check_arity(name, types, 1)
        (x,), axis = types, attrs["axis"]
        check_axes(name, (axis,), x.ndim, types)
        if x.dtype.kind == "c":
            raise TypeRuleError(f"{name}: complex numbers have no order, got {x}")
        if x.shape[axis] == 0:
            raise ShapeError(f"{name} of no elements has no value: {x} over axis {axis}")
        return (x.with_shape(without(x.shape, (axis,))).with_dtype(I64),)

    return OpDef(
        name=name,
        arity=1,
        attrs={"axis": "int"},
        infer=infer,
        evaluate=lambda op, args, run: (np.asarray(function(args[0], axis=op.attrs["axis"]), dtype=I64),),
        numpy=(),
        derivative=STEP,
        batch=lambda f, op, args, batched: (f.op(name, args[0], axis=op.attrs["axis"] + 1),),
        lower=Library(name),
        algebra=PLAIN,
        doc=f"Index of the first {word} element along `axis`; the first NaN wins. Derivative 0.",
    )


ARGMAX = _arg_extremum("argmax", np.argmax, "largest")
ARGMIN = _arg_extremum("argmin", np.argmin, "smallest")

EXTREMA = (MAXIMUM, MINIMUM, FMAX, FMIN, CLIP, CLAMP, MAX, MIN, NANMAX, NANMIN, ARGMAX, ARGMIN)
