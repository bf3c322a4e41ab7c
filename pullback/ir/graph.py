"""The graph: values, ops, regions, functions, modules.

A graph does not change once built: a pass walks the ops in order and emits a new function (`ir.builder`).
Each region is isolated: its ops see its own parameters and nothing of the region around it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from pullback.ir.types import TensorType
from pullback.record import record

if TYPE_CHECKING:
    from pullback.ir.opdef import OpDef


class Location(NamedTuple):
    """The user's source line an op comes from; `note` says what a pass made of it ("adjoint")."""

    file: str
    line: int
    function: str = ""
    note: str = ""

    def with_note(self, note: str) -> "Location":
        return self if self.note == note else self._replace(note=note)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" + (f" {self.function}" if self.function else "")
        return f"{self.note}, {place}" if self.note else place


class Literal:
    """The value of a `constant`: a read-only array, hashed and compared by dtype, shape and bytes (so -0.0 is not
    0.0)."""

    __slots__ = ("_key", "array")

    array: np.ndarray[Any, Any]

    def __init__(self, array: object) -> None:
        copy = np.array(array, order="C")
        copy.flags.writeable = False
        self.array = copy
        self._key: tuple[object, ...] | None = None

    def key(self) -> tuple[object, ...]:
        if self._key is None:
            self._key = (self.array.dtype, self.array.shape, self.array.tobytes())
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        return f"Literal({self.array!r})"


class Attrs(dict[str, Any]):
    """Attributes of an op: a dictionary that nobody may write to, of hashable values."""

    __slots__ = ()

    def _frozen(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the attributes of an op are frozen; emit a new op instead")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _frozen

    def key(self) -> tuple[tuple[str, Any], ...]:
        """A hashable form: equal for equal attributes whatever their order."""
        return tuple(sorted(self.items()))


NO_ATTRS = Attrs()


class Value:
    """One SSA value. Identity is equality. `op` is None for a parameter of a region."""

    __slots__ = ("hint", "index", "op", "type")

    type: TensorType
    op: "Op | None"
    index: int
    hint: str

    def __init__(self, type: TensorType, op: "Op | None" = None, index: int = 0, hint: str = "") -> None:
        self.type = type
        self.op = op
        self.index = index
        self.hint = hint

    def __repr__(self) -> str:
        made = self.op.name if self.op is not None else "parameter"
        return f"<{self.hint or made}.{self.index}: {self.type}>"


class Op:
    """One operation: its record, operands, attributes, results, regions and the user's line."""

    __slots__ = ("attrs", "loc", "opdef", "operands", "regions", "results")

    opdef: "OpDef"
    operands: tuple[Value, ...]
    attrs: Attrs
    results: tuple[Value, ...]
    regions: "tuple[Region, ...]"
    loc: Location | None

    def __init__(
        self,
        opdef: "OpDef",
        operands: tuple[Value, ...],
        attrs: Attrs,
        types: tuple[TensorType, ...],
        regions: "tuple[Region, ...]" = (),
        loc: Location | None = None,
    ) -> None:
        self.opdef = opdef
        self.operands = operands
        self.attrs = attrs
        self.results = tuple([Value(t, self, i) for i, t in enumerate(types)])
        self.regions = regions
        self.loc = loc

    @property
    def name(self) -> str:
        return self.opdef.name

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def __repr__(self) -> str:
        return f"<op {self.name} at {self.loc or 'no source line'}>"


@record(frozen=True, eq=False)
class Region:
    """Parameters, ops in an order where each follows what it reads, and the values handed out at the end."""

    params: tuple[Value, ...]
    ops: tuple[Op, ...]
    results: tuple[Value, ...]

    def uses(self) -> dict[Value, list[tuple[Op, int]]]:
        """For each value that is read, the (op, operand number) pairs that read it; region results are not uses."""
        table: dict[Value, list[tuple[Op, int]]] = {}
        for op in self.ops:
            for number, operand in enumerate(op.operands):
                table.setdefault(operand, []).append((op, number))
        return table


@record(frozen=True, eq=False)
class Function:
    """A named region with the stage it is in: `traced`, `optimised` or `planned`."""

    name: str
    body: Region
    stage: str = "traced"
    source: Location | None = None

    @property
    def params(self) -> tuple[Value, ...]:
        return self.body.params

    @property
    def ops(self) -> tuple[Op, ...]:
        return self.body.ops

    @property
    def results(self) -> tuple[Value, ...]:
        return self.body.results

    @property
    def param_types(self) -> tuple[TensorType, ...]:
        return tuple(p.type for p in self.body.params)

    @property
    def result_types(self) -> tuple[TensorType, ...]:
        return tuple(r.type for r in self.body.results)

    def with_stage(self, stage: str) -> "Function":
        return replace(self, stage=stage)

    def with_name(self, name: str) -> "Function":
        return replace(self, name=name)


@record(frozen=True)
class Module:
    """Functions by name, in order."""

    functions: Mapping[str, Function] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions.values())


def walk(region: Region) -> Iterator[Op]:
    """Every op of `region` and of the regions inside it, outer ops first; no recursion."""
    stack: list[Iterator[Op]] = [iter(region.ops)]
    while stack:
        op = next(stack[-1], None)
        if op is None:
            stack.pop()
            continue
        yield op
        stack.extend(iter(inner.ops) for inner in reversed(op.regions))
