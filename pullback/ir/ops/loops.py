"""Loops: `scan` (a known number of turns, or one known when it starts) and `while`.

Both carry values from turn to turn. A loop whose number of turns is not static keeps what it stacks in tapes: i64[]
handles, one record a turn. The reverse of a `while` is a dynamic `scan` over its tapes, and the reverse of that is one
again.
"""

from collections.abc import Sequence

import numpy as np

from pullback.errors import TypeRuleError
from pullback.ir.graph import Attrs, Op, Region, Value
from pullback.ir.opdef import PLAIN, Array, Control, OpDef, RunRegion, Structured, Types
from pullback.ir.ops.common import words
from pullback.ir.ops.control import structured_batch
from pullback.ir.tape import read_tape, write_tape
from pullback.ir.types import BOOL, I64, TensorType, tensor_type

HANDLE = tensor_type(I64, ())
FLAG = tensor_type(BOOL, ())


def types_of(values: Sequence[Value]) -> tuple[TensorType, ...]:
    return tuple(v.type for v in values)


def _fits(name: str, what: str, found: Types, expected: Types) -> None:
    if tuple(found) != tuple(expected):
        raise TypeRuleError(f"{name}: {what} {words(found) or 'nothing'}, expected {words(expected) or 'nothing'}")


# ------------------------------------------------------------------ scan


def scan_parts(op: Op) -> tuple[Value | None, tuple[Value, ...], tuple[Value, ...], tuple[Value, ...]]:
    """The operands of a scan: run-time count (or None), carries, scanned, constants."""
    first = 1 if op.attrs["length"] < 0 else 0
    carries = first + op.attrs["carries"]
    scanned = carries + op.attrs["scanned"]
    count = op.operands[0] if first else None
    return count, op.operands[first:carries], op.operands[carries:scanned], op.operands[scanned:]


def _scan_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    (body,) = regions
    length, carries, scanned = attrs["length"], attrs["carries"], attrs["scanned"]
    given = tuple(types)
    if length < 0:
        _fits("scan", "the run-time number of turns is", given[:1], (HANDLE,))
        given = given[1:]
    params, results = types_of(body.params), types_of(body.results)
    _fits("scan", "the carries start as", given[:carries], params[:carries])
    _fits("scan", "the body gives carries", results[:carries], params[:carries])
    slices = params[carries : carries + scanned]
    rows = (HANDLE,) * scanned if length < 0 else tuple(t.with_shape((length, *t.shape)) for t in slices)
    _fits("scan", "the scanned operands are", given[carries : carries + scanned], rows)
    _fits("scan", "the constants are", given[carries + scanned :], params[carries + scanned :])
    stacked = results[carries:]
    wide = tuple(HANDLE if length < 0 else t.with_shape((length, *t.shape)) for t in stacked)
    return (*params[:carries], *wide)


def _scan_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    (body,), length, carries = op.regions, op.attrs["length"], op.attrs["carries"]
    dynamic = length < 0
    turns = int(args[0]) if dynamic else length
    rest = list(args[1:] if dynamic else args)
    carry, scanned, constants = _split(rest, carries, op.attrs["scanned"])
    rows: Sequence[Sequence[Array] | Array] = scanned
    if dynamic:
        given = types_of(body.params[carries : carries + len(scanned)])
        rows = [read_tape(a, turns, np.zeros(t.shape, t.dtype)) for a, t in zip(scanned, given, strict=True)]
    stacked: list[list[Array]] = [[] for _ in body.results[carries:]]
    order = range(turns - 1, -1, -1) if op.attrs["reverse"] else range(turns)
    for turn in order:
        results = run(body, [*carry, *(np.asarray(r[turn]) for r in rows), *constants])
        carry = list(results[:carries])
        for column, value in zip(stacked, results[carries:], strict=True):
            column.append(value)
    if op.attrs["reverse"]:
        stacked = [column[::-1] for column in stacked]
    if dynamic:
        return (*carry, *(write_tape(column) for column in stacked))
    types = [r.type for r in op.results[carries:]]
    wide = [np.array(c, t.dtype).reshape(t.shape) for c, t in zip(stacked, types, strict=True)]
    return (*carry, *wide)


def _split(values: list[Array], carries: int, scanned: int) -> tuple[list[Array], list[Array], list[Array]]:
    return values[:carries], values[carries : carries + scanned], values[carries + scanned :]


SCAN = OpDef(
    name="scan",
    arity=None,
    attrs={"carries": "int", "scanned": "int", "length": "int", "reverse": "bool"},
    infer=_scan_infer,
    evaluate=_scan_evaluate,
    numpy=(),
    derivative=Structured(
        "passes.loops: residuals stacked, or recomputed from checkpoints; the reverse is a scan the other way"
    ),
    batch=structured_batch,
    lower=Control("scan"),
    algebra=PLAIN,
    doc="`length` turns of the body, which takes carries, one row of each scanned operand, and constants, and gives "
    "the next carries and rows to stack. Operands: carries, scanned, constants. With length -1 the number of turns is "
    "a first operand (i64[]) and scanned and stacked values are tapes; handle 0 is a tape of zeros. `reverse` runs "
    "from the last row to the first.",
    regions=("body",),
)


# ------------------------------------------------------------------ while


def _while_infer(types: Types, attrs: Attrs, regions: tuple[Region, ...]) -> tuple[TensorType, ...]:
    condition, body = regions
    carries = attrs["carries"]
    given = tuple(types)
    _fits("while", "the condition takes", types_of(condition.params), given)
    _fits("while", "the condition gives", types_of(condition.results), (FLAG,))
    _fits("while", "the body takes", types_of(body.params), given)
    results = types_of(body.results)
    _fits("while", "the body gives carries", results[:carries], given[:carries])
    taped = len(results) - carries
    return (*given[:carries], *((HANDLE,) * (1 + taped) if taped else ()))


def _while_evaluate(op: Op, args: Sequence[Array], run: RunRegion) -> tuple[Array, ...]:
    condition, body = op.regions
    carries = op.attrs["carries"]
    carry, constants = list(args[:carries]), list(args[carries:])
    columns: list[list[Array]] = [[] for _ in body.results[carries:]]
    turns = 0
    while bool(run(condition, [*carry, *constants])[0]):
        results = run(body, [*carry, *constants])
        carry = list(results[:carries])
        for column, value in zip(columns, results[carries:], strict=True):
            column.append(value)
        turns += 1
    if not columns:
        return tuple(carry)
    return (*carry, np.asarray(turns, np.int64), *(write_tape(c) for c in columns))


WHILE = OpDef(
    name="while",
    arity=None,
    attrs={"carries": "int", "most": "int"},
    infer=_while_infer,
    evaluate=_while_evaluate,
    numpy=(),
    derivative=Structured("passes.loops: the body is taped, the reverse is a dynamic scan over the tapes"),
    batch=structured_batch,
    lower=Control("while"),
    algebra=PLAIN,
    doc="The body as long as the condition holds. Operands: carries, constants; both regions take all of them, the "
    "body gives the next carries. What it gives behind them is taped: then the results go on with the number of turns "
    "and one tape each. `most` is a bound of the number of turns, for which tapes have room; 0: none is known.",
    regions=("cond", "body"),
)

LOOPS = (SCAN, WHILE)
