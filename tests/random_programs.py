"""Random well-typed functions over all ops, and how closely two evaluations of one must agree.

Every property test draws its programs here: text round trip, passes keep results, native equals interpreter.
`random_function(seed)` gives the same function in every process; `functions()` is the hypothesis strategy, which
shrinks a failure to few ops. Programs have constants, regions, empty and 0-d arrays, repeated operands and dead ops.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from hypothesis import strategies as st

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Attrs, Function, Location, Region, Value
from pullback.ir.opdef import Scalar
from pullback.ir.ops import ALL_OPS, OPS
from pullback.ir.types import BOOL, F64, I64, TensorType, tensor_type
from pullback.passes.numbers import sample, sample_special

Array = np.ndarray[Any, Any]
DTYPES = tuple(np.dtype(d) for d in ("f8", "f8", "f8", "f4", "i8", "i4", "u1", "?", "c16", "f2"))
LENGTHS = (1, 2, 3, 3, 4, 5)
NOT_GENERATED = {
    **dict.fromkeys(("kernel", "rows"), "made by fusion only"),
    **dict.fromkeys(("index", "within", "load_at"), "lives in the body of a kernel"),
    **dict.fromkeys(("eig", "eigvals"), "the order of its results jumps where eigenvalues meet"),
    "complement": "its result is any basis of a space, so programs of it have no derivative",
}


# ------------------------------------------------------------------ where choices come from


class Choices(Protocol):
    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        ...


class Seeded:
    """Choices of a pseudo-random generator."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


