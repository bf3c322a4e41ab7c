"""Random Python functions that branch on their arguments, and their values and slopes by dual numbers."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, math.inf, -math.inf, math.nan, 1e12)


@dataclass(frozen=True)
class Dual:
    """A number and its slope; Python decides by the number."""

    value: float
    slope: float = 0.0

    def __add__(self, other: Any) -> "Dual":
        other = dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> "Dual":
        other = dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: Any) -> "Dual":
        other = dual(other)
        return Dual(self.value / other.value, (self.slope - self.value / other.value * other.slope) / other.value)

    def __neg__(self) -> "Dual":
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> "Dual":
        return self + -dual(other)

    def __radd__(self, other: Any) -> "Dual":
        return self + other

    def __rmul__(self, other: Any) -> "Dual":
        return self * other

    def __rsub__(self, other: Any) -> "Dual":
        return -self + other

    def __abs__(self) -> "Dual":
        sign = math.copysign(1.0, self.value) if self.value else 0.0
        return Dual(abs(self.value), self.slope * sign)

    def __lt__(self, other: Any) -> bool:
        return self.value < dual(other).value

    def __le__(self, other: Any) -> bool:
        return self.value <= dual(other).value

    def __gt__(self, other: Any) -> bool:
        return self.value > dual(other).value

    def __ge__(self, other: Any) -> bool:
        return self.value >= dual(other).value

    def __eq__(self, other: object) -> bool:
        return self.value == dual(other).value

    def __ne__(self, other: object) -> bool:
        return self.value != dual(other).value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)


def dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(float(x))


class Writer:
    """Writes the source of a function of two floats and an integer."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def number(self) -> str:
        return str(self.rng.choice((0.5, -0.5, 1.0, 2.0, -1.5, 3.0, 0.25)))

    def value(self) -> str:
        name, other, c = self.rng.choice("ab"), self.rng.choice("ab"), self.number()
        return self.rng.choice(
            (
                f"{name} + {c}", f"{name} * {c}", f"{name} * {other} * 0.25", f"{c} - {name}", f"abs({name} - {c})",
                f"{name} / (1.0 + {other} * {other})", f"min({name}, {c})", f"max({name}, {other})", f"{name} * n",
                f"({name} if {self.condition()} else {other} * 2.0)", f"-{name}",
            )
        )  # fmt: skip

    def condition(self) -> str:
        name, other, c = self.rng.choice("ab"), self.rng.choice("ab"), self.number()
        return self.rng.choice(
            (
                f"{name} > {c}", f"{name} <= {other}", f"{name} == {other}", f"{name} != {c}", f"-1.0 < {name} <= {c}",
                f"not {name} < {c}", f"{name} > 0.0 and {other} < {c}", f"{name} > {c} or n % 2 == 0", "n > 2",
                f"{name} != {name}", "n in (1, 3)", f"{name}", f"any(v > {c} for v in (a, b))", "not (a >= b)",
            )
        )  # fmt: skip

    def block(self, depth: int, pad: str) -> list[str]:
        return [line for _ in range(self.rng.randint(1, 3)) for line in self.statement(depth, pad)]

    def statement(self, depth: int, pad: str) -> list[str]:
        inner = pad + "    "
        kind = self.rng.random() if depth else 0.0
        if kind < 0.45:
            return [f"{pad}{self.rng.choice('ab')} = {self.value()}"]
        if kind < 0.65:
            return [
                f"{pad}if {self.condition()}:", *self.block(depth - 1, inner),
                f"{pad}elif {self.condition()}:", *self.block(depth - 1, inner),
                f"{pad}else:", *self.block(depth - 1, inner),
            ]  # fmt: skip
        if kind < 0.75:
            return [f"{pad}k = 0", f"{pad}while abs(a) > {self.rng.choice((1.0, 2.0))} and k < 4:",
                    f"{inner}a = a * 0.5", f"{inner}k += 1", *self.block(depth - 1, inner)]  # fmt: skip
        if kind < 0.85:
            return [f"{pad}for k in range(n % 4):", f"{inner}if {self.condition()}:",
                    f"{inner}    {self.rng.choice(('break', 'continue'))}", *self.block(depth - 1, inner)]  # fmt: skip
        if kind < 0.92:
            return [f"{pad}try:", f"{inner}if {self.condition()}:", f"{inner}    raise KeyError",
                    *self.block(depth - 1, inner), f"{pad}except KeyError:", *self.block(depth - 1, inner)]  # fmt: skip
        if kind < 0.97:
            return [f"{pad}n = n + int(a)"]
        return [f"{pad}if {self.condition()}:", f"{inner}return a * 2.0"]


def random_function(seed: int) -> tuple[Callable[..., Any], str]:
    """A function f(a, b, n), and its source."""
    body = [line for _ in range(2) for line in Writer(seed).block(2, "    ")]
    source = "\n".join(["def f(a, b, n):", *body, "    return a * 1.0 + b * 0.5", ""])
    space: dict[str, Any] = {}
    exec(compile(source, f"<random decisions {seed}>", "exec"), space)
    return space["f"], source
