"""What a kernel computes, apart from where its buffers are: equal kernels are emitted once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from pullback.ir.graph import Op, Region, Value
from pullback.ir.index import Affine
from pullback.ir.kernel import Load, Store
from pullback.ir.types import Shape, TensorType
from pullback.record import record

CHEAP, SLOW, CALL = 1, 5, 24
"""Rough cost of a body op in vector instructions: arithmetic, a division or root, a transcendental function."""

_FREE = frozenset({"constant", "stop_gradient", "within", "index", "real", "imag", "complex"})
_SLOW = frozenset({"div", "sqrt", "floor_divide", "mod", "fmod", "integer_pow", "nextafter", "load_at"})
_CHEAP = frozenset(
    [
        "add", "sub", "mul", "neg", "abs", "sign", "floor", "ceil", "rint", "trunc", "maximum", "minimum", "fmax",
        "fmin", "clip", "clamp", "copysign", "select", "cast", "conj", "invert", "isnan", "isinf", "isfinite",
        "signbit", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and",
        "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "strong_mul",
    ]
)


def weight_of(op: Op) -> int:
    """The rough cost of one body op."""
    name = op.name
    if name in _FREE:
        return 0
    if name in _CHEAP:
        return CHEAP
    return SLOW if name in _SLOW else CALL


@record(frozen=True, eq=False)
class KernelSpec:
    """A kernel op without its values.

    space : sizes of the loop axes
    loads, stores : as the op's attributes
    operands : types of the buffers read
    body : the scalar program
    weight : rough cost of one point in vector instructions
    targets : number of the result that each store writes to, where several write to one; empty: each to its own
    contracts : sums of products may be rounded once for each product and addition
    """

    space: Shape
    loads: tuple[Load, ...]
    stores: tuple[Store, ...]
    operands: tuple[TensorType, ...]
    body: Region
    weight: int = 0
    targets: tuple[int, ...] = ()
    contracts: bool = False

    @property
    def points(self) -> int:
        total = 1
        for n in self.space:
            total *= n
        return total

    def target(self, store: int) -> int:
        """The result that a store writes to."""
        return self.targets[store] if self.targets else store

    def key(self) -> Hashable:
        """Equal for kernels whose code is the same."""
        return (self.space, self.loads, self.stores, self.operands, self.contracts, body_key(self.body))


def kernel_spec(op: Op) -> KernelSpec:
    """The spec of a `kernel` op."""
    attrs, body = op.attrs, op.regions[0]
    return make_spec(attrs["space"], attrs["loads"], attrs["stores"], tuple(v.type for v in op.operands), body)


def make_spec(
    space: Shape, loads: tuple[Load, ...], stores: tuple[Store, ...], operands: tuple[TensorType, ...], body: Region
) -> KernelSpec:
    """A spec with its weight worked out."""
    weight = sum(weight_of(op) for op in body.ops) + len(loads) + len(stores)
    return KernelSpec(space, loads, stores, operands, body, weight)


def body_key(body: Region) -> Hashable:
    """The program's text in a form that hashes: op names, attributes, operand numbers."""
    numbers: dict[Value, int] = {param: k for k, param in enumerate(body.params)}
    lines = []
    for op in body.ops:
        lines.append((op.name, op.attrs.key(), tuple([numbers[v] for v in op.operands])))
        numbers[op.results[0]] = len(numbers)
    return (tuple(p.type.dtype for p in body.params), tuple(lines), tuple(numbers[v] for v in body.results))


def longest_chain(spec: KernelSpec) -> int:
    """The weight of the longest chain of ops that wait for one another."""
    ends: dict[Value, int] = {}
    for op in spec.body.ops:
        ends[op.results[0]] = weight_of(op) + max((ends.get(v, 1) for v in op.operands), default=0)
    return max(ends.values(), default=0)


def pairs_sine_and_cosine(spec: KernelSpec) -> bool:
    """Does the body take both of one value: they are then computed together."""
    sines = {op.operands[0] for op in spec.body.ops if op.name == "sin"}
    return any(op.name == "cos" and op.operands[0] in sines for op in spec.body.ops)


def remap(at: Affine, table: Mapping[int, int | None]) -> Affine:
    """`at` over other axes: axis a becomes table[a]; None drops the axis."""
    terms = [(table[axis], c) for axis, c in at.terms]
    return Affine(at.offset, tuple(sorted((axis, c) for axis, c in terms if axis is not None)))


def spec_affines(spec: KernelSpec) -> Iterator[Affine]:
    """Every position that the kernel reads or writes."""
    for load in spec.loads:
        yield load.at
    for store in spec.stores:
        yield store.at