class Drawn:
    """Choices of hypothesis, which tries smaller ones when a test fails."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))


# ------------------------------------------------------------------ the generator


class Generator:
    """Builds one region. `pool` holds the values that ops may read."""

    def __init__(self, choices: Choices, ops: Sequence[str], dtypes: Sequence[np.dtype[Any]], depth: int) -> None:
        self.choices = choices
        self.ops = ops
        self.dtypes = dtypes
        self.depth = depth
        self.f = Emitter(Builder(), OPS)
        self.pool: list[Expr] = []
        self.counted = 0
        self._read: set[Value] = set()

    # -------------------------------------------------------------- small choices

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.choices.integer(0, len(items) - 1)]

    def chance(self, percent: int) -> bool:
        return self.choices.integer(1, 100) <= percent

    def subset(self, items: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(item for item in items if self.chance(50))

    def shape(self, most: int = 3) -> tuple[int, ...]:
        if self.chance(3):
            return (0, self.pick(LENGTHS))[: self.choices.integer(1, 2)]
        return tuple(self.pick(LENGTHS) for _ in range(self.choices.integer(0, most)))

    def type(self) -> TensorType:
        return tensor_type(self.pick(self.dtypes), self.shape())

    # -------------------------------------------------------------- operands

    def param(self, type: TensorType) -> Expr:
        value = self.f.wrap(self.f.b.param(type, f"x{len(self.f.b.params)}"))
        self.pool.append(value)
        return value

    def where(self, fits: Callable[[TensorType], bool]) -> Expr | None:
        """A value of the pool whose type fits; late and unread ones more often, so that programs get deep and live."""
        found = [v for v in self.pool if fits(v.type)]
        if not found:
            return None
        unread = [v for v in found if v.value not in self.read()]
        if unread and self.chance(60):
            return unread[self.choices.integer(0, len(unread) - 1)]
        return found[max(self.choices.integer(0, len(found) - 1) for _ in range(3))]

    def like(self, type: TensorType) -> Expr:
        """A value of just this type: one of the pool, or a constant, repeated or not, or an iota."""
        found = self.where(lambda t: t == type)
        if found is not None and self.chance(85):
            return found
        if self.chance(50) or type.size == 0:
            return self.f.full(type, self.pick((0, 1, 2, 1, 0, -1 if type.dtype.kind in "ifc" else 3)))
        if type.ndim and type.dtype.kind in "iuf" and self.chance(20):
            return self.f.op("iota", type=type, axis=self.choices.integer(0, type.ndim - 1))
        rng = np.random.default_rng(self.choices.integer(0, 99))
        return self.f.constant(np.round(sample(type, rng), 3) if type.dtype.kind in "fc" else sample(type, rng))

    def floating(self, kinds: str = "f", ndim: int = 0) -> Expr:
        """A floating value of at least `ndim` axes."""
        found = self.where(lambda t: t.dtype.kind in kinds and t.ndim >= ndim)
        return self.like(tensor_type(F64, (3, 2, 4)[:ndim])) if found is None else found

    def any_value(self, fits: Callable[[TensorType], bool] = lambda t: True) -> Expr:
        found = self.where(fits)
        return self.like(tensor_type(F64, (3,))) if found is None else found

    def indices(self, n: int) -> Expr:
        """i64 in 0..n-1."""
        found = self.where(lambda t: t.dtype == I64 and t.ndim <= 2)
        idx = self.like(tensor_type(I64, self.shape(1))) if found is None else found
        return self.f.mod(idx, self.f.full_like(idx, n))

    # -------------------------------------------------------------- steps

    def step(self) -> None:
        name = self.pick(self.ops)
        if name in ("if", "checkpoint", "scan", "while") and self.depth == 0:
            name = "mul"
        self.f.b.loc = Location("random.py", len(self.f.b.ops) + 1, "f")
        maker = MAKERS.get(name, _elementwise)
        self.pool.extend(maker(self, name))

    def results(self, count: int) -> list[Value]:
        """Values that nothing reads yet, so that little of the program is dead; else any."""
        unread = [v for v in self.pool if v.value not in self.read()]
        return [self.pick(unread if unread and self.chance(90) else self.pool).value for _ in range(count)]

    def read(self) -> set[Value]:
        """Values that an op reads."""
        for op in self.f.b.ops[self.counted :]:
            self._read.update(op.operands)
        self.counted = len(self.f.b.ops)
        return self._read

    def inner(self) -> "Generator":
        """A generator for a region of an op of this one."""
        return Generator(self.choices, self.ops, self.dtypes, self.depth - 1)


Made = Sequence[Expr]


def _domain(g: Generator, name: str, x: Expr) -> Expr:
    """`x` brought to where the function is finite and moderate, mostly."""
    if x.dtype.kind not in "f" or g.chance(20):
        return x
    f = g.f
    if name in ("log", "log2", "log10", "sqrt", "lgamma", "digamma", "polygamma", "pow"):
        return f.abs(x) + 0.5
    if name in ("arcsin", "arccos", "arctanh", "log1p"):
        return f.tanh(x) * 0.75
    if name == "arccosh":
        return f.abs(x) + 1.25
    if name in ("exp", "exp2", "expm1", "sinh", "cosh", "tan"):
        return f.sin(x)
    return x


def _elementwise(g: Generator, name: str) -> Made:
    record = OPS[name]
    lowest = {"polygamma": 1, "integer_pow": -2}.get(name, 0)
    attrs = {key: g.choices.integer(lowest, 3) for key in record.attrs}
    arity = record.arity or 1

    def fits(t: TensorType) -> bool:
        if t.dtype.kind in "iu" and attrs.get("n", 0) < 0:
            return False
        try:
            record.infer([t] * arity, Attrs(attrs), ())
        except Exception:
            return False
        return name != "complex" or t.dtype.itemsize >= 4

    found = g.where(fits)
    if found is None:
        kinds = [t for t in (F64, I64, BOOL, np.dtype("c16")) if fits(tensor_type(t, (3,)))]
        found = g.like(tensor_type(g.pick(kinds), (3,)))
    operands = [_domain(g, name, found), *(g.like(found.type) for _ in range(arity - 1))]
    if name == "pow" and found.dtype.kind == "f":
        operands[1] = g.f.sin(operands[1])
    if name in ("left_shift", "right_shift"):
        operands[1] = operands[1] & g.f.full_like(operands[1], 3)
    return [g.f.op(name, *operands, **attrs)]


def _select(g: Generator, name: str) -> Made:
    x = g.any_value()
    return [g.f.select(g.like(x.type.with_dtype(BOOL)), x, g.like(x.type))]


def _cast(g: Generator, name: str) -> Made:
    x, target = g.any_value(), g.pick(g.dtypes)
    f = g.f
    if target.kind in "iu" and x.dtype.kind in "fc":  # beyond the range of the integers the machine decides
        x = f.real(x) if x.dtype.kind == "c" else x
        x = f.select(f.isnan(x), f.zeros_like(x), f.clip(x, f.full_like(x, 0.0), f.full_like(x, 100.0)))
    return [f.cast(x, dtype=target)]


def _source(g: Generator, name: str) -> Made:
    type = g.type()
    if name == "iota" and type.ndim and type.dtype.kind in "iuf":
        return [g.f.op("iota", type=type, axis=g.choices.integer(0, type.ndim - 1))]
    return [g.f.constant(sample(type, np.random.default_rng(g.choices.integer(0, 99))))]


# ------------------------------------------------------------------ views


def _broadcast(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim < 3)
    shape, dims = list(x.shape), list(range(x.ndim))
    for _ in range(g.choices.integer(0, 3 - min(x.ndim, 3))):
        at = g.choices.integer(0, len(shape))
        shape.insert(at, g.pick(LENGTHS))
        dims = [d + (d >= at) for d in dims]
    return [g.f.broadcast(x, dims=tuple(dims), shape=tuple(shape))]


def _reshape(g: Generator, name: str) -> Made:
    x = g.any_value()
    if g.chance(50):
        at = g.choices.integer(0, x.ndim)
        return [g.f.reshape(x, shape=(*x.shape[:at], 1, *x.shape[at:]))]
    return [g.f.reshape(x, shape=(x.type.size,))]


def _transpose(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 2)
    axes, perm = list(range(x.ndim)), list[int]()
    while axes:
        perm.append(axes.pop(g.choices.integer(0, len(axes) - 1)))
    return [g.f.transpose(x, perm=tuple(perm))]


def _reverse(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 1)
    return [g.f.reverse(x, axes=g.subset(range(x.ndim)))]


def _bounds(g: Generator, shape: Sequence[int]) -> dict[str, tuple[int, ...]]:
    starts, stops, steps = [], [], []
    for n in shape:
        starts.append(g.choices.integer(0, n))
        stops.append(g.choices.integer(min(starts[-1] + 1, n), n))
        steps.append(g.pick((1, 1, 2, 3)))
    return {"start": tuple(starts), "stop": tuple(stops), "step": tuple(steps)}


def _slice(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 1)
    return [g.f.slice(x, **_bounds(g, x.shape))]


def _update(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 1)
    bounds = _bounds(g, x.shape)
    taken = g.f.slice(x, **bounds)
    return [g.f.update(x, g.like(taken.type), **bounds)]


def _pad(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 1 and t.size <= 60)
    low, high, interior = (tuple(g.pick((0, 0, 1, 2)) for _ in x.shape) for _ in range(3))
    return [g.f.pad(x, low=low, high=high, interior=interior)]


def _concatenate(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 1 and t.size <= 60)
    if x.ndim == 0:
        return []
    axis = g.choices.integer(0, x.ndim - 1)
    pieces = [x] + [g.like(x.type) for _ in range(g.choices.integer(0, 2))]
    return [g.f.concatenate(*pieces, axis=axis)]


# ------------------------------------------------------------------ reductions, indexing, products, sorting


def _reduction(g: Generator, name: str) -> Made:
    kinds = {"any": "b", "all": "b", "sum": "iufc", "prod": "iufc", "nanmax": "f", "nanmin": "f"}.get(name, "biuf")
    x = g.where(lambda t: t.dtype.kind in kinds and (t.size > 0 or name[-3:] not in ("max", "min")))
    if x is None:
        x = g.like(tensor_type(BOOL if kinds == "b" else F64, (3, 2)))
    attrs = {"ties": "equal"} if name[-3:] in ("max", "min") else {}
    return [g.f.op(name, x, axes=g.subset(range(x.ndim)), **attrs)]


def _along(g: Generator, name: str) -> Made:
    kinds = "iuf" if name[:3] in ("cum", "arg") else "biuf"
    x = g.where(lambda t: t.ndim >= 1 and t.dtype.kind in kinds and 0 not in t.shape)
    x = g.like(tensor_type(F64, (4,))) if x is None else x
    axis = g.choices.integer(0, x.ndim - 1)
    if name == "sort":
        others = [g.f.op("iota", type=x.type.with_dtype(I64), axis=axis)] if g.chance(50) else []
        return g.f.ops_of("sort", x, *others, axis=axis)
    attrs = {"reverse": g.chance(40)} if name.startswith("cum") else {}
    return [g.f.op(name, x, axis=axis, **attrs)]


def _gather(g: Generator, name: str) -> Made:
    x = g.any_value(lambda t: t.ndim >= 1 and t.size <= 60 and 0 not in t.shape)
    if x.ndim == 0:
        return []
    axis = g.choices.integer(0, x.ndim - 1)
    return [g.f.gather(x, g.indices(x.shape[axis]), axis=axis)]


def _scatter(g: Generator, name: str) -> Made:
    kinds = "iufc" if name == "scatter_add" else "biufc"
    x = g.where(lambda t: t.ndim >= 1 and t.size <= 60 and 0 not in t.shape and t.dtype.kind in kinds)
    if x is None:
        return []
    axis = g.choices.integer(0, x.ndim - 1)
    idx = g.indices(x.shape[axis])
    updates = g.like(x.type.with_shape((*x.shape[:axis], *idx.shape, *x.shape[axis + 1 :])))
    return [g.f.op(name, x, idx, updates, axis=axis)]


def _dot_general(g: Generator, name: str) -> Made:
    x = g.where(lambda t: t.dtype.kind in "iufc" and t.ndim <= 3)
    x = g.like(tensor_type(F64, (3, 2))) if x is None else x
    axes = list(range(x.ndim))
    batch = tuple(g.subset(axes[:1]))
    contract = tuple(g.subset([a for a in axes if a not in batch]))
    shared = [x.shape[a] for a in (*batch, *contract)]
    free = [g.pick(LENGTHS) for _ in range(g.choices.integer(0, 1))]
    order = list(range(len(shared) + len(free)))
    if g.chance(50):
        order.reverse()
    y = g.like(x.type.with_shape(tuple([*shared, *free][k] for k in order)))
    place = [order.index(k) for k in range(len(shared))]
    return [
        g.f.dot_general(
            x, y, contract=(contract, tuple(place[len(batch) :])), batch=(batch, tuple(place[: len(batch)]))
        )
    ]


# ------------------------------------------------------------------ linear algebra on well-conditioned matrices


def _matrix(g: Generator) -> Expr:
    """A square matrix near diag(2, 3, 4): no division by nearly zero, singular values apart."""
    f, x = g.f, g.floating()
    wide = np.dtype("f8") if x.dtype.itemsize != 4 else x.dtype
    scalar = f.reshape(f.astype(x, wide), shape=(x.type.size,))
    n = min(3, x.type.size)
    noise = f.tanh(f.slice(scalar, start=(0,), stop=(n,), step=(1,))) * 0.1
    noise = f.select(f.isnan(noise), f.zeros_like(noise), noise)
    diagonal = f.constant(np.diag(np.arange(2.0, 2.0 + n)).astype(wide))
    return diagonal + f.broadcast(noise, dims=(0,), shape=(n, n)) * f.broadcast(f.sin(noise), dims=(1,), shape=(n, n))


def _linalg(g: Generator, name: str) -> Made:
    f, a = g.f, _matrix(g)
    if name in ("cholesky", "eigh"):
        a = (a + f.transpose(a, perm=(1, 0))) * 0.5
    if name in ("solve", "triangular_solve"):
        b = g.like(a.type.with_shape((a.shape[0], 2)))
        attrs = {"trans": g.pick(("N", "T"))} | ({"lower": g.chance(50)} if name == "triangular_solve" else {})
        return [f.op(name, a, b, **attrs)]
    return f.ops_of(name, a, **({"lower": g.chance(50)} if name == "eigh" else {}))


def _fft(g: Generator, name: str) -> Made:
    x = g.where(lambda t: t.dtype.kind == "c" and t.ndim >= 1 and 0 not in t.shape)
    x = g.like(tensor_type(np.dtype("c16"), (4,))) if x is None else x
    return [g.f.op(name, x, inverse=g.chance(50))]


# ------------------------------------------------------------------ effects and regions


def _true(g: Generator, shape: tuple[int, ...] | None = None) -> Expr:
    """Something that is always true, but not at first sight."""
    p = g.where(lambda t: t.dtype == BOOL and (shape is None or t.shape == shape))
    p = g.like(tensor_type(BOOL, shape or ())) if p is None else p
    return p | ~p


def _effect(g: Generator, name: str) -> Made:
    if name == "guard":
        attrs = Attrs(index=len(g.f.b.ops), expected=1)
        g.f.b.add(OPS["guard"], [_true(g, ()).value], attrs)
    else:
        g.f.b.add(OPS["check"], [_true(g).value], Attrs(message="always true", code=7))
    return []


def _region(inner: Generator, types: Sequence[TensorType], results: Sequence[TensorType] | None, size: int) -> Region:
    """A region on parameters of `types`; it gives `results`, or values of its choice."""
    for t in types:
        inner.param(t)
    for _ in range(size):
        inner.step()
    given = inner.results(inner.choices.integer(1, 3)) if results is None else [inner.like(t).value for t in results]
    return inner.f.b.region(given)


def _passed(g: Generator, most: int) -> list[Expr]:
    return [g.pick(g.pool) for _ in range(g.choices.integer(1, most))] if g.pool else [g.like(tensor_type(F64))]


def _add(g: Generator, name: str, operands: Sequence[Expr], regions: tuple[Region, ...], **attrs: Any) -> Made:
    op = g.f.b.add(OPS[name], [v.value for v in operands], Attrs(attrs), regions)
    return [g.f.wrap(r) for r in op.results]


def _if(g: Generator, name: str) -> Made:
    operands = _passed(g, 4)
    types = [v.type for v in operands]
    then = _region(g.inner(), types, None, g.choices.integer(0, 4))
    other = _region(g.inner(), types, [r.type for r in then.results], g.choices.integer(0, 4))
    return _add(g, "if", [g.like(tensor_type(BOOL)), *operands], (then, other))


def _checkpoint(g: Generator, name: str) -> Made:
    operands = _passed(g, 4)
    body = _region(g.inner(), [v.type for v in operands], None, g.choices.integer(0, 4))
    return _add(g, "checkpoint", operands, (body,), again=g.chance(50))


def _scan(g: Generator, name: str) -> Made:
    n = g.choices.integer(0, 3)
    carries, constants = _passed(g, 2), _passed(g, 2)
    rows = [g.like(v.type.with_shape((n, *v.shape))) for v in _passed(g, 2) if v.ndim < 3]
    inner = g.inner()
    carried = [v.type for v in carries]
    types = [*carried, *(v.type.with_shape(v.shape[1:]) for v in rows), *(v.type for v in constants)]
    body = _region(inner, types, carried, g.choices.integer(0, 4))
    stacked = inner.results(g.choices.integer(0, 2))
    body = Region(body.params, body.ops, (*body.results, *stacked))
    attrs = {"carries": len(carries), "scanned": len(rows), "length": n, "reverse": g.chance(50)}
    return _add(g, "scan", [*carries, *rows, *constants], (body,), **attrs)


def _while(g: Generator, name: str) -> Made:
    """i = 0; while i < n: ...; i += 1, beside carries and constants."""
    f, counter = g.f, tensor_type(I64)
    turns = g.choices.integer(0, 3)
    carries, constants = _passed(g, 2), _passed(g, 2)
    operands = [f.full(counter, 0), *carries, *constants, f.full(counter, turns)]
    types = [v.type for v in operands]
    cond, body = Emitter(Builder(), OPS), g.inner()
    params = [cond.wrap(cond.b.param(t)) for t in types]
    condition = cond.b.region([(params[0] < params[-1]).value])
    region = _region(body, types, [v.type for v in carries], g.choices.integer(0, 4))
    count = body.f.wrap(region.params[0]) + 1
    region = Region(region.params, tuple(body.f.b.ops), (count.value, *region.results))
    return _add(g, "while", operands, (condition, region), carries=len(carries) + 1, most=0)


Maker = Callable[[Generator, str], Made]
MAKERS: Mapping[str, Maker] = {
    "select": _select, "cast": _cast, "constant": _source, "iota": _source, "broadcast": _broadcast,
    "reshape": _reshape, "transpose": _transpose, "reverse": _reverse, "slice": _slice, "update": _update,
    "pad": _pad, "concatenate": _concatenate,
    **dict.fromkeys(("sum", "prod", "max", "min", "nanmax", "nanmin", "any", "all"), _reduction),
    **dict.fromkeys(("argmax", "argmin", "cumsum", "cumprod", "cummax", "cummin", "sort"), _along),
    "gather": _gather, "scatter": _scatter, "scatter_add": _scatter, "dot_general": _dot_general,
    **dict.fromkeys(("cholesky", "solve", "triangular_solve", "slogdet", "eigh", "svd", "qr"), _linalg),
    "fft": _fft, "guard": _effect, "check": _effect, "if": _if, "checkpoint": _checkpoint,
    "scan": _scan, "while": _while,
}  # fmt: skip
GENERATED = tuple(
    op.name for op in ALL_OPS if op.name in MAKERS or (isinstance(op.lower, Scalar) and op.name not in NOT_GENERATED)
)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Ops that have much to do with one another: programs of one theme meet more rewrite rules than programs of everything.
_MOVES = _words("broadcast reshape transpose reverse slice pad update concatenate gather constant")
THEMES: Mapping[str, tuple[str, ...]] = {
    "views": (*_MOVES, *_MOVES, "add", "neg", "sum", "max"),
    "in place": _words("update slice update slice mul reshape concatenate pad"),
    "signs": _words("add sub mul div neg neg neg abs constant integer_pow sum broadcast"),
    "choices": _words("select select less equal not_equal greater invert cast bitwise_and maximum constant"),
    "complex": _words("complex real imag conj mul add cast abs neg"),
    "reductions": _words("sum max min prod broadcast transpose reverse reshape mul dot_general pad"),
    "products": _words("dot_general transpose reshape broadcast add dot_general transpose"),
    "control": _words("if scan while checkpoint mul add sin constant broadcast update guard"),
}


def build_function(
    choices: Choices,
    size: int,
    ops: Sequence[str] = GENERATED,
    dtypes: Sequence[np.dtype[Any]] = DTYPES,
    depth: int = 2,
) -> Function:
    g = Generator(choices, ops, dtypes, depth)
    if g.chance(70):  # few ops and types at a time, so that they meet more often
        g.ops = [g.pick(ops) for _ in range(choices.integer(3, 12))]
        g.dtypes = [g.pick(dtypes) for _ in range(choices.integer(1, 2))]
    types = [g.type() for _ in range(choices.integer(1, 4))]
    for _ in range(choices.integer(1, 4)):
        g.param(g.pick(types))
    for _ in range(size):
        g.step()
    return g.f.b.function("random", g.results(choices.integer(1, 8)), source=Location("random.py", 1, "f"))


def random_function(
    seed: int, size: int = 20, ops: Sequence[str] = GENERATED, dtypes: Sequence[np.dtype[Any]] = DTYPES, depth: int = 2
) -> Function:
    """A function of `size` ops and those that keep operands in their domain; the same for the same seed."""
    return build_function(Seeded(seed), size, ops, dtypes, depth)


@st.composite
def functions(
    draw: Callable[[Any], Any],
    most: int = 20,
    ops: Sequence[str] = GENERATED,
    dtypes: Sequence[np.dtype[Any]] = DTYPES,
    depth: int = 2,
) -> Function:
    """The hypothesis strategy."""
    choices = Drawn(draw)
    return build_function(choices, choices.integer(1, most), ops, dtypes, depth)


# ------------------------------------------------------------------ arguments


def arguments_for(function: Function, seed: int = 0, special: bool = False) -> list[Array]:
    """Moderate numbers, or such with NaN, infinities, denormals and signed zeros among them."""
    rng = np.random.default_rng(seed)
    return [(sample_special if special else sample)(t, rng) for t in function.param_types]
