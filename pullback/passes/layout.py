"""Layout: transposes go into matrix products, and products of one term become elementwise."""

import math

from pullback.ir.graph import Function, Op, Value
from pullback.ir.ops.products import free_axes
from pullback.passes.base import Context, with_body
from pullback.passes.rules.broadcasts import broadcast_to
from pullback.passes.rules.record import Rewriter, Rule, case, made_by
from pullback.passes.simplify import rewrite_region, rules_by_op
from pullback.record import record

Axes = tuple[int, ...]


def _through(axes: Axes, perm: Axes) -> Axes:
    return tuple([perm[a] for a in axes])


def _transposed_operand(r: Rewriter, op: Op) -> Value | None:
    """dot(transpose(x), y) -> dot(x, y) over the axes they were, where x's free axes keep their order."""
    contract, batch = op.attrs["contract"], op.attrs["batch"]
    for side, value in enumerate(op.operands):
        inner = made_by(value, "transpose")
        if inner is None:
            continue
        perm = inner.attrs["perm"]
        free = _through(free_axes(value.type.ndim, contract[side], batch[side]), perm)
        if list(free) != sorted(free):
            continue
        new_contract, new_batch = list(contract), list(batch)
        new_contract[side], new_batch[side] = _through(contract[side], perm), _through(batch[side], perm)
        operands = list(op.operands)
        operands[side] = inner.operands[0]
        return r.emit("dot_general", *operands, contract=tuple(new_contract), batch=tuple(new_batch))
    return None


def _transposed_product(r: Rewriter, op: Op) -> Value | None:
    """transpose(dot(x, y)) that swaps the free axes of x and of y as wholes -> dot(y, x)."""
    (product,) = op.operands
    inner = made_by(product, "dot_general")
    if inner is None or not r.used_once(product):
        return None
    (xc, yc), (xb, yb) = inner.attrs["contract"], inner.attrs["batch"]
    n, m = len(xb), inner.operands[0].type.ndim - len(xc)
    total = product.type.ndim
    if op.attrs["perm"] != (*range(n), *range(m, total), *range(n, m)):
        return None
    x, y = inner.operands
    return r.emit("dot_general", y, x, contract=(yc, xc), batch=(yb, xb))


def _one_term(r: Rewriter, op: Op) -> Value | None:
    """A product that adds up nothing (an outer product) -> mul of broadcasts."""
    (xc, yc), (xb, yb) = op.attrs["contract"], op.attrs["batch"]
    x, y = op.operands
    if math.prod(x.type.shape[a] for a in xc) != 1:
        return None
    shape, batch = op.results[0].type.shape, len(xb)
    split = batch + x.type.ndim - len(xb) - len(xc)
    lhs = _spread(r, x, xc, xb, list(range(batch, split)), shape)
    rhs = _spread(r, y, yc, yb, list(range(split, len(shape))), shape)
    return r.emit("mul", lhs, rhs)


def _spread(r: Rewriter, x: Value, contract: Axes, batch: Axes, free: list[int], shape: Axes) -> Value:
    """`x` without its contracted axes (of length 1), broadcast to the axes of the product."""
    left = [a for a in range(x.type.ndim) if a not in contract]
    place = dict(zip(batch, range(len(batch)), strict=True))
    place.update(zip(free_axes(x.type.ndim, contract, batch), free, strict=True))
    flat = r.emit("reshape", x, shape=tuple([x.type.shape[a] for a in left]))
    return broadcast_to(r, flat, [place[a] for a in left], shape)


M, N, T = "f64[2,3]", "f64[3,4]", "f64[5,2,3]"
PLAIN = {"contract": ((1,), (0,)), "batch": ((), ())}

LAYOUT: tuple[Rule, ...] = (
    Rule(
        "dot-of-transpose",
        "dot(transpose(x), y) -> dot(x, y) over other axes",
        ("dot_general",),
        _transposed_operand,
        "The same products; the library reads either order. Where x has several free axes they must keep their order.",
        (
            case(lambda f, x, y: f.dot_general(f.transpose(x, perm=(1, 0)), y, **PLAIN), "f64[3,2]", N),
            case(lambda f, x, y: f.dot_general(x, f.transpose(y, perm=(1, 0)), **PLAIN), M, "f64[4,3]"),
            case(
                lambda f, x, y: f.dot_general(
                    f.transpose(x, perm=(1, 0, 2)), y, contract=((2,), (1,)), batch=((0,), (0,))
                ),
                "f64[2,5,3]",
                "f64[5,3]",
            ),
        ),
        (
            case(
                lambda f, x, y: f.dot_general(f.transpose(x, perm=(1, 0, 2)), y, contract=((2,), (0,)), batch=((), ())),
                T,
                N,
            ),
        ),
        kind="reduction",
    ),
    Rule(
        "transpose-of-dot",
        "transpose(dot(x, y)) -> dot(y, x), where read once",
        ("transpose",),
        _transposed_product,
        "The same products with their factors exchanged.",
        (
            case(lambda f, x, y: f.transpose(f.dot_general(x, y, **PLAIN), perm=(1, 0)), M, N),
            case(
                lambda f, x, y: f.transpose(
                    f.dot_general(x, y, contract=((2,), (1,)), batch=((0,), (0,))), perm=(0, 2, 1)
                ),
                T,
                "f64[5,3,4]",
            ),
        ),
        (
            case(
                lambda f, x, y: f.transpose(f.dot_general(x, y, contract=((2,), (0,)), batch=((), ())), perm=(1, 0, 2)),
                T,
                N,
            ),
        ),
        kind="reduction",
    ),
    Rule(
        "product-of-one-term",
        "dot(x, y) over axes of length 1, or none -> mul(broadcast(x), broadcast(y))",
        ("dot_general",),
        _one_term,
        "A sum of one product is that product, but for the sign of zero. It fuses with what follows.",
        (
            case(lambda f, x, y: f.dot_general(x, y, contract=((), ()), batch=((), ())), "f64[3]", "f64[4]"),
            case(lambda f, x, y: f.dot_general(x, y, contract=((1,), (0,)), batch=((), ())), "f64[3,1]", "f64[1,4]"),
            case(lambda f, x, y: f.dot_general(x, y, contract=((), ()), batch=((1,), (0,))), M, "f64[3,4]"),
        ),
        (case(lambda f, x, y: f.dot_general(x, y, **PLAIN), M, N),),
        kind="reduction",
    ),
)


@record(frozen=True)
class Layout:
    """Moves transposes into `dot_general`, and turns products that add up nothing into elementwise ones.

    Never adds a copy: a transpose is dropped, or stays where it was. One walk.
    """

    name: str = "layout"
    rules: tuple[Rule, ...] = LAYOUT

    def run(self, function: Function, ctx: Context) -> Function:
        table = rules_by_op(self.rules, ctx.options.fast, ctx.options.skip)
        return with_body(function, rewrite_region(function.body, table, ctx))
