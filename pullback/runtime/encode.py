"""Compiled objects as bytes, for the disk: a line of JSON that describes, then the object code. No pickle."""

from __future__ import annotations

import json
from typing import Any

from pullback.codegen.object import (
    ArgSpec,
    Captured,
    CompiledObject,
    DictOf,
    Kind,
    ListOf,
    Node,
    ResultSpec,
    Signature,
    Static,
    SupportObject,
    TupleOf,
)
from pullback.errors import ParseError
from pullback.ir.types import parse_type


def compiled_to_bytes(compiled: CompiledObject) -> bytes:
    """The inverse of `compiled_from_bytes`."""
    signature = compiled.signature
    facts = {
        "kernel": compiled.kernel,
        "entry": compiled.entry,
        "args": [_node_to_json(node) for node in signature.args],
        "result": _node_to_json(signature.result),
        "statics": signature.statics,
        "keywords": signature.keywords,
        "captured": [[captured.slot, str(captured.type)] for captured in signature.captured],
        "watched": signature.watched,
        "arena_bytes": compiled.arena_bytes,
        "symbols": compiled.symbols,
        "releases_gil": compiled.releases_gil,
    }
    return _join(facts, compiled.code)


def compiled_from_bytes(data: bytes) -> CompiledObject:
    """Read a compiled object back.

    Raises
    ------
    ParseError : these are not the bytes of one, or of another version's
    """
    facts, code = _split(data)
    try:
        return CompiledObject(
            code=code,
            kernel=facts["kernel"],
            entry=facts["entry"],
            signature=_signature_from_json(facts),
            arena_bytes=facts["arena_bytes"],
            symbols=tuple(facts["symbols"]),
            releases_gil=facts["releases_gil"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"not a stored compiled object: {error!r}") from error


def _signature_from_json(facts: dict[str, Any]) -> Signature:
    return Signature(
        args=tuple(_node_from_json(node) for node in facts["args"]),
        result=_node_from_json(facts["result"]),
        statics=facts["statics"],
        keywords=tuple(facts["keywords"]),
        captured=tuple(Captured(slot, parse_type(type_)) for slot, type_ in facts["captured"]),
        watched=facts["watched"],
    )


def support_to_bytes(part: SupportObject) -> bytes:
    """The inverse of `support_from_bytes`."""
    return _join({"exports": part.exports, "symbols": part.symbols}, part.code)


def support_from_bytes(data: bytes) -> SupportObject:
    """Read a support part back.

    Raises
    ------
    ParseError : these are not the bytes of one
    """
    facts, code = _split(data)
    try:
        return SupportObject(code, tuple(facts["exports"]), tuple(facts["symbols"]))
    except (KeyError, TypeError) as error:
        raise ParseError(f"not a stored support part: {error!r}") from error


def _join(facts: dict[str, Any], code: bytes) -> bytes:
    return json.dumps(facts, separators=(",", ":")).encode() + b"\n" + code


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    head, newline, code = data.partition(b"\n")
    try:
        facts = json.loads(head)
    except ValueError as error:
        raise ParseError(f"not a stored object: {error}") from error
    if not newline or not isinstance(facts, dict):
        raise ParseError("not a stored object: no description")
    return facts, code


def _node_to_json(node: Node) -> list[Any]:
    match node:
        case ArgSpec(type_, kinds, order):
            return ["arg", str(type_), [str(kind) for kind in kinds], order]
        case ResultSpec(type_, kind):
            return ["result", str(type_), str(kind)]
        case Static(slot):
            return ["static", slot]
        case TupleOf(items, cls):
            return ["tuple", [_node_to_json(item) for item in items], cls]
        case ListOf(items):
            return ["list", [_node_to_json(item) for item in items]]
        case DictOf(keys, items):
            return ["dict", [_node_to_json(item) for item in items], keys]


def _node_from_json(form: Any) -> Node:
    match form:
        case ["arg", str(type_), [*kinds], order]:
            axes = None if order is None else tuple(order)
            return ArgSpec(parse_type(type_), tuple(Kind(kind) for kind in kinds), axes)
        case ["result", str(type_), str(kind)]:
            return ResultSpec(parse_type(type_), Kind(kind))
        case ["static", int(slot)]:
            return Static(slot)
        case ["tuple", [*items], (int() | None) as cls]:
            return TupleOf(tuple(_node_from_json(item) for item in items), cls)
        case ["list", [*items]]:
            return ListOf(tuple(_node_from_json(item) for item in items))
        case ["dict", [*items], [*keys]]:
            return DictOf(tuple(keys), tuple(_node_from_json(item) for item in items))
    raise ValueError(f"unknown node {form!r}")
