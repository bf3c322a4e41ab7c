"""Accumulators of reductions: states in registers, merged pairwise, closed into one number.

A sum of floats runs in short states, a few additions each, in several copies and lanes at once. Short states are added
up in a long state with the rounding error carried along (Knuth's two-sum), so the error of the whole is that of one
short run and does not grow with the length: below that of NumPy's pairwise sum. Other reductions need one state only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np

from pullback.codegen.casts import cast_lane
from pullback.codegen.elementary import extremum, integer_extremum
from pullback.codegen.lane import F16, Lane, element_type
from pullback.codegen.llvm import FunctionBuilder, V, const, lanes_of, vector_type, with_element
from pullback.codegen.scalars import Scalars
from pullback.ir.kernel import StoreKind
from pullback.ir.types import BOOL, F32, DType
from pullback.record import record

State = tuple[V, ...]
"""Parts of a short state: the number (re, im); of a float extremum the number and whether a NaN was met (of nanmax and
nanmin, whether a number was)."""

SHORT_RUN = 16
"""Turns that a short state runs, where there are many."""


@record(frozen=True)
class Long:
    """Merged short states: their sum and, from the second on, the rounding errors of adding them up."""

    total: State
    errors: State = ()


@record(frozen=True)
class Reducer:
    """How one store accumulates.

    kind : sum, prod, max, min, nanmax, nanmin, any, all
    dtype : of the result
    """

    kind: StoreKind
    dtype: DType

    @property
    def work_dtype(self) -> DType:
        """What is accumulated: float32 for float16."""
        return F32 if self.dtype == F16 else self.dtype

    @property
    def compensates(self) -> bool:
        """Does the long state carry rounding errors."""
        return self.kind == "sum" and self.dtype.kind in "fc"

    @property
    def _is_extremum(self) -> bool:
        """Is it a number and a flag that are carried."""
        return self.kind in ("max", "min", "nanmax", "nanmin") and self.dtype.kind == "f"

    @property
    def _skips_nan(self) -> bool:
        return self.kind in ("nanmax", "nanmin")

    def _flag(self, b: FunctionBuilder, x: V) -> V:
        """What decides about the result if it was met once: a NaN, or where NaN is skipped a number."""
        return b.fcmp("ord" if self._skips_nan else "uno", x, x)

    # ---------------------------------------------------------------- short states

    def identity(self, lanes: int) -> State:
        """The state of nothing."""
        type_ = vector_type(element_type(self.work_dtype), lanes)
        if self.kind == "sum":
            zero = const(type_, 0)
            return (zero, zero) if self.dtype.kind == "c" else (zero,)
        if self.kind == "prod":
            return (const(type_, 1), const(type_, 0)) if self.dtype.kind == "c" else (const(type_, 1),)
        if self._is_extremum:
            return const(type_, lowest_or_highest(self.kind, F32)), const(with_element(type_, "i1"), 0)
        return (const(type_, lowest_or_highest(self.kind, self.dtype)),)

    def first(self, s: Scalars, value: Lane) -> State:
        """The state of one value."""
        work = cast_lane(s.b, value, self.work_dtype)
        if not self._is_extremum:
            return work.parts
        nothing = self.identity(lanes_of(work.re.type))
        return self._extremum_step(s.b, nothing, work.re) if self._skips_nan else (work.re, self._flag(s.b, work.re))

    def step(self, s: Scalars, state: State, value: Lane, mask: V | None = None) -> State:
        """The state with one more value, in lanes where `mask` holds."""
        work = cast_lane(s.b, value, self.work_dtype)
        new = self._extremum_step(s.b, state, work.re) if self._is_extremum else self._combined(s, state, work.parts)
        if mask is None:
            return new
        return tuple(s.b.select(mask, after, before) for after, before in zip(new, state, strict=True))

    def _extremum_step(self, b: FunctionBuilder, state: State, x: V) -> State:
        best, met = state
        return self._better(b, best, x), b.or_(met, self._flag(b, x))

    def _better(self, b: FunctionBuilder, best: V, x: V) -> V:
        """Of zeros of both signs the later, but as in NumPy's loops of float16 and of fmax the earlier. A NaN that is
        skipped never gets in; what becomes of one that wins does not matter, for the flag knows."""
        predicate = "ogt" if self.kind in ("max", "nanmax") else "olt"
        if self._skips_nan or self.dtype == F16:
            return b.select(b.fcmp(predicate, x, best), x, best)
        return b.select(b.fcmp(predicate, best, x), best, x)

    def merge(self, s: Scalars, one: State, other: State) -> State:
        """Both states in one."""
        if not self._is_extremum:
            return self._combined(s, one, other)
        return self._better(s.b, one[0], other[0]), s.b.or_(one[1], other[1])

    def merge_all(self, s: Scalars, states: Sequence[State]) -> State:
        """All states in one, pairwise."""
        rest = list(states)
        while len(rest) > 1:
            pairs = [self.merge(s, rest[i], rest[i + 1]) for i in range(0, len(rest) - 1, 2)]
            rest = pairs + rest[len(pairs) * 2 :]
        return rest[0]

    def _combined(self, s: Scalars, one: State, other: State) -> State:
        lane = combine(s, self.kind, Lane(self.work_dtype, *one), Lane(self.work_dtype, *other))
        return lane.parts

    # ---------------------------------------------------------------- long states

    def add_long(self, s: Scalars, long: Long | None, short: State) -> Long:
        """The long state with one more short one; None is empty."""
        if long is None:
            return Long(short)
        if not self.compensates:
            return Long(self.merge(s, long.total, short))
        old_errors = long.errors or tuple(const(part.type, 0.0) for part in long.total)
        totals, errors = [], []
        for total, x, error in zip(long.total, short, old_errors, strict=True):
            new, lost = _two_sum(s.b, total, x)
            totals.append(new)
            errors.append(s.b.fadd(error, lost))
        return Long(tuple(totals), tuple(errors))

    def merge_long(self, s: Scalars, one: Long | None, other: Long | None) -> Long | None:
        """Both long states in one."""
        if one is None or other is None:
            return one or other
        merged = self.add_long(s, one, other.total)
        if not other.errors:
            return merged
        return Long(merged.total, tuple(s.b.fadd(x, y) for x, y in zip(merged.errors, other.errors, strict=True)))

    def carried(self, long: Long | None, lanes: int) -> State:
        """The parts of a long state in full, for a loop to carry."""
        total = long.total if long else self.identity(lanes)
        if not self.compensates:
            return total
        return total + ((long.errors if long else ()) or tuple(const(part.type, 0.0) for part in total))

    def uncarried(self, parts: State) -> Long:
        """The long state of `carried` parts."""
        if not self.compensates:
            return Long(parts)
        half = len(parts) // 2
        return Long(parts[:half], parts[half:])

    def carried_width(self) -> int:
        """Number of carried parts."""
        return len(self.carried(None, 1))

    # ---------------------------------------------------------------- results

    def close(self, s: Scalars, long: Long | None, lanes: int, across: bool) -> Lane:
        """The reduced number: with `across` one for all lanes, else one for each."""
        state = self.identity(lanes) if long is None else self._corrected(s.b, long)
        if across:
            while lanes_of(state[0].type) > 1:
                state = self._halved(s, state)
        if self._is_extremum:
            best, met = state
            number = s.b.select(met, best, nan) if self._skips_nan else s.b.select(met, nan, best)
            return cast_lane(s.b, Lane(self.work_dtype, number), self.dtype)
        return cast_lane(s.b, Lane(self.work_dtype, *state), self.dtype)

    @staticmethod
    def _corrected(b: FunctionBuilder, long: Long) -> State:
        """Totals plus errors, where that is a number: an infinite total has a NaN beside it."""
        if not long.errors:
            return long.total
        parts = []
        for total, error in zip(long.total, long.errors, strict=True):
            better = b.fadd(total, error)
            useful = b.fcmp("one", error, 0.0)  # false for NaN
            parts.append(b.select(useful, better, total))
        return tuple(parts)

    def _halved(self, s: Scalars, state: State) -> State:
        lanes = lanes_of(state[0].type) // 2
        low = tuple(_lanes_from(s.b, part, 0, lanes) for part in state)
        high = tuple(_lanes_from(s.b, part, lanes, lanes) for part in state)
        return self.merge(s, low, high)


def combine(s: Scalars, kind: StoreKind, one: Lane, other: Lane) -> Lane:
    """Two partial results in one."""
    dtype = one.dtype
    match kind:
        case "sum" if dtype != BOOL:
            return s.binary("add", one, other)
        case "prod" if dtype != BOOL:
            return s.binary("mul", one, other)
        case "any" | "sum":
            return Lane(dtype, s.b.or_(one.re, other.re))
        case "all" | "prod":
            return Lane(dtype, s.b.and_(one.re, other.re))
    larger = kind in ("max", "nanmax")
    if kind in ("nanmax", "nanmin"):
        return s.math("fmax" if larger else "fmin", one, other)
    if dtype == BOOL:
        return Lane(dtype, s.b.or_(one.re, other.re) if larger else s.b.and_(one.re, other.re))
    if dtype.kind == "f" and dtype != F16:
        return Lane(dtype, extremum(s.b, "ogt" if larger else "olt", one.re, other.re))
    if dtype.kind in "iu":
        return Lane(dtype, integer_extremum(s.b, dtype, larger, one.re, other.re))
    return s.math("maximum" if larger else "minimum", other, one)  # of float16: the earlier zero


def lowest_or_highest(kind: StoreKind, dtype: DType) -> float:
    """The identity of an extremum, or of `any` and `all`."""
    if dtype == BOOL:
        return int(kind in ("min", "all"))
    if dtype.kind == "f":
        return -inf if kind in ("max", "nanmax") else inf
    limits = np.iinfo(dtype)
    return int(limits.min if kind == "max" else limits.max)


def identity_number(kind: StoreKind, dtype: DType) -> float:
    """The result of reducing nothing. NumPy's sums begin with 0.0, so that a sum of -0.0 is 0.0."""
    if kind == "sum":
        return 0
    if kind in ("nanmax", "nanmin"):
        return nan
    return 1 if kind == "prod" else lowest_or_highest(kind, dtype)


def alone(s: Scalars, kind: StoreKind, value: Lane) -> Lane:
    """The result of reducing one value."""
    return s.binary("add", value, s.constant(value, 0)) if kind == "sum" and value.dtype.kind in "fc" else value


def _two_sum(b: FunctionBuilder, x: V, y: V) -> tuple[V, V]:
    total = b.fadd(x, y)
    of_y = b.fsub(total, x)
    of_x = b.fsub(total, of_y)
    return total, b.fadd(b.fsub(x, of_x), b.fsub(y, of_y))


def _lanes_from(b: FunctionBuilder, x: V, start: int, count: int) -> V:
    if count == 1:
        return b.extract(x, start)
    return b.shuffle(x, x, range(start, start + count))
