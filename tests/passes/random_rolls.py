"""Random Python loops over arrays, histories and lists, as loop rolling may meet them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

START = 14
"""The first turn: statements look back up to so far."""
WIDTH = 3


class Statement(NamedTuple):
    kind: str
    a: int
    b: int


class Loop(NamedTuple):
    """Turns in order, the statements of each, and how often an inner loop runs (-1: as often as `t % 4` says)."""

    turns: Sequence[int]
    statements: tuple[Statement, ...]
    inner: int
    writes: bool


class Arrays:
    """What the statements read and write."""

    def __init__(self, x: Any, u: Any, m: Any, s: Any) -> None:
        self.x, self.s, self.m, self.z = x, s * 1.0, m.copy(), x.copy()
        self.y = np.zeros(len(x))
        self.y[:START] = x[:START]
        self.u = np.zeros(u.shape)
        self.u[:START] = u[:START]
        self.h = u[0] * 1.0
        self.queue = [x[0], x[1], x[2] * 1.0]
        self.kept: list[Any] = []

    def loss(self) -> Any:
        total = self.s**2 + np.sum(self.y**2) + np.sum(self.z) + np.sum(self.u**2) + np.sum(self.m**2)
        total = total + np.sum(self.h) + self.queue[0] * self.queue[1]
        if self.kept:
            total = total + np.sum(np.array(self.kept) ** 2) + self.kept[len(self.kept) // 2]
        return total


def _history(v: Arrays, t: int, a: int, b: int) -> None:
    v.y[t] = 0.5 * v.y[t - 1 - a] + np.cos(v.s)


def _rows(v: Arrays, t: int, a: int, b: int) -> None:
    v.u[t] = np.tanh(v.u[t - 1] + 0.1 * v.h) + 0.01 * a
    v.u[t] += 0.7 * v.u[t - 1 - b] * v.x[t]


def _pieces(v: Arrays, t: int, a: int, b: int) -> None:
    v.u[t, 1:] = v.u[t - 1, :-1] * 0.5 + 0.1 * v.s
    v.u[t, 0] = v.u[t, 2] * 0.3 + v.u[t - 1 - a, b % WIDTH] * 0.2


def _queue(v: Arrays, t: int, a: int, b: int) -> None:
    v.queue = [v.queue[1], v.queue[2], np.sin(v.queue[0]) * 0.8 + 0.1 * v.s]


def _cells(v: Arrays, t: int, a: int, b: int) -> None:
    v.m[t % 7, a % 5] += 0.1 * v.s
    v.m[(t + b) % 7] *= 0.9


def _in_place(v: Arrays, t: int, a: int, b: int) -> None:
    v.z[t] = v.z[t] * 0.9 + 0.05 * v.z[t - 1 - a] ** 2
    v.z[t - 1] = 0.3 * v.s + 0.5 * v.z[t]


def _window(v: Arrays, t: int, a: int, b: int) -> None:
    v.y[t - a : t - a + 2] *= 0.9


def _number(v: Arrays, t: int, a: int, b: int) -> None:
    v.s = np.sin(v.s) * 0.5 + v.y[t - a - 1] * 0.1 + v.z[t - b] * 0.1 + 0.01 * t


def _phases(v: Arrays, t: int, a: int, b: int) -> None:
    v.s = v.s * 0.9 + (0.1 * np.sin(v.s) if t % 2 else 0.1 * np.cos(v.s))


def _list(v: Arrays, t: int, a: int, b: int) -> None:
    v.kept.append(v.s * 1.5 + np.sum(v.h))
    v.s = v.s * 0.9 + 0.1 * v.kept[-1]


def _vector(v: Arrays, t: int, a: int, b: int) -> None:
    v.h = v.h * 0.5 + v.u[t - 1 - a] * 0.3 + v.m[b % 7, :WIDTH] * 0.1


KINDS: dict[str, Callable[[Arrays, int, int, int], None]] = {
    "history": _history, "rows": _rows, "pieces": _pieces, "queue": _queue, "cells": _cells, "in place": _in_place,
    "window": _window, "number": _number, "phases": _phases, "list": _list, "vector": _vector,
}  # fmt: skip


def program(seed: int) -> Loop:
    rng = np.random.default_rng(seed)
    count, step = int(rng.integers(18, 40)), int(rng.choice([1, 1, 1, 2, -1]))
    turns = range(START, START + count * step, step) if step > 0 else range(START + count - 1, START - 1, -1)
    kinds = list(rng.choice(list(KINDS), int(rng.integers(1, 5))))
    statements = tuple([Statement(str(kind), *map(int, rng.integers(0, 9, 2))) for kind in kinds])
    inner = int(rng.choice([0, 0, -1, 2, 4]))
    return Loop(turns, statements, inner, bool(rng.random() < 0.5))


def loss(loop: Loop) -> Callable[..., Any]:
    def run(x: Any, u: Any, m: Any, s: Any) -> Any:
        v = Arrays(x, u, m, s)
        for t in loop.turns:
            for statement in loop.statements:
                KINDS[statement.kind](v, t, statement.a, statement.b)
            for j in range(t % 4 if loop.inner < 0 else loop.inner):
                v.s = 0.9 * v.s + 0.1 * v.m[j % 7, j % 5]
                if loop.writes:
                    v.m[j % 7, t % 5] = 0.9 * v.m[j % 7, j % 5] + 0.05 * v.s
        return v.loss()

    return run


def arguments(seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed + 1000)
    return (*(rng.uniform(0.2, 1.0, shape) for shape in ((96,), (96, WIDTH), (7, 5))), 0.7)
