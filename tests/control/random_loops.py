"""Random small programs of loops and branches, each said twice: with `pullback`'s structured control flow, and in plain
Python that runs turn by turn.

A program is a tree of statements over a state of a number `s`, a vector `v` and a matrix `m`. `run` carries it out; the
`Flow` it is given decides what loops and branches are.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

import pullback as pb

SIZE = 3
State = tuple[Any, Any, Any]
Body = Callable[[Any, State], State]


class Given(NamedTuple):
    """What a program reads beside its state: rows of a scan, and a count that is known at run time only."""

    rows: Any
    count: Any


class Flow(Protocol):
    """How the loops and branches of a program are carried out."""

    def fori(self, start: Any, stop: Any, body: Body, state: State) -> State: ...

    def loop_until(self, bound: float, most: int, body: Body, state: State) -> State: ...

    def scan(self, rows: Any, reverse: bool, body: Body, state: State) -> tuple[State, Any]: ...

    def choose(
        self, flag: Any, left: Callable[[State], State], right: Callable[[State], State], state: State
    ) -> State: ...


class Structured:
    """As compiled loops and branches."""

    def fori(self, start: Any, stop: Any, body: Body, state: State) -> State:
        return pb.fori_loop(start, stop, body, state)  # type: ignore[no-any-return]

    def loop_until(self, bound: float, most: int, body: Body, state: State) -> State:
        def holds(carry: Any) -> Any:
            return (carry[0] < most) & (np.abs(carry[1][0]) < bound)

        return pb.while_loop(holds, lambda c: (c[0] + 1, body(c[0], c[1])), (0, state))[1]  # type: ignore[no-any-return]

    def scan(self, rows: Any, reverse: bool, body: Body, state: State) -> tuple[State, Any]:
        def step(carry: Any, row: Any) -> Any:
            after = body(0, _with_row(carry, row))
            return after, after[0] * after[1]

        return pb.scan(step, state, rows, reverse=reverse)

    def choose(self, flag: Any, left: Callable[[State], State], right: Callable[[State], State], state: State) -> State:
        return pb.cond(flag, left, right, state)  # type: ignore[no-any-return]


class Turns:
    """Turn by turn, as Python does."""

    def fori(self, start: Any, stop: Any, body: Body, state: State) -> State:
        for i in range(int(start), int(stop)):
            state = body(i, state)
        return state

    def loop_until(self, bound: float, most: int, body: Body, state: State) -> State:
        k = 0
        while k < most and np.abs(state[0]) < bound:
            state = body(k, state)
            k += 1
        return state

    def scan(self, rows: Any, reverse: bool, body: Body, state: State) -> tuple[State, Any]:
        stacked = []
        for row in rows[::-1] if reverse else rows:
            state = body(0, _with_row(state, row))
            stacked.append(state[0] * state[1])
        return state, np.stack(stacked[::-1] if reverse else stacked)

    def choose(self, flag: Any, left: Callable[[State], State], right: Callable[[State], State], state: State) -> State:
        return left(state) if flag else right(state)


def _with_row(state: State, row: Any) -> State:
    s, v, m = state
    return s + 0.1 * row[0], v * row, m


# ------------------------------------------------------------------ statements


class Statement(NamedTuple):
    """`kind` says what is done, `numbers` how, `inner` are the statements inside."""

    kind: str
    numbers: tuple[int, ...] = ()
    inner: tuple[tuple["Statement", ...], ...] = ()


SIMPLE = ("mix", "turn", "product", "put", "put back", "add slice", "put corner", "grow", "swap", "clip")
NESTED = ("fori", "fori to count", "until", "scan", "choose", "choose on index")


def program(seed: int) -> tuple[Statement, ...]:
    """A random program; at least one of its statements is a loop."""
    rng = np.random.default_rng(seed)
    return (*_block(rng, 0, int(rng.integers(0, 2))), _nested(rng, 0), *_block(rng, 0, int(rng.integers(0, 3))))


def _block(rng: np.random.Generator, depth: int, count: int) -> tuple[Statement, ...]:
    return tuple([
        _nested(rng, depth) if depth < 3 and rng.random() < 0.35 else _simple(rng) for _ in range(count)
    ])  # fmt: skip


def _simple(rng: np.random.Generator) -> Statement:
    return Statement(str(rng.choice(SIMPLE)), tuple(rng.integers(0, 6, 3).tolist()))


def _nested(rng: np.random.Generator, depth: int) -> Statement:
    kind = str(rng.choice(NESTED))
    bodies = 2 if kind.startswith("choose") else 1
    inner = tuple([_block(rng, depth + 1, int(rng.integers(1, 4))) for _ in range(bodies)])
    return Statement(kind, tuple(rng.integers(0, 6, 3).tolist()), inner)


# ------------------------------------------------------------------ carrying a program out


def run(statements: tuple[Statement, ...], flow: Flow, given: Given, state: State, i: Any = 0) -> State:
    """The state after the statements; `i` is the turn of the innermost loop around them."""
    for statement in statements:
        nested = bool(statement.inner)
        state = _run_nested(statement, flow, given, state, i) if nested else _run_simple(statement, state, i)
    return state


def _run_nested(statement: Statement, flow: Flow, given: Given, state: State, i: Any) -> State:
    (a, b, c), bodies = statement.numbers, statement.inner

    def body(turn: Any, inside: State) -> State:
        return run(bodies[0], flow, given, inside, turn)

    match statement.kind:
        case "fori":
            return flow.fori(a % 3, a % 3 + b % 4, body, state)
        case "fori to count":
            return flow.fori(a % 2, given.count - c % 2, body, state)
        case "until":
            return flow.loop_until(1.0 + 0.4 * a, 2 + b, body, state)
        case "scan":
            (s, v, m), stacked = flow.scan(given.rows, c % 2 == 0, body, state)
            return s + 0.05 * np.sum(stacked[a % len(given.rows)]), v, m
    s, v, _ = state
    flag = (i + a) % 2 == 0 if statement.kind == "choose on index" else v[a % SIZE] > s - 0.3
    return flow.choose(flag, *[_branch(inner, flow, given, i) for inner in bodies], state)


def _branch(inner: tuple[Statement, ...], flow: Flow, given: Given, i: Any) -> Callable[[State], State]:
    return lambda state: run(inner, flow, given, state, i)


def _run_simple(statement: Statement, state: State, i: Any) -> State:
    s, v, m = state
    a, b, c = statement.numbers
    where = (i + a) % SIZE
    match statement.kind:
        case "mix":
            return np.tanh(s * 0.7 + v[where] * 0.4), v, m
        case "turn":
            return s, np.sin(v + 0.3 * s) * (1.0 + 0.1 * b), m
        case "product":
            return s, 0.5 * (m @ v) + v * 0.2, m
        case "put":
            v[where] = s * 0.5 + v[b % SIZE] ** 2 * 0.3
        case "put back":
            v[-1 - where] *= 0.8 + 0.1 * s
        case "add slice":
            v[:where] += 0.1 * m[b % SIZE, :where]
        case "put corner":
            m[where, c % SIZE] = 0.6 * s + 0.2 * m[b % SIZE, where]
        case "grow":
            return s * 0.5 + 0.1 * np.sum(m[where, :where] * v[:where]), v, m
        case "swap":
            row = m[where] * 1.0
            m[where] = 0.9 * v
            return s, row * 0.5 + 0.1 * v, m
        case "clip":
            return np.maximum(s, 0.2 * v[where]) * 0.9, np.clip(v, -1.0, 1.5), m
    return s, v, m


def loss(statements: tuple[Statement, ...], flow: Flow) -> Callable[..., Any]:
    """The program as a function of its first state, the rows and the count, to a number."""

    def value(s: Any, v: Any, m: Any, rows: Any, count: Any) -> Any:
        s, v, m = run(statements, flow, Given(rows, count), (s * 1.0, v * 1.0, m * 1.0))
        return s**2 + np.sum(np.cos(v)) + 0.1 * np.sum(m**2)

    return value


def arguments(seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed + 10_000)
    parts = [rng.normal(size=shape) for shape in ((), (SIZE,), (SIZE, SIZE), (4, SIZE))]
    return (float(parts[0]), *parts[1:], int(rng.integers(0, 5)))
