"""Rules of broadcasts: work on the small operand, copy afterwards."""

from collections.abc import Sequence

from pullback.ir.graph import Op, Value
from pullback.ir.opdef import Scalar
from pullback.ir.ops import ALL_OPS
from pullback.ir.types import Shape
from pullback.passes.rules.record import Rewriter, Rule, case, made_by, number, same_number

_BODY_ONLY = frozenset({"within", "index", "load_at"})
_ELEMENTWISE = tuple(
    op.name for op in ALL_OPS if isinstance(op.lower, Scalar) and op.name not in _BODY_ONLY and op.arity
)


def broadcast_to(r: Rewriter, x: Value, dims: Sequence[int], shape: Shape) -> Value:
    """`x` copied along new axes; its axes need not come in order."""
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    if order != list(range(len(dims))):
        x = r.emit("transpose", x, perm=tuple(order))
    return r.emit("broadcast", x, dims=tuple(sorted(dims)), shape=tuple(shape))


def _same_shape(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.type.shape == op.attrs["shape"] else None


def _only_unit_axes(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return r.emit("reshape", x, shape=op.attrs["shape"]) if x.type.size == op.results[0].type.size else None


def _of_broadcast(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "broadcast")
    if inner is None:
        return None
    dims = tuple([op.attrs["dims"][d] for d in inner.attrs["dims"]])
    return r.emit("broadcast", inner.operands[0], dims=dims, shape=op.attrs["shape"])


def _elementwise(r: Rewriter, op: Op) -> Value | None:
    used: set[int] = set()
    makers = []
    for operand in op.operands:
        maker = operand.op
        if maker is None or maker.opdef.name != "broadcast":
            return None
        makers.append(maker)
        used.update(maker.attrs["dims"])
    shape = op.results[0].type.shape
    small = tuple([n for k, n in enumerate(shape) if k in used])
    if len(small) == len(shape) or op.results[0].type.size <= op.results[0].type.with_shape(small).size:
        return None
    dims = sorted(used)
    place = {d: k for k, d in enumerate(dims)}
    operands = [
        r.emit("broadcast", m.operands[0], dims=tuple([place[d] for d in m.attrs["dims"]]), shape=small) for m in makers
    ]
    return r.emit("broadcast", r.emit(op.opdef.name, *operands, **op.attrs), dims=tuple(dims), shape=shape)


def _transposed(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "broadcast")
    if inner is None:
        return None
    place = {axis: k for k, axis in enumerate(op.attrs["perm"])}
    dims = [place[d] for d in inner.attrs["dims"]]
    return broadcast_to(r, inner.operands[0], dims, op.results[0].type.shape)


def _reshaped(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "broadcast")
    if inner is None or inner.operands[0].type.shape != ():
        return None
    return r.emit("broadcast", inner.operands[0], dims=(), shape=op.attrs["shape"])


def _sliced(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "broadcast")
    if inner is None:
        return None
    dims = inner.attrs["dims"]
    at = {key: tuple([op.attrs[key][d] for d in dims]) for key in ("start", "stop", "step")}
    return r.emit("broadcast", r.emit("slice", inner.operands[0], **at), dims=dims, shape=op.results[0].type.shape)


def _reversed(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "broadcast")
    if inner is None:
        return None
    dims = inner.attrs["dims"]
    axes = tuple([k for k, d in enumerate(dims) if d in op.attrs["axes"]])
    small = r.emit("reverse", inner.operands[0], axes=axes)
    return r.emit("broadcast", small, dims=dims, shape=op.results[0].type.shape)


def _gathered(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "broadcast")
    if inner is None or inner.operands[0].type.shape != () or op.operands[0].type.size == 0:
        return None
    return r.emit("broadcast", inner.operands[0], dims=(), shape=op.results[0].type.shape)


def _scalar_of(value: Value) -> Value | None:
    """The scalar that `value` repeats."""
    inner = made_by(value, "broadcast")
    return inner.operands[0] if inner is not None and inner.operands[0].type.shape == () else None


def same_repeated(x: Value, y: Value) -> bool:
    """Whether both repeat one scalar: the same value, or equal numbers."""
    lhs, rhs = _scalar_of(x), _scalar_of(y)
    if lhs is not None and lhs is rhs:
        return True
    found, expected = number(x), number(y)
    return found is not None and expected is not None and same_number(found, expected)


def _concatenated(r: Rewriter, op: Op) -> Value | None:
    first = op.operands[0]
    scalar = _scalar_of(first)
    if scalar is None or not all(same_repeated(v, first) for v in op.operands[1:]):
        return None
    return r.emit("broadcast", scalar, dims=(), shape=op.results[0].type.shape)


def _updated(r: Rewriter, op: Op) -> Value | None:
    x, v = op.operands
    return x if same_repeated(x, v) else None


def _padded(r: Rewriter, op: Op) -> Value | None:
    return r.full(op.results[0].type, 0) if same_number(number(op.operands[0]), 0) else None


V, M, S = "f64[3]", "f64[2,3]", "f64[]"

BROADCASTS: tuple[Rule, ...] = (
    Rule(
        "broadcast-to-same",
        "broadcast(x) of the same shape -> x",
        ("broadcast",),
        _same_shape,
        "Nothing is copied.",
        (case(lambda f, x: f.broadcast(x, dims=(0,), shape=(3,)), V),),
    ),
    Rule(
        "broadcast-of-unit-axes",
        "broadcast(x) to as many elements -> reshape(x)",
        ("broadcast",),
        _only_unit_axes,
        "All new axes have length 1; a reshape is only another name for the buffer.",
        (case(lambda f, x: f.broadcast(x, dims=(1,), shape=(1, 3)), V),),
        (case(lambda f, x: f.broadcast(x, dims=(1,), shape=(2, 3)), V),),
    ),
    Rule(
        "broadcast-of-broadcast",
        "broadcast(broadcast(x)) -> broadcast(x)",
        ("broadcast",),
        _of_broadcast,
        "Copies of copies.",
        (case(lambda f, x: f.broadcast(f.broadcast(x, dims=(1,), shape=(2, 3)), dims=(1, 2), shape=(4, 2, 3)), V),),
    ),
    Rule(
        "elementwise-of-broadcasts",
        "op(broadcast(x), broadcast(y)) -> broadcast(op(x, y))",
        _ELEMENTWISE,
        _elementwise,
        "The same operations, once for each different element. Where the operands together use all axes it is left.",
        (
            case(lambda f, x: f.exp(f.broadcast(x, dims=(1,), shape=(2, 3))), V),
            case(lambda f, x: f.broadcast(x, dims=(1,), shape=(2, 3)) * 3.0, V),
            case(lambda f, x, s: f.broadcast(x, dims=(1,), shape=(2, 3)) * f.broadcast(s, dims=(), shape=(2, 3)), V, S),
        ),
        (
            case(
                lambda f, x, y: f.broadcast(x, dims=(1,), shape=(2, 3)) * f.broadcast(y, dims=(0,), shape=(2, 3)),
                V,
                "f64[2]",
            ),
        ),
    ),
    Rule(
        "transpose-of-broadcast",
        "transpose(broadcast(x)) -> broadcast(transpose(x))",
        ("transpose",),
        _transposed,
        "Elements are moved, not changed; the smaller array is transposed.",
        (
            case(lambda f, x: f.transpose(f.broadcast(x, dims=(1,), shape=(2, 3)), perm=(1, 0)), V),
            case(lambda f, x: f.transpose(f.broadcast(x, dims=(0, 2), shape=(2, 4, 3)), perm=(2, 1, 0)), M),
        ),
    ),
    Rule(
        "reshape-of-broadcast",
        "reshape(broadcast(scalar)) -> broadcast(scalar)",
        ("reshape",),
        _reshaped,
        "All elements are the same.",
        (case(lambda f, s: f.reshape(f.broadcast(s, dims=(), shape=(2, 3)), shape=(6,)), S),),
    ),
    Rule(
        "slice-of-broadcast",
        "slice(broadcast(x)) -> broadcast(slice(x))",
        ("slice",),
        _sliced,
        "Elements are moved, not changed.",
        (
            case(
                lambda f, x: f.slice(f.broadcast(x, dims=(1,), shape=(2, 3)), start=(0, 1), stop=(1, 3), step=(1, 1)), V
            ),
        ),
    ),
    Rule(
        "reverse-of-broadcast",
        "reverse(broadcast(x)) -> broadcast(reverse(x))",
        ("reverse",),
        _reversed,
        "Elements are moved, not changed; copies read the same from both ends.",
        (case(lambda f, x: f.reverse(f.broadcast(x, dims=(1,), shape=(2, 3)), axes=(0, 1)), V),),
    ),
    Rule(
        "gather-of-broadcast",
        "gather(broadcast(scalar), i) -> broadcast(scalar)",
        ("gather",),
        _gathered,
        "All elements are the same, and indices are clamped. Not of an axis without elements.",
        (case(lambda f, s, i: f.gather(f.broadcast(s, dims=(), shape=(2, 3)), i, axis=1), S, "i64[4]"),),
    ),
    Rule(
        "concatenate-of-broadcasts",
        "concatenate(broadcast(s), broadcast(s)) -> broadcast(s)",
        ("concatenate",),
        _concatenated,
        "All elements are the same.",
        (
            case(
                lambda f, x: f.concatenate(f.zeros_like(x), f.broadcast(f.constant(0.0), dims=(), shape=(4,)), axis=0),
                V,
            ),
        ),
        (case(lambda f, x: f.concatenate(f.full_like(x, 0.0), f.full_like(x, -0.0), axis=0), V),),
    ),
    Rule(
        "update-with-same",
        "update(broadcast(s), broadcast(s)) -> broadcast(s)",
        ("update",),
        _updated,
        "The same number is written over itself; 0.0 over -0.0 is not.",
        (case(lambda f, x: f.update(f.zeros_like(x), f.constant([0.0]), start=(1,), stop=(2,), step=(1,)), V),),
        (case(lambda f, x: f.update(f.zeros_like(x), f.constant([-0.0]), start=(1,), stop=(2,), step=(1,)), V),),
    ),
    Rule(
        "pad-of-zeros",
        "pad(0) -> 0",
        ("pad",),
        _padded,
        "All elements are 0.0; -0.0 would differ from the padding.",
        (case(lambda f, x: f.pad(f.zeros_like(x), low=(1,), high=(2,), interior=(1,)), V),),
        (case(lambda f, x: f.pad(f.full_like(x, -0.0), low=(1,), high=(2,), interior=(1,)), V),),
    ),
)
