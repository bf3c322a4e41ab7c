"""Values and gradients as differentiation and simplification leave them, for the tests of fusion and of memory."""

import re

from pullback.ir.emit import Emitter, Expr
from pullback.ir.graph import Function
from pullback.ir.types import F64
from tests.passes.making import make, total

Exprs = tuple[Expr, ...]
NO_BATCH = ((), ())


def rows(x: Expr, like: Expr) -> Expr:
    """One number for each row, along the row."""
    return x.f.expand(x, (1,), like.shape)


def chain(f: Emitter, x: Expr) -> Exprs:
    y = f.exp(f.sin(x) * 0.5)
    z = f.tanh(y)
    return total(z) * 1e-4, (f.full_like(z, 1.0) - z * z) * y * f.cos(x) * 0.5


def black_scholes(f: Emitter, s: Expr, k: Expr, t: Expr, r: Expr, v: Expr) -> Exprs:
    """Sum of call prices, and delta, strike gradient, theta, rho and vega of each option."""
    root = f.sqrt(t)
    d1 = (f.log(s / k) + (r + v * v * 0.5) * t) / (v * root)
    d2 = d1 - v * root
    n1, n2 = (f.erf(d * 0.5**0.5) * 0.5 + 0.5 for d in (d1, d2))
    discount = k * f.exp(-(r * t))
    density = f.exp(d1 * d1 * -0.5) * 0.3989422804014327
    vega = s * density * root
    theta = vega * v / (t * 2.0) + r * discount * n2
    return total(s * n1 - discount * n2), n1, -(discount * n2) / k, theta, discount * n2 * t, vega


def redundant(f: Emitter, x: Expr, y: Expr) -> Exprs:
    """Shared subexpressions in value and gradient."""
    e, s = f.exp(x * y), f.sin(x + y)
    c = f.cos(x + y)
    return total(e * s + e * e + s * s), (e * s * y + e * c) + e * e * y * 2.0 + s * c * 2.0, e * s * x + e * c


def rosenbrock(f: Emitter, x: Expr) -> Exprs:
    n = x.shape[0]
    upper = f.slice(x, start=(1,), stop=(n,), step=(1,))
    lower = f.slice(x, start=(0,), stop=(n - 1,), step=(1,))
    t, u = upper - lower * lower, lower * -1.0 + 1.0
    r = t * 200.0
    left = f.pad(lower * r * -2.0 - u * 2.0, low=(0,), high=(1,), interior=(0,))
    return total(t * t * 100.0 + u * u), f.pad(r, low=(1,), high=(0,), interior=(0,)) + left


def softmax(f: Emitter, x: Expr) -> Exprs:
    e = f.exp(x - rows(f.max(x, axes=(1,), ties="equal"), x))
    p = e / rows(f.sum(e, axes=(1,)), x)
    return total(p * p), (p * 2.0 - rows(f.sum(p * 2.0 * p, axes=(1,)), x)) * p


def logsumexp(f: Emitter, x: Expr) -> Exprs:
    m = f.max(x, axes=(1,), ties="equal")
    e = f.exp(x - rows(m, x))
    s = f.sum(e, axes=(1,))
    return total(f.log(s) + m), e * rows(f.full_like(s, 1.0) / s, x)


def max_with_ties(f: Emitter, x: Expr) -> Exprs:
    m = f.max(x, axes=(1,), ties="equal")
    mask = f.astype(x.eq(rows(m, x)), F64)
    ties = f.sum(mask, axes=(1,))
    return total(m), mask * rows(f.full_like(ties, 1.0) / ties, x)


def logistic_regression(f: Emitter, w: Expr, x: Expr, y: Expr) -> Exprs:
    margin = f.dot_general(x, w, contract=((1,), (0,)), batch=NO_BATCH) * y
    n = float(y.shape[0])
    loss = total(f.logaddexp(f.full_like(margin, 0.0), -margin)) / n + total(w * w) * 0.01
    residual = -y / (f.exp(margin) + 1.0) / n
    return loss, f.dot_general(x, residual, contract=((0,), (0,)), batch=NO_BATCH) + w * 0.02


