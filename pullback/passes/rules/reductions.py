"""Rules of reductions and scans."""

import math

import numpy as np

from pullback.ir.graph import Op, Value
from pullback.ir.types import DType
from pullback.passes.rules.broadcasts import broadcast_to
from pullback.passes.rules.record import Rewriter, Rule, case, is_constant, made_by

# the same in any order (but for the sign of a zero), and however often an element is met
_ORDERLESS = ("max", "min", "nanmax", "nanmin", "any", "all")
_ACCUMULATING = ("sum", "prod")
_SCANS = ("cumsum", "cumprod", "cummax", "cummin")


def _reduce(r: Rewriter, op: Op, x: Value, axes: tuple[int, ...]) -> Value:
    return r.emit(op.opdef.name, x, **{**op.attrs, "axes": axes})


def _without(ndim: int, axes: tuple[int, ...]) -> list[int]:
    return [k for k in range(ndim) if k not in axes]


def _no_axes(r: Rewriter, op: Op) -> Value | None:
    return op.operands[0] if not op.attrs["axes"] else None


def _unit_axes(r: Rewriter, op: Op) -> Value | None:
    (x,), axes = op.operands, op.attrs["axes"]
    if any(x.type.shape[a] != 1 for a in axes) or (op.name == "prod" and x.type.is_complex):
        return None
    return r.emit("reshape", x, shape=op.results[0].type.shape)


def _of_reduction(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], op.opdef.name)
    if inner is None or op.attrs.get("ties") != inner.attrs.get("ties"):
        return None
    (x,) = inner.operands
    left = _without(x.type.ndim, inner.attrs["axes"])
    return _reduce(r, op, x, tuple(sorted([*inner.attrs["axes"], *(left[a] for a in op.attrs["axes"])])))


# ------------------------------------------------------------------ of a broadcast


def _holds_count(dtype: DType, count: int) -> bool:
    """Whether `count` is a number of the dtype; integers wrap around, as their sum does."""
    return (
        dtype.kind in "iu" or (count <= 2 ** (np.finfo(dtype).nmant + 1) and np.isfinite(np.array(count).astype(dtype)))
    )


def _of_broadcast(r: Rewriter, op: Op) -> Value | None:
    """Reduce the operand of the broadcast; copies that are reduced become a factor (sum) or nothing (max, any)."""
    inner = made_by(op.operands[0], "broadcast")
    if inner is None:
        return None
    wide, axes, dims = op.operands[0].type, op.attrs["axes"], inner.attrs["dims"]
    (x,) = inner.operands
    copies = math.prod(wide.shape[a] for a in axes if a not in dims)
    if copies == 0 or (
        copies != 1 and (op.name == "prod" or (op.name == "sum" and not _holds_count(x.type.dtype, copies)))
    ):
        return None
    small = _reduce(r, op, x, tuple([k for k, d in enumerate(dims) if d in axes]))
    if copies != 1 and op.name == "sum":
        small = r.emit("mul", small, r.full(small.type, copies))
    left = _without(wide.ndim, axes)
    kept = [left.index(d) for d in dims if d not in axes]
    return broadcast_to(r, small, kept, op.results[0].type.shape)


# ------------------------------------------------------------------ of moved elements


def _of_reshape(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "reshape")
    if inner is None or op.results[0].type.shape != ():
        return None
    (x,) = inner.operands
    return _reduce(r, op, x, tuple(range(x.type.ndim)))


def _of_transpose(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "transpose")
    if inner is None:
        return None
    perm, axes = inner.attrs["perm"], op.attrs["axes"]
    small = _reduce(r, op, inner.operands[0], tuple(sorted(perm[a] for a in axes)))
    kept = [p for k, p in enumerate(perm) if k not in axes]
    order = sorted(kept)
    return r.emit("transpose", small, perm=tuple([order.index(p) for p in kept]))


def _of_reverse(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "reverse")
    if inner is None:
        return None
    axes = op.attrs["axes"]
    left = _without(op.operands[0].type.ndim, axes)
    turned = tuple([left.index(a) for a in inner.attrs["axes"] if a not in axes])
    return r.emit("reverse", _reduce(r, op, inner.operands[0], axes), axes=turned)


def _of_pad(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "pad")
    if inner is None:
        return None
    (x,), axes = inner.operands, op.attrs["axes"]
    wide = op.operands[0].type.shape
    if any(n != m for k, (n, m) in enumerate(zip(x.type.shape, wide, strict=True)) if k not in axes):
        return None
    return _reduce(r, op, x, axes)


