"""Discrete Fourier transforms of a few elements, on vectors of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pullback.codegen.library.fft_lanes import Complexes, Pair
from pullback.codegen.library.fft_plan import unit_roots
from pullback.codegen.llvm import V, const


def butterfly(c: Complexes, x: Sequence[Pair]) -> list[Pair]:
    """y[k] = sum over j of x[j] exp(-2 pi i j k / n)."""
    match len(x):
        case 2:
            return [c.add(x[0], x[1]), c.sub(x[0], x[1])]
        case 4:
            return _four(c, x)
        case 8:
            return _eight(c, x)
    return _odd(c, x)


def odd_butterfly(
    c: Complexes, radix: V, load: Callable[[V], Pair], store: Callable[[V, Pair], None], roots: V, space: V
) -> None:
    """The transform of any odd number of elements, in loops.

    Parameters
    ----------
    load, store : of an element by its number
    roots : exp(-2 pi i j / radix) for each j
    space : memory for 2 * radix pairs
    """
    b = c.b
    half = b.lshr(b.add(radix, 1), 1)
    first = load(const("i64", 0))
    with b.loop(1, half, carry=first) as ends:
        one, other = load(ends.index), load(b.sub(radix, ends.index))
        pair = c.at(space, ends.index, 2 * c.pair_bytes)
        total = c.add(one, other)
        c.store_pair(total, pair)
        c.store_pair(c.sub(one, other), c.at(pair, 1, c.pair_bytes))
        ends.turn(*c.add(Pair(*ends.carry), total))
    store(const("i64", 0), Pair(*ends.results))
    nothing = const(first.re.type, 0.0)
    with b.loop(1, half) as outputs:
        k = outputs.index
        with b.loop(1, half, carry=[*first, nothing, nothing, k]) as terms:
            number = terms.carry[4]
            pair = c.at(space, terms.index, 2 * c.pair_bytes)
            total, gap = c.load_pair(pair), c.load_pair(c.at(pair, 1, c.pair_bytes))
            root = c.load_splat(c.at(roots, number, 2 * c.item))
            cosines = [b.fma(root.re, u, v) for u, v in zip(total, terms.carry[:2], strict=True)]
            sines = [b.fma(root.im, u, v) for u, v in zip(gap, terms.carry[2:4], strict=True)]
            following = b.add(number, k)
            following = b.select(b.icmp("sge", following, radix), b.sub(following, radix), following)
            terms.turn(*cosines, *sines, following)
        even, turned = Pair(*terms.results[:2]), c.turned(Pair(*terms.results[2:4]))
        store(k, c.sub(even, turned))  # the sines are those of negative angles
        store(b.sub(radix, k), c.add(even, turned))


def _four(c: Complexes, x: Sequence[Pair]) -> list[Pair]:
    even, odd = c.add(x[0], x[2]), c.sub(x[0], x[2])
    both, turned = c.add(x[1], x[3]), c.turned(c.sub(x[1], x[3]))
    return [c.add(even, both), c.add(odd, turned), c.sub(even, both), c.sub(odd, turned)]


def _eight(c: Complexes, x: Sequence[Pair]) -> list[Pair]:
    """Two of four, the second with factors exp(-2 pi i k / 8)."""
    even, odd = _four(c, x[0::2]), _four(c, x[1::2])
    b, root = c.b, math.sqrt(0.5)
    first, third = odd[1], odd[3]
    odd[1] = Pair(b.fmul(b.fadd(first.re, first.im), root), b.fmul(b.fsub(first.im, first.re), root))
    odd[2] = c.turned(odd[2])
    odd[3] = Pair(b.fmul(b.fsub(third.im, third.re), root), b.fmul(b.fadd(third.re, third.im), -root))
    return [*map(c.add, even, odd), *map(c.sub, even, odd)]


def _odd(c: Complexes, x: Sequence[Pair]) -> list[Pair]:
    """Sums and differences of the elements at both ends, cosines of the ones and sines of the others."""
    n, b = len(x), c.b
    half = range(1, (n + 1) // 2)
    sums = [c.add(x[j], x[n - j]) for j in half]
    gaps = [c.sub(x[j], x[n - j]) for j in half]
    first = x[0]
    for pair in sums:
        first = c.add(first, pair)
    y = [first] * n
    for k in half:
        even, odd = x[0], x[0]
        for j, root in zip(half, unit_roots(np.arange(1, n) * k, n), strict=False):
            even = Pair(*[b.fma(u, float(root.real), v) for u, v in zip(sums[j - 1], even, strict=True)])
            if j == 1:
                odd = Pair(*[b.fmul(u, float(root.imag)) for u in gaps[0]])
            else:
                odd = Pair(*[b.fma(u, float(root.imag), v) for u, v in zip(gaps[j - 1], odd, strict=True)])
        turned = c.turned(odd)
        y[k], y[n - k] = c.sub(even, turned), c.add(even, turned)  # the sines are those of negative angles
    return y
