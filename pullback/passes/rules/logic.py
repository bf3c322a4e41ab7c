"""Rules of comparisons, selections, casts and the parts of complex numbers."""

import numpy as np

from pullback.ir.graph import Op, Value
from pullback.ir.types import DType
from pullback.passes.rules.record import Rewriter, Rule, case, is_constant, literal, made_by, number

# ------------------------------------------------------------------ comparisons

_MIRRORED = {"less": "greater", "greater": "less", "less_equal": "greater_equal", "greater_equal": "less_equal"}
_OPPOSITE = {
    "equal": "not_equal", "not_equal": "equal",
    "less": "greater_equal", "greater_equal": "less", "greater": "less_equal", "less_equal": "greater",
}  # fmt: skip
_TRUE_OF_SAME = frozenset({"equal", "less_equal", "greater_equal"})


def _compared_with_itself(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    if x is not y:
        return None
    if op.name in ("less", "greater"):
        return r.full(op.results[0].type, False)
    exact = x.type.dtype.kind in "biu"
    return r.full(op.results[0].type, op.name in _TRUE_OF_SAME) if exact else None


def _constant_left(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    return r.emit(_MIRRORED[op.name], y, x) if is_constant(x) and not is_constant(y) else None


def _not_of_comparison(r: Rewriter, op: Op) -> Value | None:
    inner = op.operands[0].op
    if inner is None or inner.name not in _OPPOSITE:
        return None
    exact = inner.name in ("equal", "not_equal") or inner.operands[0].type.dtype.kind in "biu"
    return r.emit(_OPPOSITE[inner.name], *inner.operands) if exact else None


def _bool_against_constant(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    found = number(y)
    if x.type.dtype.kind != "b" or found is None:
        return None
    return x if found == (op.name == "equal") else r.emit("invert", x)


# ------------------------------------------------------------------ selection


def _known_predicate(r: Rewriter, op: Op) -> Value | None:
    pred, x, y = op.operands
    found = number(pred)
    if found is not None:
        return x if found else y
    array = literal(pred)
    if array is None or not array.size or bool(array.any()) != bool(array.all()):
        return None
    return x if bool(array.all()) else y


def _same_branches(r: Rewriter, op: Op) -> Value | None:
    _, x, y = op.operands
    return x if x is y else None


def _inverted_predicate(r: Rewriter, op: Op) -> Value | None:
    pred, x, y = op.operands
    inner = made_by(pred, "invert")
    return r.emit("select", inner.operands[0], y, x) if inner is not None else None


def _bool_constants(r: Rewriter, op: Op) -> Value | None:
    pred, x, y = op.operands
    if x.type.dtype.kind != "b":
        return None
    match number(x), number(y):
        case True, False:
            return pred
        case False, True:
            return r.emit("invert", pred)
    return None


def _selected_twice(r: Rewriter, op: Op) -> Value | None:
    pred, x, y = op.operands
    if (inner := made_by(x, "select")) is not None and inner.operands[0] is pred:
        return r.emit("select", pred, inner.operands[1], y)
    if (inner := made_by(y, "select")) is not None and inner.operands[0] is pred:
        return r.emit("select", pred, x, inner.operands[2])
    return None


# ------------------------------------------------------------------ casts


def holds_exactly(source: DType, target: DType) -> bool:
    """Whether each number of `source` is one of `target` (unlike NumPy's "safe", which lets int64 into float64)."""
    if source == target or source.kind == "b":
        return True
    if source.kind in "iu":
        if target.kind in "fc":
            bits = source.itemsize * 8 - (source.kind == "i")
            return bits <= np.finfo(target).nmant + 1
        return np.can_cast(source, target, "safe")
    return target.kind in "fc" and np.can_cast(source, target, "safe")


def _cast_to_same(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if x.type.dtype == op.attrs["dtype"] else None


def _cast_of_cast(r: Rewriter, op: Op) -> Value | None:
    (x,), target = op.operands, op.attrs["dtype"]
    inner = made_by(x, "cast")
    if inner is None:
        return None
    (origin,) = inner.operands
    source, middle = origin.type.dtype, x.type.dtype
    if not holds_exactly(source, middle):
        return None
    # A floating number that the target cannot hold is converted in the machine's way, an integer modulo 2**n.
    direct = target.kind not in "iu" or middle.kind in "biu" or holds_exactly(source, target)
    return r.emit("cast", origin, dtype=target) if direct else None


def _cast_to_bool(r: Rewriter, op: Op) -> Value | None:
    """not_equal(cast(p), 0), equal(cast(p), 1) -> p, for bool p."""
    x, y = op.operands
    inner, found = made_by(x, "cast"), number(y)
    if inner is None or inner.operands[0].type.dtype.kind != "b" or found not in (0, 1):
        return None
    (pred,) = inner.operands
    return pred if (found == 1) == (op.name == "equal") else r.emit("invert", pred)


# ------------------------------------------------------------------ complex numbers


def _part_of_complex(r: Rewriter, op: Op) -> Value | None:
    (z,) = op.operands
    if (inner := made_by(z, "complex")) is not None:
        part = inner.operands[0 if op.name == "real" else 1]
        return r.emit("cast", part, dtype=op.results[0].type.dtype)  # of float16 the parts are float32
    if (inner := made_by(z, "cast")) is not None and inner.operands[0].type.dtype.kind != "c":
        if op.name == "imag":
            return r.full(op.results[0].type, 0)
        return r.emit("cast", inner.operands[0], dtype=op.results[0].type.dtype)
    return None


def _part_of_conj(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "conj")
    if inner is None:
        return None
    part = r.emit(op.name, inner.operands[0])
    return part if op.name == "real" else r.emit("neg", part)


def _complex_of_parts(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    real, imag = made_by(x, "real"), made_by(y, "imag")
    if real is None or imag is None or real.operands[0] is not imag.operands[0]:
        return None
    return real.operands[0]


F, H, I, B, Z = "f64[7]", "f32[7]", "i32[7]", "bool[7]", "c128[7]"

LOGIC: tuple[Rule, ...] = (
    Rule(
        "compared-with-itself",
        "x < x -> false; x == x -> true",
        tuple(_OPPOSITE),
        _compared_with_itself,
        "Less and greater are false also for NaN. The others hold for integers and bools only: NaN equals nothing.",
        (
            case(lambda f, x: x < x, F),
            case(lambda f, x: x.eq(x), I),
            case(lambda f, x: x.ne(x), B),
            case(lambda f, x: x >= x, I),
        ),
        (case(lambda f, x: x.eq(x), F), case(lambda f, x: x <= x, F)),
    ),
    Rule(
        "constant-left",
        "c < x -> x > c",
        tuple(_MIRRORED),
        _constant_left,
        "The same comparison, read from the right.",
        (
            case(lambda f, x: f.less(f.full_like(x, 2.0), x), F),
            case(lambda f, x: f.greater_equal(f.full_like(x, 2), x), I),
        ),
    ),
    Rule(
        "not-of-comparison",
        "~(x == y) -> x != y; ~(x < y) -> x >= y",
        ("invert",),
        _not_of_comparison,
        "Equality always; order of integers only: with a NaN both x < y and x >= y are false.",
        (case(lambda f, x, y: ~x.eq(y), F, F), case(lambda f, x, y: ~(x < y), I, I)),
        (case(lambda f, x, y: ~(x < y), F, F),),
    ),
    Rule(
        "bool-against-constant",
        "p == true -> p; p == false -> ~p",
        ("equal", "not_equal"),
        _bool_against_constant,
        "bits",
        (case(lambda f, p: p.eq(True), B), case(lambda f, p: p.ne(True), B), case(lambda f, p: p.eq(False), B)),
    ),
    Rule(
        "cast-bool-against-constant",
        "cast(p) != 0 -> p; cast(p) == 0 -> ~p",
        ("equal", "not_equal"),
        _cast_to_bool,
        "cast(p) is exactly 0 or 1.",
        (
            case(lambda f, p: f.astype(p, np.dtype("f8")).ne(0.0), B),
            case(lambda f, p: f.astype(p, np.dtype("i8")).eq(0), B),
        ),
        (case(lambda f, p: f.astype(p, np.dtype("f8")).eq(2.0), B),),
    ),
    Rule(
        "known-predicate",
        "select(true, x, y) -> x",
        ("select",),
        _known_predicate,
        "The other operand contributes nothing, not even NaN.",
        (
            case(lambda f, x, y: f.select(f.full_like(x < y, True), x, y), F, F),
            case(lambda f, x, y: f.select(f.full_like(x < y, False), x, y), F, F),
        ),
    ),
    Rule(
        "same-branches",
        "select(p, x, x) -> x",
        ("select",),
        _same_branches,
        "Either way.",
        (case(lambda f, p, x: f.select(p, x, x), B, F),),
    ),
    Rule(
        "inverted-predicate",
        "select(~p, x, y) -> select(p, y, x)",
        ("select",),
        _inverted_predicate,
        "bits",
        (case(lambda f, p, x, y: f.select(~p, x, y), B, F, F),),
    ),
    Rule(
        "bool-constants",
        "select(p, true, false) -> p",
        ("select",),
        _bool_constants,
        "bits",
        (
            case(lambda f, p: f.select(p, f.full_like(p, True), f.full_like(p, False)), B),
            case(lambda f, p: f.select(p, f.full_like(p, False), f.full_like(p, True)), B),
        ),
        (case(lambda f, p: f.select(p, f.constant(np.ones(7)), f.constant(np.zeros(7))), B),),
    ),
    Rule(
        "selected-twice",
        "select(p, select(p, x, y), z) -> select(p, x, z)",
        ("select",),
        _selected_twice,
        "The inner choice is known.",
        (
            case(lambda f, p, x, y, z: f.select(p, f.select(p, x, y), z), B, F, F, F),
            case(lambda f, p, x, y, z: f.select(p, x, f.select(p, y, z)), B, F, F, F),
        ),
        (case(lambda f, p, q, x, y: f.select(p, f.select(q, x, y), y), B, B, F, F),),
    ),
    Rule(
        "cast-to-same",
        "cast[t](x: t) -> x",
        ("cast",),
        _cast_to_same,
        "Nothing changes.",
        (case(lambda f, x: f.cast(x, dtype=np.dtype("f8")), F),),
    ),
    Rule(
        "cast-of-cast",
        "cast[u](cast[t](x)) -> cast[u](x) where t holds every x exactly",
        ("cast",),
        _cast_of_cast,
        "The middle type loses nothing. Not from a float to integers that may not hold the number.",
        (
            case(lambda f, x: f.astype(f.astype(x, np.dtype("f8")), np.dtype("f4")), H),
            case(lambda f, x: f.astype(f.astype(x, np.dtype("i8")), np.dtype("u1")), I),
            case(lambda f, x: f.astype(f.astype(x, np.dtype("f8")), np.dtype("i8")), I),
            case(lambda f, p: f.astype(f.astype(p, np.dtype("f4")), np.dtype("?")), B),
            case(lambda f, x: f.astype(f.astype(x, np.dtype("c16")), np.dtype("f4")), F),
        ),
        (
            case(lambda f, x: f.astype(f.astype(x, np.dtype("f4")), np.dtype("f8")), F),
            case(lambda f, x: f.astype(f.astype(x, np.dtype("f4")), np.dtype("i8")), I),
            case(lambda f, x: f.astype(f.astype(x, np.dtype("f8")), np.dtype("i1")), I),
        ),
    ),
    Rule(
        "part-of-complex",
        "real(complex(x, y)) -> x; imag(cast(x)) -> 0",
        ("real", "imag"),
        _part_of_complex,
        "Parts are kept apart.",
        (
            case(lambda f, x, y: f.real(f.complex(x, y)), F, F),
            case(lambda f, x, y: f.imag(f.complex(x, y)), F, F),
            case(lambda f, x: f.real(f.astype(x, np.dtype("c16"))), F),
            case(lambda f, x: f.imag(f.astype(x, np.dtype("c16"))), F),
        ),
    ),
    Rule(
        "part-of-conj",
        "real(conj(z)) -> real(z); imag(conj(z)) -> -imag(z)",
        ("real", "imag"),
        _part_of_conj,
        "Only a sign changes.",
        (case(lambda f, z: f.real(f.conj(z)), Z), case(lambda f, z: f.imag(f.conj(z)), Z)),
    ),
    Rule(
        "complex-of-parts",
        "complex(real(z), imag(z)) -> z",
        ("complex",),
        _complex_of_parts,
        "Parts are kept apart.",
        (case(lambda f, z: f.complex(f.real(z), f.imag(z)), Z),),
        (case(lambda f, z, w: f.complex(f.real(z), f.imag(w)), Z, Z),),
    ),
)