def _of_negated(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    inner = made_by(x, "neg")
    if inner is None or not r.used_once(x):
        return None
    return r.emit("neg", _reduce(r, op, inner.operands[0], op.attrs["axes"]))


def _of_scaled(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "mul")
    if inner is None or not r.used_once(op.operands[0]):
        return None
    x, y = inner.operands
    scalar = made_by(y, "broadcast")
    if scalar is None or scalar.operands[0].type.shape != () or not is_constant(y) or x.type.dtype.kind not in "fc":
        return None
    total = _reduce(r, op, x, op.attrs["axes"])
    return r.emit("mul", total, broadcast_to(r, scalar.operands[0], (), total.type.shape))


# ------------------------------------------------------------------ scans, argmax


def _scan_of_one(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.type.shape[op.attrs["axis"]] <= 1 else None


def _argument_of_one(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return r.full(op.results[0].type, 0) if x.type.shape[op.attrs["axis"]] == 1 else None


M, T, I, B = "f64[2,3]", "f64[2,3,4]", "i32[2,3]", "bool[2,3]"

REDUCTIONS: tuple[Rule, ...] = (
    Rule(
        "reduce-no-axes",
        "sum(x) over no axes -> x; every reduction",
        (*_ACCUMULATING, *_ORDERLESS),
        _no_axes,
        "Each element is its own group.",
        (case(lambda f, x: f.sum(x, axes=()), M), case(lambda f, x: f.max(x, axes=(), ties="equal"), M)),
    ),
    Rule(
        "reduce-unit-axes",
        "max(x) over axes of length 1 -> reshape(x); prod, any, all",
        ("prod", *_ORDERLESS),
        _unit_axes,
        "Of one element each is that element. Not of complex products: 1 * (inf+0j) has a NaN.",
        (
            case(lambda f, x: f.max(x, axes=(0,), ties="equal"), "f64[1,3]"),
            case(lambda f, x: f.prod(x, axes=(0, 2)), "f64[1,3,1]"),
        ),
        (
            case(lambda f, x: f.max(x, axes=(0, 1), ties="equal"), "f64[1,3]"),
            case(lambda f, x: f.prod(x, axes=(0,)), "c128[1]"),
        ),
    ),
    Rule(
        "sum-unit-axes",
        "sum(x) over axes of length 1 -> reshape(x)",
        ("sum",),
        _unit_axes,
        "Of one element the sum is that element; NumPy's begins with 0.0, so it has 0.0 for -0.0.",
        (case(lambda f, x: f.sum(x, axes=(0,)), "f64[1,3]"),),
        kind="reduction",
    ),
    Rule(
        "max-of-max",
        "max(max(x)) -> max(x) over all axes; min, any, all",
        _ORDERLESS,
        _of_reduction,
        "In any order the same.",
        (
            case(lambda f, x: f.max(f.max(x, axes=(1,), ties="equal"), axes=(0,), ties="equal"), T),
            case(lambda f, x: f.any(f.any(x, axes=(0,)), axes=(0,)), B),
        ),
        (case(lambda f, x: f.max(f.min(x, axes=(1,), ties="equal"), axes=(0,), ties="equal"), T),),
    ),
    Rule(
        "sum-of-sum",
        "sum(sum(x)) -> sum(x) over all axes; prod",
        _ACCUMULATING,
        _of_reduction,
        "One pairwise sum over all; its error grows no faster.",
        (
            case(lambda f, x: f.sum(f.sum(x, axes=(1,)), axes=(1,)), T),
            case(lambda f, x: f.prod(f.prod(x, axes=(0,)), axes=(0,)), M),
        ),
        kind="reduction",
    ),
    Rule(
        "max-of-broadcast",
        "max(broadcast(x)) -> broadcast(max(x)); min, any, all",
        _ORDERLESS,
        _of_broadcast,
        "The largest of copies is the one. Of no copies there is none.",
        (
            case(lambda f, x: f.max(f.broadcast(x, dims=(1, 2), shape=(4, 2, 3)), axes=(0, 1), ties="equal"), M),
            case(lambda f, x: f.all(f.broadcast(x, dims=(0, 2), shape=(2, 5, 3)), axes=(2,)), B),
        ),
        (case(lambda f, x: f.any(f.broadcast(x, dims=(1, 2), shape=(0, 2, 3)), axes=(0,)), B),),
    ),
    Rule(
        "sum-of-broadcast",
        "sum(broadcast(x)) -> broadcast(sum(x) * copies); prod over no copies",
        _ACCUMULATING,
        _of_broadcast,
        "n times x is rounded once, a sum of n copies up to log2(n) times. n must be a number of the dtype.",
        (
            case(lambda f, x: f.sum(f.broadcast(x, dims=(1, 2), shape=(5, 2, 3)), axes=(0, 1)), M),
            case(lambda f, x: f.sum(f.broadcast(x, dims=(0, 2), shape=(2, 5, 3)), axes=(1, 2)), I),
            case(lambda f, x: f.prod(f.broadcast(x, dims=(0, 2), shape=(2, 5, 3)), axes=(2,)), M),
        ),
        (
            case(lambda f, x: f.prod(f.broadcast(x, dims=(1, 2), shape=(5, 2, 3)), axes=(0,)), M),
            case(lambda f, x: f.sum(f.broadcast(x, dims=(0,), shape=(3, 4097)), axes=(1,)), "f16[3]"),
            case(lambda f, x: f.sum(f.broadcast(x, dims=(0,), shape=(3, 0)), axes=(1,)), "f64[3]"),
        ),
        kind="reduction",
    ),
    Rule(
        "max-of-moved",
        "max(reshape(x)) -> max(x); of transpose and reverse likewise",
        _ORDERLESS,
        lambda r, op: _of_reshape(r, op) or _of_transpose(r, op) or _of_reverse(r, op),
        "In any order the same.",
        (
            case(lambda f, x: f.max(f.reshape(x, shape=(6,)), axes=(0,), ties="equal"), M),
            case(lambda f, x: f.min(f.transpose(x, perm=(2, 0, 1)), axes=(1,), ties="equal"), T),
            case(lambda f, x: f.any(f.reverse(x, axes=(0, 1)), axes=(0,)), B),
        ),
    ),
    Rule(
        "sum-of-moved",
        "sum(reshape(x)) -> sum(x); of transpose and reverse likewise; prod",
        _ACCUMULATING,
        lambda r, op: _of_reshape(r, op) or _of_transpose(r, op) or _of_reverse(r, op),
        "The same terms in another order.",
        (
            case(lambda f, x: f.sum(f.reshape(x, shape=(6,)), axes=(0,)), M),
            case(lambda f, x: f.sum(f.transpose(x, perm=(2, 0, 1)), axes=(1,)), T),
            case(lambda f, x: f.prod(f.reverse(x, axes=(0, 1)), axes=(0,)), M),
        ),
        kind="reduction",
    ),
    Rule(
        "sum-of-pad",
        "sum(pad(x)) over the padded axes -> sum(x)",
        ("sum",),
        _of_pad,
        "Zeros add nothing.",
        (case(lambda f, x: f.sum(f.pad(x, low=(0, 2), high=(0, 1), interior=(0, 1)), axes=(1,)), M),),
        (case(lambda f, x: f.sum(f.pad(x, low=(1, 2), high=(0, 1), interior=(0, 1)), axes=(1,)), M),),
        kind="reduction",
    ),
    Rule(
        "sum-of-negated",
        "sum(-x) -> -sum(x), where read once",
        ("sum",),
        _of_negated,
        "Each rounding has its mirror image; only the sign of a zero sum may differ.",
        (case(lambda f, x: f.sum(-x, axes=(0,)), M), case(lambda f, x: f.sum(-x, axes=(0,)), I)),
        (case(lambda f, x: f.prod(-x, axes=(0,)), M),),
        kind="reduction",
    ),
    Rule(
        "sum-of-scaled",
        "sum(x * c) -> sum(x) * c, where read once",
        ("sum",),
        _of_scaled,
        "One product for all terms; the sum may overflow where the scaled terms do not.",
        (case(lambda f, x: f.sum(x * 0.3, axes=(0, 1)), M),),
        kind="fast",
    ),
    Rule(
        "scan-of-one",
        "cumsum(x) along an axis of length 1 -> x; every scan",
        _SCANS,
        _scan_of_one,
        "Of one element it is that element.",
        (case(lambda f, x: f.cumsum(x, axis=0, reverse=False), "f64[1,3]"),),
    ),
    Rule(
        "argmax-of-one",
        "argmax(x) along an axis of length 1 -> 0; argmin",
        ("argmax", "argmin"),
        _argument_of_one,
        "The only index.",
        (case(lambda f, x: f.argmax(x, axis=0), "f64[1,3]"),),
    ),
)
