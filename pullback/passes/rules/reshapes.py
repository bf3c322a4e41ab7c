"""Rules of reshape, transpose and reverse: compositions, and those that do nothing."""

from pullback.ir.graph import Op, Value
from pullback.passes.rules.record import Rewriter, Rule, case, made_by


def _reshape_to_same(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.type.shape == op.attrs["shape"] else None


def _reshape_of_reshape(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "reshape")
    return r.emit("reshape", inner.operands[0], shape=op.attrs["shape"]) if inner is not None else None


def _transpose_in_place(r: Rewriter, op: Op) -> Value | None:
    """The axes longer than 1 keep their order: nothing moves in memory."""
    (x,), perm = op.operands, op.attrs["perm"]
    shape = x.type.shape
    long = [p for p in perm if shape[p] != 1]
    if long != sorted(long):
        return None
    return x if perm == tuple(range(len(perm))) else r.emit("reshape", x, shape=op.results[0].type.shape)


def _transpose_of_transpose(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "transpose")
    if inner is None:
        return None
    first = inner.attrs["perm"]
    return r.emit("transpose", inner.operands[0], perm=tuple([first[p] for p in op.attrs["perm"]]))


def _reverse_of_unit_axes(r: Rewriter, op: Op) -> Value | None:
    (x,), axes = op.operands, op.attrs["axes"]
    long = tuple([a for a in axes if x.type.shape[a] > 1])
    if long == axes:
        return x if not axes else None
    return r.emit("reverse", x, axes=long)


def _reverse_of_reverse(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "reverse")
    if inner is None:
        return None
    axes = set(op.attrs["axes"]) ^ set(inner.attrs["axes"])
    return r.emit("reverse", inner.operands[0], axes=tuple(sorted(axes)))


M, T = "f64[2,3]", "f64[2,3,4]"

RESHAPES: tuple[Rule, ...] = (
    Rule(
        "reshape-to-same",
        "reshape(x) to its own shape -> x",
        ("reshape",),
        _reshape_to_same,
        "Nothing moves.",
        (case(lambda f, x: f.reshape(x, shape=(2, 3)), M),),
    ),
    Rule(
        "reshape-of-reshape",
        "reshape(reshape(x)) -> reshape(x)",
        ("reshape",),
        _reshape_of_reshape,
        "Elements keep their C order in both.",
        (
            case(lambda f, x: f.reshape(f.reshape(x, shape=(6,)), shape=(3, 2)), M),
            case(lambda f, x: f.reshape(f.reshape(x, shape=(6,)), shape=(2, 3)), M),
        ),
    ),
    Rule(
        "transpose-in-place",
        "transpose(x) that moves only axes of length 1 -> reshape(x)",
        ("transpose",),
        _transpose_in_place,
        "The C order of the elements is the same.",
        (case(lambda f, x: f.transpose(x, perm=(0, 1)), M), case(lambda f, x: f.transpose(x, perm=(1, 0)), "f64[1,3]")),
        (case(lambda f, x: f.transpose(x, perm=(1, 0)), M),),
    ),
    Rule(
        "transpose-of-transpose",
        "transpose(transpose(x)) -> transpose(x)",
        ("transpose",),
        _transpose_of_transpose,
        "Permutations compose.",
        (
            case(lambda f, x: f.transpose(f.transpose(x, perm=(1, 2, 0)), perm=(0, 2, 1)), T),
            case(lambda f, x: f.transpose(f.transpose(x, perm=(1, 0)), perm=(1, 0)), M),
        ),
    ),
    Rule(
        "reverse-of-unit-axes",
        "reverse(x) along axes of length 1 or none -> x",
        ("reverse",),
        _reverse_of_unit_axes,
        "Nothing moves.",
        (case(lambda f, x: f.reverse(x, axes=(0, 1)), "f64[1,3]"), case(lambda f, x: f.reverse(x, axes=()), M)),
        (case(lambda f, x: f.reverse(x, axes=(0, 1)), M),),
    ),
    Rule(
        "reverse-of-reverse",
        "reverse(reverse(x)) -> reverse(x) along the axes in one of them",
        ("reverse",),
        _reverse_of_reverse,
        "Twice along one axis is not at all.",
        (
            case(lambda f, x: f.reverse(f.reverse(x, axes=(0, 1)), axes=(1, 2)), T),
            case(lambda f, x: f.reverse(f.reverse(x, axes=(1,)), axes=(1,)), M),
        ),
    ),
)
