"""Products of matrices that an adjoint loop would add up turn by turn, taken out of it.

The gradient of a matrix that a loop reads in each turn is a sum over the turns of products of two small arrays, for a
recurrent network the states and the cotangents of the gates. Stacked over the turns they are multiplied in one product,
whose contraction goes over the turns too: as many operations, but at the speed of a large product instead of many small
updates.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Op, Value


class Product(NamedTuple):
    """A `dot_general` of a turn and the ops that move the elements of its result."""

    dot: Op
    moves: tuple[Op, ...]


def summed_products(total: Value, result: Value) -> list[Product] | None:
    """The products that `result` adds to the parameter `total`, if it adds nothing else and stacking is worth it."""
    products = []
    while result is not total:
        op = result.op
        if op is None or op.name != "add":
            return None
        product = _product(op.operands[1])
        if product is None:
            return None
        products.append(product)
        result = op.operands[0]
    return products or None


def _product(value: Value) -> Product | None:
    moves = []
    op = value.op
    while op is not None and op.name in ("transpose", "reshape"):
        moves.append(op)
        op = op.operands[0].op
    if op is None or op.name != "dot_general":
        return None
    x, y = op.operands
    rows_are_smaller = x.type.size + y.type.size < op.results[0].type.size
    return Product(op, tuple(reversed(moves))) if rows_are_smaller else None


def over_turns(f: Emitter, product: Product, x: Expr, y: Expr) -> Expr:
    """The sum of the product over all turns; `x` and `y` hold the operands of each turn along a first axis."""
    contract, batch = product.dot.attrs["contract"], product.dot.attrs["batch"]
    result = f.dot_general(
        x,
        y,
        contract=((0, *_behind_turns(contract[0])), (0, *_behind_turns(contract[1]))),
        batch=(_behind_turns(batch[0]), _behind_turns(batch[1])),
    )
    for move in product.moves:
        result = f.op(move.name, result, **move.attrs)
    return result


def _behind_turns(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)
