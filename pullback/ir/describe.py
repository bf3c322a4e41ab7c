"""What an op is, in words: for `pullback ops NAME` and the op table of the documentation."""

from collections.abc import Iterable

from pullback.ir.opdef import (
    Bilinear,
    Control,
    Custom,
    Derivative,
    Library,
    Linear,
    Lower,
    NotDifferentiable,
    OpDef,
    Partials,
    Reduce,
    Scalar,
    Structured,
    View,
)


def derivative_words(rule: Derivative) -> str:
    match rule:
        case Partials():
            return "partials"
        case Linear():
            return "linear"
        case Bilinear():
            return "bilinear"
        case Custom():
            return "vjp and jvp"
        case Structured():
            return "by region"
        case NotDifferentiable(reason):
            return f"none: {reason}"


def lowering_words(lower: Lower) -> str:
    match lower:
        case Scalar():
            return "fused, scalar"
        case View():
            return "fused, index map"
        case Reduce():
            return "fused, reduction"
        case Library():
            return "kernel of its own"
        case Control():
            return "control"


def signature(op: OpDef) -> str:
    arity = "..." if op.arity is None else ", ".join("xyzuvw"[: op.arity])
    attrs = ", ".join(f"{name}: {kind}" for name, kind in op.attrs.items())
    return f"{op.name}({arity})" + (f" {{{attrs}}}" if attrs else "")


def describe(op: OpDef) -> str:
    """All of a record that a reader wants, several lines."""
    facts = op.algebra
    flags = [n for n in ("commutative", "associative", "idempotent", "involutive") if getattr(facts, n)]
    lines = [signature(op), "", f"  {op.doc}", ""]
    if op.numpy:
        lines.append(f"  NumPy       {', '.join(op.numpy)}")
    lines.append(f"  derivative  {derivative_words(op.derivative)}")
    lines.append(f"  lowering    {lowering_words(op.lower)}")
    if op.regions:
        lines.append(f"  regions     {', '.join(op.regions)}")
    if flags or facts.identity is not None:
        known = flags + ([f"x {op.name} {facts.identity} is x"] if facts.identity is not None else [])
        lines.append(f"  algebra     {', '.join(known)}")
    return "\n".join(lines) + "\n"


def table(ops: Iterable[OpDef]) -> str:
    """A Markdown table, a row for each op."""
    rows = ["| op | derivative | lowering | meaning |", "|---|---|---|---|"]
    for op in ops:
        meaning = op.doc.replace("|", "\\|")
        cells = (f"`{signature(op)}`", derivative_words(op.derivative), lowering_words(op.lower), meaning)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"
