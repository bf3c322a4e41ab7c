"""Programs with long Python loops, as people write them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def _numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(0.2, 1.0, shape)


def step_by_step() -> Any:
    def f(x: Any) -> Any:
        for _ in range(150):
            x = np.sin(x) * 0.9 + x * 0.05
        return x.sum()

    return f, (_numbers(5),)


def table() -> Any:
    weights = np.cos(np.arange(120.0))

    def f(x: Any) -> Any:
        for t in range(120):
            x = np.sin(x) * weights[t] + 0.01 * t
        return x.sum()

    return f, (_numbers(4),)


def recurrence() -> Any:
    def f(x: Any, a: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = x[0]
        for i in range(1, 60):
            y[i] = a * y[i - 1] + x[i]
        return (y * y).sum()

    return f, (_numbers(60), 0.7)


def coupled() -> Any:
    def f(x: Any, a: Any) -> Any:
        y, z = np.zeros(60), np.zeros(60)
        y[0], z[0] = x[0], a
        for i in range(1, 60):
            y[i] = a * z[i - 1] + x[i]
            z[i] = np.cos(y[i]) + y[i - 1] * 0.1
        return (y * z).sum()

    return f, (_numbers(60), 0.7)


def sweeps() -> Any:
    def f(u: Any) -> Any:
        for i in range(1, 19):
            for j in range(1, 19):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        return (u**2).sum()

    return f, (_numbers(20, 20),)


def relaxation() -> Any:
    def f(u: Any, w: Any) -> Any:
        for _ in range(20):
            for i in range(1, 4):
                for j in range(1, 4):
                    u[i, j] = (1 - w) * u[i, j] + w * 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
        return (u**2).sum()

    return f, (_numbers(5, 5), 1.2)


def horner() -> Any:
    def f(c: Any, x: Any) -> Any:
        r = c[-1]
        for k in range(118, -1, -1):
            r = r * x + c[k]
        return r

    return f, (_numbers(120), 0.9)


def elimination() -> Any:
    n = 50

    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        cp, dp, x = np.zeros(n), np.zeros(n), np.zeros(n)
        cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
        for i in range(1, n):
            m = b[i] - a[i] * cp[i - 1]
            cp[i] = c[i] / m
            dp[i] = (d[i] - a[i] * dp[i - 1]) / m
        x[n - 1] = dp[n - 1]
        for i in range(n - 2, -1, -1):
            x[i] = dp[i] - cp[i] * x[i + 1]
        return (x * x).sum()

    return f, (_numbers(n), _numbers(n, seed=1) + 3, _numbers(n, seed=2), _numbers(n, seed=3))


def cells() -> Any:
    def f(xs: Any, w: Any, u: Any, b: Any, h: Any, c: Any) -> Any:
        loss = 0.0
        for t in range(len(xs)):
            i, g, o, q = np.split(xs[t] @ w + h @ u + b, 4)
            c = 1 / (1 + np.exp(-g)) * c + np.tanh(o) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-q))
            loss += (h * h).sum()
        return loss

    return f, (_numbers(24, 3), _numbers(3, 16), _numbers(4, 16), _numbers(16), np.zeros(4), np.zeros(4))


def stacked() -> Any:
    def f(x: Any, w: Any) -> Any:
        out, s = [], np.zeros(3)
        for t in range(80):
            s = np.tanh(w @ s + x[t])
            out.append(s)
        return (np.stack(out) * np.arange(240.0).reshape(80, 3)).sum() + np.stack(out[::-1], axis=1)[0, 3]

    return f, (_numbers(80, 3), _numbers(3, 3))


def accumulated() -> Any:
    def f(x: Any) -> Any:
        s = 0.0
        for i in range(80):
            s += np.exp(-x[i]) * np.sin(x[i])
        return s

    return f, (_numbers(80),)


def pairs() -> Any:
    def f(x: Any) -> Any:
        s = 0.0
        for i in range(18):
            for j in range(18):
                s += np.exp(-((x[i] - x[j]) ** 2))
        return s

    return f, (_numbers(18),)


def one_by_one() -> Any:
    def f(x: Any) -> Any:
        y = np.zeros(80)
        for i in range(80):
            y[i] = np.sin(x[i]) * 2 + x[79 - i]
        return (y * y).sum()

    return f, (_numbers(80),)


def two_back() -> Any:
    def f(x: Any) -> Any:
        a, b = x, x * 0.5
        for _ in range(90):
            a, b = b, np.sin(a) * 0.7 + b * 0.2
        return (a * b).sum()

    return f, (_numbers(4),)


def many_back() -> Any:
    def f(x: Any, a: Any) -> Any:
        y = np.zeros(60)
        y[:12] = x[:12]
        for t in range(12, 60):
            y[t] = a * y[t - 12] + np.sin(y[t - 1]) + x[t]
        return (y**2).sum()

    return f, (_numbers(60), 0.3)


def history() -> Any:
    def f(u0: Any, k: Any) -> Any:
        u = np.zeros((40, 8))
        u[0] = u0
        for t in range(1, 40):
            u[t, 1:-1] = u[t - 1, 1:-1] + k * (u[t - 1, 2:] - 2 * u[t - 1, 1:-1] + u[t - 1, :-2])
        return (u**2).sum()

    return f, (_numbers(8), 0.2)


def alignment() -> Any:
    def f(a: Any) -> Any:
        d = np.zeros((21, 21))
        for i in range(20):
            for j in range(20):
                d[i + 1, j + 1] = np.logaddexp(np.logaddexp(d[i, j], d[i + 1, j]), d[i, j + 1]) + a[i, j]
        return d[20, 20]

    return f, (_numbers(20, 20),)


def rows_in_pieces() -> Any:
    def f(u0: Any, k: Any) -> Any:
        u = np.zeros((40, 12))
        u[0] = u0
        for t in range(39):
            u[t + 1, 1:-1] = u[t, 1:-1] + k * (u[t, 2:] - 2 * u[t, 1:-1] + u[t, :-2])
            u[t + 1, 0] = u[t + 1, 1]
            u[t + 1, -1] = u[t + 1, -2]
        return (u**2).sum()

    return f, (_numbers(12), 0.2)


def rows_written_twice() -> Any:
    def f(x: Any, w: Any) -> Any:
        u = np.zeros((60, 3))
        u[0] = x[0]
        for t in range(1, 60):
            u[t] = u[t - 1] + 0.1 * np.sin(w @ u[t - 1])
            u[t] += x[t]
        return (u**2).sum()

    return f, (_numbers(60, 3), _numbers(3, 3))


def layers() -> Any:
    def f(*parameters: Any) -> Any:
        h = np.ones(3)
        for w, b in zip(parameters[::2], parameters[1::2], strict=True):
            h = np.tanh(w @ h + b) + 0.1 * h + 0.01 * h**2
        return (h**2).sum()

    made = [(_numbers(3, 3, seed=k), _numbers(3, seed=k)) for k in range(60)]
    return f, tuple([array for layer in made for array in layer])


def columns_in_pieces() -> Any:
    def f(x: Any) -> Any:
        u = np.zeros((5, 70))
        u[:, 0] = x
        for t in range(1, 70):
            u[1:, t] = np.cos(u[:-1, t - 1])
            u[0, t] = u[4, t] * 0.3
        return (u**2).sum()

    return f, (_numbers(5),)


def diagonals() -> Any:
    def f(a: Any, x: Any) -> Any:
        s = 0.0
        for i in range(40):
            a[i, i] = a[i, i] * 2 + x[i]
            s = s * 0.5 + a[i, 39 - i]
        return s + a.sum()

    return f, (_numbers(40, 40), _numbers(40))


def windows() -> Any:
    def f(x: Any, w: Any) -> Any:
        y = np.zeros(76)
        for i in range(76):
            y[i] = (x[i : i + 5] * w).sum()
        return (y * y).sum()

    return f, (_numbers(80), _numbers(5))


def blocks() -> Any:
    def f(x: Any, w: Any) -> Any:
        y = np.zeros(300)
        for i in range(100):
            y[3 * i : 3 * i + 3] = w @ x[3 * i : 3 * i + 3]
        return (y * y).sum()

    return f, (_numbers(300), _numbers(3, 3))


def by_elements() -> Any:
    def f(a: Any, x: Any) -> Any:
        y = np.zeros(24)
        for i in range(24):
            for j in range(24):
                y[i] += a[i, j] * x[j]
        return (y * y).sum()

    return f, (_numbers(24, 24), _numbers(24))


def alternating() -> Any:
    def f(x: Any, a: Any, b: Any) -> Any:
        for t in range(160):
            x = np.sin(x) + a if t % 2 else np.cos(x) * b
        return x.sum()

    return f, (_numbers(3), 0.3, 0.7)


def out_of_order() -> Any:
    def f(w: Any, x: Any, y: Any) -> Any:
        for t in range(60):
            i = (t * 7) % 20
            w = w - 0.01 * (x[i] @ w - y[i]) * x[i]
        return (w * w).sum()

    return f, (_numbers(3), _numbers(20, 3), _numbers(20))


def scattered() -> Any:
    places = np.random.default_rng(0).integers(0, 9, (80, 2)).tolist()

    def f(x: Any) -> Any:
        for i, j in places:
            x[i] = x[i] * 0.5 + x[j]
        return (x * x).sum()

    return f, (_numbers(9),)


def both_ways() -> Any:
    def f(x: Any) -> Any:
        for i in range(1, 60):
            x[i] = x[i] + 0.5 * x[i - 1] ** 2
        for i in range(58, -1, -1):
            x[i] = x[i] * 0.3 + x[i + 1]
        return (x * x).sum()

    return f, (_numbers(60) * 0.3,)


def over_a_list() -> Any:
    def f(x: Any) -> Any:
        products = [x[i] * x[i + 1] for i in range(99)]
        s = 0.0
        for p in products:
            s = np.tanh(s + p)
        return s + np.array(products).mean()

    return f, (_numbers(100),)


def growing() -> Any:
    def f(a: Any) -> Any:
        for i in range(1, 40):
            a[i] = a[i] - a[i, :i] @ a[:i] * 0.01
        return a.sum()

    return f, (_numbers(40, 40),)


def triangles() -> Any:
    n = 12
    root = _numbers(n, n)

    def f(a: Any) -> Any:
        low = np.zeros((n, n))
        for i in range(n):
            for j in range(i + 1):
                s = a[i, j]
                for k in range(j):
                    s = s - low[i, k] * low[j, k]
                low[i, j] = np.sqrt(s) if i == j else s / low[j, j]
        return np.log(np.diag(low)).sum()

    return f, (root @ root.T + n * np.eye(n),)


def decisions() -> Any:
    def f(x: Any) -> Any:
        for _ in range(100):
            x = np.sin(x) * 0.9 if x.sum() > 0 else np.cos(x)
        return x.sum()

    return f, (_numbers(3),)


PROGRAMS: dict[str, Program] = {
    "step by step": step_by_step, "a table of constants": table, "recurrence": recurrence, "coupled": coupled,
    "sweeps": sweeps, "relaxation": relaxation, "horner": horner, "elimination": elimination, "cells": cells,
    "stacked outputs": stacked, "accumulated": accumulated, "pairs": pairs, "one by one": one_by_one,
    "two values back": two_back, "many values back": many_back, "alignment": alignment, "layers": layers,
    "rows of history": history, "rows in pieces": rows_in_pieces, "columns in pieces": columns_in_pieces,
    "rows written twice": rows_written_twice, "diagonals": diagonals, "windows": windows, "blocks": blocks,
    "by elements": by_elements, "alternating": alternating, "scattered": scattered,
    "out of order": out_of_order, "both ways in place": both_ways, "over a list": over_a_list,
}  # fmt: skip
STAY: dict[str, Program] = {"shapes that grow": growing, "decisions": decisions, "triangles": triangles}
