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

MOST_TERMS = 3
"""A product is looked for among terms added up at most so deep."""


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
    """transpose(dot(x, y)) that ends in x's last free axis -> dot(y, x), transposed where axes are still moved.

    What reads it then walks through memory in order.
    """
    (product,) = op.operands
    inner = made_by(product, "dot_general")
    if inner is None or not r.used_once(product):
        return None
    (xc, yc), (xb, yb) = inner.attrs["contract"], inner.attrs["batch"]
    n, m = len(xb), inner.operands[0].type.ndim - len(xc)
    total, perm = product.type.ndim, op.attrs["perm"]
    if not n < m < total or perm[-1] != m - 1:
        return None
    x, y = inner.operands
    swapped = r.emit("dot_general", y, x, contract=(yc, xc), batch=(yb, xb))
    order = (*range(n), *range(m, total), *range(n, m))  # of the old axes in the new product
    moved = tuple([order.index(a) for a in perm])
    return swapped if moved == tuple(range(total)) else r.emit("transpose", swapped, perm=moved)


def _summed_batch(r: Rewriter, op: Op) -> Value | None:
    """sum(dot(x, y)) over axes of its batch, the product maybe transposed or one of a few terms -> dot(x, y)."""
    (total,) = op.operands
    return _Summing(r, False).of(total, op.attrs["axes"])


def _summed_product(r: Rewriter, op: Op) -> Value | None:
    """sum(dot(x, y)) over free axes -> dot(sum(x), sum(y))."""
    (total,) = op.operands
    return _Summing(r, True).of(total, op.attrs["axes"])


@record(frozen=True)
class _Summing:
    """Brings sums into products: over axes of the batch, or over `free` ones."""

    r: Rewriter
    free: bool

    def of(self, x: Value, axes: Axes, depth: int = MOST_TERMS) -> Value | None:
        """sum(x), or None if no product in it takes any of the axes."""
        if not self.r.used_once(x):
            return None
        if made_by(x, "dot_general"):
            return self._product(x, axes)
        moved = made_by(x, "transpose")
        if moved is not None and self.r.used_once(moved.operands[0]) and made_by(moved.operands[0], "dot_general"):
            return self._transposed(moved, axes)
        inner = made_by(x, "add")
        if inner is None or not depth:
            return None
        terms = [self.of(term, axes, depth - 1) for term in inner.operands]
        if all(term is None for term in terms):
            return None
        pairs = zip(inner.operands, terms, strict=True)
        return self.r.emit("add", *[y or self.r.emit("sum", x, axes=axes) for x, y in pairs])

    def _transposed(self, op: Op, axes: Axes) -> Value | None:
        perm = op.attrs["perm"]
        small = self._product(op.operands[0], tuple(sorted([perm[a] for a in axes])))
        if small is None:
            return None
        kept = [p for k, p in enumerate(perm) if k not in axes]
        moved = tuple([sorted(kept).index(p) for p in kept])
        return small if moved == tuple(range(len(moved))) else self.r.emit("transpose", small, perm=moved)

    def _product(self, product: Value, axes: Axes) -> Value | None:
        op = product.op
        assert op is not None
        batch = len(op.attrs["batch"][0])
        taken = tuple([a for a in axes if (a >= batch) == self.free])
        if not taken or (self.free and min(_free_sizes(op)) == 1):  # a product with a vector reads as much as its sum
            return None
        small = self._sums_in(op, taken)
        left = [a for a in range(product.type.ndim) if a not in taken]
        rest = tuple([left.index(a) for a in axes if a not in taken])
        return self.r.emit("sum", small, axes=rest) if rest else small

    def _sums_in(self, op: Op, axes: Axes) -> Value:
        contract, batch = op.attrs["contract"], op.attrs["batch"]
        pairs = list(zip(*batch, strict=True))
        first = len(pairs)
        sides, contracts, batches = [], [], []
        for side, x in enumerate(op.operands):
            free = free_axes(x.type.ndim, contract[side], batch[side])
            gone = tuple([a for k, a in enumerate(free, first) if k in axes])
            first += len(free)
            place = {a: k for k, a in enumerate(a for a in range(x.type.ndim) if a not in gone)}
            added = [pair[side] for k, pair in enumerate(pairs) if k in axes]
            stay = [pair[side] for k, pair in enumerate(pairs) if k not in axes]
            sides.append(self.r.emit("sum", x, axes=gone) if gone else x)
            contracts.append(tuple([place[a] for a in (*added, *contract[side])]))
            batches.append(tuple([place[a] for a in stay]))
        return self.r.emit("dot_general", *sides, contract=tuple(contracts), batch=tuple(batches))


def _free_sizes(op: Op) -> tuple[int, int]:
    """Rows and columns of the matrices that a product is of."""
    contract, batch = op.attrs["contract"], op.attrs["batch"]
    x, y = (
        math.prod([v.type.shape[a] for a in free_axes(v.type.ndim, contract[side], batch[side])])
        for side, v in enumerate(op.operands)
    )
    return x, y


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


M, N, T, S = "f64[2,3]", "f64[3,4]", "f64[5,2,3]", "f64[5,3]"
PLAIN = {"contract": ((1,), (0,)), "batch": ((), ())}
BATCHED = {"contract": ((2,), (1,)), "batch": ((0,), (0,))}

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
        "transpose(dot(x, y)) that ends in an axis of x -> dot(y, x), where read once",
        ("transpose",),
        _transposed_product,
        "The same products with their factors exchanged; what else the transpose did is left to do.",
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
        "sum-of-batch",
        "sum(z + dot(x, y)) -> sum(z) + dot(x, y), axes of the batch contracted, where read once; of transposes too",
        ("sum",),
        _summed_batch,
        "The same products in one sum.",
        (
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **BATCHED), axes=(0,)), T, S),
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **BATCHED), axes=(0, 1)), T, S),
            case(lambda f, x, y: f.sum(f.transpose(f.dot_general(x, y, **BATCHED), perm=(1, 0)), axes=(1,)), T, S),
            case(lambda f, z, x, y: f.sum(z + f.dot_general(x, y, **BATCHED) + z, axes=(0,)), "f64[5,2]", T, S),
        ),
        (
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **BATCHED), axes=(1,)), T, S),
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **BATCHED) * 2.0, axes=(0,)), T, S),
            case(lambda f, x, y: f.sum(f.transpose(x + y, perm=(1, 0)), axes=(0,)), M, M),
        ),
        kind="reduction",
    ),
    Rule(
        "sum-of-dot",
        "sum(z + dot(x, y)) -> sum(z) + dot(sum(x), sum(y)) over free axes, where read once; of transposes likewise",
        ("sum",),
        _summed_product,
        "A factor that many terms share is multiplied once. Of 0 * inf + 1 * inf, which is NaN, it makes inf.",
        (
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **PLAIN), axes=(0,)), M, N),
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **PLAIN), axes=(0, 1)), M, N),
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **BATCHED), axes=(1,)), "f64[5,4,3]", "f64[5,3,2]"),
            case(lambda f, x, y: f.sum(f.transpose(f.dot_general(x, y, **PLAIN), perm=(1, 0)), axes=(0,)), M, N),
            case(lambda f, x, y, z: f.sum(x + f.dot_general(y, z, **PLAIN), axes=(0,)), "f64[2,4]", M, N),
        ),
        (
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **PLAIN) * 2.0, axes=(0,)), M, N),
            case(lambda f, x, y: f.sum(f.dot_general(x, y, **PLAIN), axes=(0,)), M, "f64[3]"),
        ),
        kind="fast",
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
