"""Integrals over the half line, node after node."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from pullback.codegen.llvm import FunctionBuilder, V, as_value, lanes_of
from pullback.codegen.math.kit import constant, two_sum
from pullback.ir import quadrature


def half_line(
    b: FunctionBuilder, scale: V, count: int, integrand: Callable[[V], Sequence[V]], wanted: V | None = None
) -> tuple[V, ...]:
    """The integrals over u > 0 of `count` functions of doubles that decay like exp(-u / scale).

    Parameters
    ----------
    scale : double or vector of doubles
    integrand : emits the functions at one u
    wanted : i1: otherwise nothing is computed, and the results are 0
    """
    rows = quadrature.half_line()
    table = b.module.constant(b"".join(struct.pack("=dd", *row) for row in rows))
    turns = len(rows) if wanted is None else b.select(wanted, as_value("i64", len(rows)), 0)
    with b.loop(0, turns, carry=[constant(scale, 0.0)] * (2 * count)) as loop:
        place = b.gep("double", table, b.shl(loop.index, 1))
        node, weight = (b.splat(b.load("double", b.gep("double", place, k), 8), lanes_of(scale.type)) for k in (0, 1))
        sums: list[V] = []
        for value, total, lost in zip(integrand(b.fmul(node, scale)), loop.carry[::2], loop.carry[1::2], strict=True):
            new = two_sum(b, total, b.fmul(weight, value))
            sums += [new.hi, b.fadd(lost, new.lo)]
        loop.turn(*sums)
    return tuple(
        b.fmul(b.fadd(total, lost), scale) for total, lost in zip(loop.results[::2], loop.results[1::2], strict=True)
    )
