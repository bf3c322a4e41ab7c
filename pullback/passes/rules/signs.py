"""Rules of signs: negations cancel, move into constants, or outwards to a sum that takes them up."""

from pullback.ir.graph import Op, Value
from pullback.ir.ops import ALL_OPS
from pullback.passes.rules.record import Rewriter, Rule, case, made_by, number, same_number

_INVOLUTION = tuple(op.name for op in ALL_OPS if op.algebra.involutive and not op.attrs)


def _kind(op: Op) -> str:
    return op.results[0].type.dtype.kind


def _involution(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], op.name)
    return inner.operands[0] if inner is not None else None


def _times_minus_one(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    return r.emit("neg", x) if _kind(op) in "if" and same_number(number(y), -1) else None


def _add_negated(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    if (inner := made_by(y, "neg")) is not None:
        return r.emit("sub", x, inner.operands[0])
    if (inner := made_by(x, "neg")) is not None:
        return r.emit("sub", y, inner.operands[0])
    return None


def _sub_negated(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    inner = made_by(y, "neg")
    return r.emit("add", x, inner.operands[0]) if inner is not None else None


def _both_negated(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    lhs, rhs = made_by(x, "neg"), made_by(y, "neg")
    if lhs is None or rhs is None or (op.name == "div" and _kind(op) == "c"):
        return None
    return r.emit(op.name, lhs.operands[0], rhs.operands[0])


def _negated_constant(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    inner, found = made_by(x, "neg"), number(y)
    if inner is None or found is None or _kind(op) not in "if":
        return None
    return r.emit(op.name, inner.operands[0], r.emit("neg", y))


def _neg_of_product(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    inner = made_by(x, "mul") or made_by(x, "div")
    if inner is None or number(inner.operands[1]) is None or _kind(op) not in "if" or not r.used_once(x):
        return None
    return r.emit(inner.name, inner.operands[0], r.emit("neg", inner.operands[1]))


def _neg_outwards(r: Rewriter, op: Op) -> Value | None:
    x, y = op.operands
    if _kind(op) not in "if":
        return None
    if (inner := made_by(x, "neg")) is not None and r.used_once(x):
        return r.emit("neg", r.emit(op.name, inner.operands[0], y))
    if (inner := made_by(y, "neg")) is None or not r.used_once(y):
        return None
    if number(x) is not None:
        return r.emit(op.name, r.emit("neg", x), inner.operands[0])
    return r.emit("neg", r.emit(op.name, x, inner.operands[0]))


def _even(r: Rewriter, op: Op) -> Value | None:
    inner = made_by(op.operands[0], "neg")
    if inner is None or op.operands[0].type.dtype.kind == "u":
        return None
    return r.emit("abs", inner.operands[0])


def _abs_of_abs(r: Rewriter, op: Op) -> Value | None:
    (x,) = op.operands
    return x if made_by(x, "abs") is not None else None


F, H, I, U, B, Z = "f64[7]", "f32[7]", "i32[7]", "u8[7]", "bool[7]", "c128[7]"

SIGNS: tuple[Rule, ...] = (
    Rule(
        "involution",
        "op(op(x)) -> x",
        _INVOLUTION,
        _involution,
        "Flips bits, nothing is rounded.",
        (case(lambda f, x: f.neg(f.neg(x)), F), case(lambda f, x: ~(~x), B), case(lambda f, x: f.conj(f.conj(x)), Z)),
    ),
    Rule(
        "times-minus-one",
        "x * -1, x / -1 -> -x",
        ("mul", "div"),
        _times_minus_one,
        "Only the sign changes, also of zero.",
        (case(lambda f, x: x * -1.0, F), case(lambda f, x: x / -1.0, H), case(lambda f, x: x * -1, I)),
        (case(lambda f, x: x * -1.0, Z),),
    ),
    Rule(
        "add-negated",
        "x + (-y) -> x - y",
        ("add",),
        _add_negated,
        "Subtraction is defined as this sum, signs of zero included.",
        (
            case(lambda f, x, y: x + (-y), F, F),
            case(lambda f, x, y: (-x) + y, I, I),
            case(lambda f, x, y: x + (-y), Z, Z),
        ),
    ),
    Rule(
        "sub-negated",
        "x - (-y) -> x + y",
        ("sub",),
        _sub_negated,
        "As add-negated.",
        (case(lambda f, x, y: x - (-y), F, F), case(lambda f, x, y: x - (-y), U, U)),
        (case(lambda f, x, y: (-x) - y, F, F),),
    ),
    Rule(
        "both-negated",
        "(-x) * (-y) -> x * y; likewise div",
        ("mul", "div"),
        _both_negated,
        "The signs cancel before anything is rounded. Not in complex quotients: a zero part may change its sign.",
        (
            case(lambda f, x, y: (-x) * (-y), F, F),
            case(lambda f, x, y: (-x) / (-y), F, F),
            case(lambda f, x, y: (-x) * (-y), I, I),
        ),
    ),
    Rule(
        "negated-constant",
        "(-x) * c -> x * (-c); likewise div",
        ("mul", "div"),
        _negated_constant,
        "The sign of a product is the product of the signs.",
        (case(lambda f, x: (-x) * 3.0, F), case(lambda f, x: (-x) / 3.0, F), case(lambda f, x: (-x) * 3, I)),
    ),
    Rule(
        "neg-of-product",
        "-(x * c) -> x * (-c); likewise div, where read once",
        ("neg",),
        _neg_of_product,
        "As negated-constant.",
        (case(lambda f, x: -(x * 3.0), F), case(lambda f, x: -(x / 3.0), F)),
        (case(lambda f, x: -(x + 3.0), F),),
    ),
    Rule(
        "neg-outwards",
        "(-x) * y, x * (-y) -> -(x * y); likewise div, where read once",
        ("mul", "div"),
        _neg_outwards,
        "Only the sign moves; a sum that follows takes it up.",
        (case(lambda f, x, y: (-x) * y, F, F), case(lambda f, x, y: x / (-y), F, F), case(lambda f, x: 3.0 / (-x), F)),
        (case(lambda f, x, y: (-x) * y, Z, Z),),
    ),
    Rule(
        "abs-of-neg",
        "|-x| -> |x|",
        ("abs",),
        _even,
        "The sign is dropped; the least integer is its own negative. An unsigned -x is no negative number.",
        (case(lambda f, x: f.abs(-x), F), case(lambda f, x: f.abs(-x), I), case(lambda f, x: f.abs(-x), Z)),
        (case(lambda f, x: f.abs(-x), U),),
    ),
    Rule(
        "abs-of-abs",
        "||x|| -> |x|",
        ("abs",),
        _abs_of_abs,
        "The sign is dropped already.",
        (case(lambda f, x: f.abs(f.abs(x)), F), case(lambda f, x: f.abs(f.abs(x)), Z)),
    ),
)