def mlp(f: Emitter, x: Expr, w1: Expr, b1: Expr, w2: Expr, b2: Expr, y: Expr) -> Exprs:
    def dot(a: Expr, b: Expr, left: int, right: int) -> Expr:
        return f.dot_general(a, b, contract=((left,), (right,)), batch=NO_BATCH)

    n = float(x.shape[0])
    z = dot(x, w1, 1, 0)
    h = f.tanh(z + f.broadcast_to(b1, z.shape, (1,)))
    o = dot(h, w2, 1, 0)
    o = o + f.broadcast_to(b2, o.shape, (1,))
    m = f.max(o, axes=(1,), ties="equal")
    e = f.exp(o - rows(m, o))
    s = f.sum(e, axes=(1,))
    loss = (total(f.log(s) + m) - total(o * y)) / n
    do = (e / rows(s, o) - y) / n
    dz = dot(do, w2, 1, 1) * (f.full_like(h, 1.0) - h * h)
    return loss, dot(x, dz, 0, 0), f.sum(dz, axes=(0,)), dot(h, do, 0, 0), f.sum(do, axes=(0,))


def pairwise_energy(f: Emitter, x: Expr, y: Expr) -> Exprs:
    n = x.shape[0]
    dx, dy = (f.broadcast_to(v, (n, n), (0,)) - f.broadcast_to(v, (n, n), (1,)) for v in (x, y))
    square = dx * dx + dy * dy + 0.1
    root = f.sqrt(square)
    c = f.full_like(square, -1.0) / (square * root)
    sums = [f.sum(c * d, axes=(1,)) - f.sum(c * d, axes=(0,)) for d in (dx, dy)]
    return total(f.full_like(root, 1.0) / root), *sums


def heat(turns: int) -> Function:
    """Turns of an explicit step on a grid of 64 x 64, written with slices and pads."""

    def step(f: Emitter, u: Expr) -> Expr:
        a, b = u.shape

        def part(down: int, right: int) -> Expr:
            return f.slice(u, start=(down, right), stop=(a - 2 + down, b - 2 + right), step=(1, 1))

        change = (part(0, 1) + part(2, 1) + part(1, 0) + part(1, 2) - part(1, 1) * 4.0) * 0.1
        return u + f.pad(change, low=(1, 1), high=(1, 1), interior=(0, 0))

    def build(f: Emitter, u: Expr) -> Expr:
        for _ in range(turns):
            u = step(f, u)
        return total(u * u)

    return make("f64[64,64]", build)


def sine_chain(length: int, type: str = "f64[1000]") -> Function:
    """Value and gradient of sin(sin(...)): each cosine needs its forward value."""

    def build(f: Emitter, x: Expr) -> Exprs:
        values = [x]
        for _ in range(length):
            values.append(f.sin(values[-1]))
        ct = f.full_like(x, 1.0)
        for y in reversed(values[:-1]):
            ct = ct * f.cos(y)
        return total(values[-1]), ct

    return make(type, build)


WORKLOADS = {
    "chain": ("f64[10000]", chain),
    "black_scholes": ("f64[1000000] " * 5, black_scholes),
    "redundant": ("f64[1000000] f64[1000000]", redundant),
    "rosenbrock": ("f64[1000]", rosenbrock),
    "softmax": ("f64[1000,1000]", softmax),
    "logsumexp": ("f64[1000,1000]", logsumexp),
    "max_with_ties": ("f64[1000,1000]", max_with_ties),
    "logistic_regression": ("f64[10] f64[100,10] f64[100]", logistic_regression),
    "mlp": ("f64[32,64] f64[64,64] f64[64] f64[64,10] f64[10] f64[32,10]", mlp),
    "pairwise_energy": ("f64[1000] f64[1000]", pairwise_energy),
}


def workload(name: str) -> Function:
    types, build = WORKLOADS[name]
    return make(types, build, name)


def small_workload(name: str) -> Function:
    """The same over some ten rows and columns."""
    types, build = WORKLOADS[name]
    return make(re.sub("10{3,}", "12", types), build, name)
