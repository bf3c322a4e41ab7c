"""What Python construct asks for the number behind a traced value, and what to write in its place."""

import ast
import linecache
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

from pullback.tracer.location import is_internal_file

Span = tuple[int | None, int | None, int | None, int | None]
Instead = Callable[[list[str]], str]


def _listed(name: str) -> Instead:
    return lambda args: f"{name}({', '.join(args)})"


def _extreme(of_two: str, of_many: str) -> Instead:
    def write(args: list[str]) -> str:
        if len(args) == 2:
            return f"{of_two}({', '.join(args)})"
        return f"{of_many}({args[0]})" if len(args) == 1 else f"{of_many}([{', '.join(args)}])"

    return write


CALLS: Mapping[str, Instead] = {
    "max": _extreme("np.maximum", "np.max"),
    "min": _extreme("np.minimum", "np.min"),
    "any": _listed("np.any"),
    "all": _listed("np.all"),
    "range": lambda args: "pullback.fori_loop(lower, upper, lambda i, state: new_state, state) for the loop over it",
    "bool": lambda args: f"{args[0]} != 0, which stays a traced bool",
    "int": lambda args: f"np.trunc({args[0]}), or nothing where it is an integer already",
    "round": lambda args: f"np.round({args[0]})",
    "float": lambda args: f"{args[0]} as it is",
    "len": lambda args: f"{args[0]}.shape[0]",
}
"""For functions of Python, by the text of their arguments."""


class Construct(NamedTuple):
    """The words for a construct, and what to write instead."""

    name: str
    instead: str


GENERAL = Construct(
    "a Python branch or conversion", "pullback.cond or np.where to choose, pullback.while_loop or fori_loop to repeat"
)


def asked_by() -> Construct:
    """The construct of the user's line that runs; where its source is not at hand, the general answer."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal_file(frame.f_code.co_filename):
        frame = frame.f_back
    found = None if frame is None else _node(frame.f_code, frame.f_lasti)
    return GENERAL if found is None else _construct(*found)


def _node(code: CodeType, instruction: int) -> tuple[ast.expr, ast.AST] | None:
    """The expression that the instruction belongs to, and what it is part of."""
    span = list(code.co_positions())[instruction // 2]
    tree = _parsed(code.co_filename)
    for parent in ast.walk(tree):
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.expr) and _span(node) == span:
                return node, parent
    return None


@lru_cache(maxsize=4)
def _parsed(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


def _span(node: ast.expr) -> Span:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def _construct(node: ast.expr, parent: ast.AST) -> Construct:
    text = ast.unparse(node)
    match node, parent:
        case ast.Call(ast.Name(name), args), _ if name in CALLS and args:
            return Construct(f"`{text}`", CALLS[name]([ast.unparse(a) for a in args]))
        case ast.BoolOp(op, values), _:
            return _joined(op, values)
        case _, ast.BoolOp(op, values):
            return _joined(op, values)
        case ast.UnaryOp(ast.Not(), operand), _:
            return Construct(f"`{text}`", f"np.logical_not({ast.unparse(operand)})")
        case ast.Compare(left, ops, comparators), _ if len(ops) > 1:
            return Construct(f"`{text}`", _pairs(left, ops, comparators))
        case _, ast.IfExp(test, body, orelse) if test is node:
            choice = f"np.where({text}, {ast.unparse(body)}, {ast.unparse(orelse)})"
            return Construct(f"`... if {text} else ...`", f"{choice}, or pullback.cond where only one side may run")
        case _, ast.If():
            advice = f"pullback.cond({text}, lambda x: ..., lambda x: ..., x), or np.where({text}, ..., ...) for values"
            return Construct(f"`if {text}`", advice)
        case _, ast.While():
            return Construct(f"`while {text}`", "pullback.while_loop(condition, body, state)")
        case _, ast.Assert():
            return Construct(f"`assert {text}`", "a result of the function that says so, and assert on that outside")
        case ast.Subscript(value, index), _:
            wanted = f"np.asarray({ast.unparse(value)})[{ast.unparse(index)}], or pullback.switch for functions"
            return Construct(f"`{text}`", wanted)
    return GENERAL._replace(name=f"`{text}`")


def _joined(op: ast.boolop, values: list[ast.expr]) -> Construct:
    word, name = ("and", "np.logical_and") if isinstance(op, ast.And) else ("or", "np.logical_or")
    parts = [ast.unparse(v) for v in values]
    joined = parts[0]
    for part in parts[1:]:
        joined = f"{name}({joined}, {part})"
    return Construct(f"`{f' {word} '.join(parts)}`", joined)


def _pairs(left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr]) -> str:
    """`a < b < c` as comparisons of two."""
    terms = [left, *comparators]
    pairs = [ast.unparse(ast.Compare(a, [op], [b])) for a, op, b in zip(terms, ops, terms[1:], strict=False)]
    joined = pairs[0]
    for pair in pairs[1:]:
        joined = f"np.logical_and({joined}, {pair})"
    return joined
