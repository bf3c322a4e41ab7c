"""Phis and counted loops."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from pullback.codegen.llvm.values import Operand, V, as_value

if TYPE_CHECKING:
    from pullback.codegen.llvm.builder import FunctionBuilder


class Phi:
    """A phi whose incoming edges may be added until the function is printed."""

    __slots__ = ("edges", "value")

    def __init__(self, value: V) -> None:
        self.value = value
        self.edges: list[tuple[V, str]] = []

    def add(self, value: Operand, label: str) -> None:
        """Say that `value` comes from the block `label`."""
        self.edges.append((as_value(self.value.type, value), label))

    def __str__(self) -> str:
        edges = ", ".join(f"[ {value.name}, %{label} ]" for value, label in self.edges)
        return f"  {self.value.name} = phi {self.value.type} {edges}"


class Loop:
    """A counted loop as a context: the body is what is emitted inside the `with`.

    The loop is emitted with its test at the end, behind a guard where the count may be zero, which is the form that
    LLVM would rotate it into.

    Attributes
    ----------
    index : the counter, `lo, lo + step, ...` below `hi`
    carry : values carried from turn to turn
    results : after the `with`: the last carried values
    """

    def __init__(
        self, builder: FunctionBuilder, bounds: tuple[V, V, int], carry: Sequence[V], guarded: bool, metadata: str
    ) -> None:
        self._builder = builder
        self._lo, self._hi, self._step = bounds
        self._initial = tuple(carry)
        self._guarded = guarded
        self._metadata = metadata
        self._next: tuple[V, ...] = self._initial
        self.index = self._lo
        self.carry: tuple[V, ...] = ()
        self.results: tuple[V, ...] = ()

    def turn(self, *values: V) -> None:
        """Give the carried values of the next turn."""
        self._next = values

    def __enter__(self) -> Loop:
        b = self._builder
        self._before = b.current
        self._body, self._exit = b.new_label("loop"), b.new_label("done")
        if self._guarded:
            b.condbr(b.icmp("slt", self._lo, self._hi), self._body, self._exit)
        else:
            b.br(self._body)
        b.label(self._body)
        self._index_phi = b.phi(self._lo.type, [(self._lo, self._before)])
        self._phis = [b.phi(value.type, [(value, self._before)]) for value in self._initial]
        self.index = self._index_phi.value
        self.carry = self._next = tuple(phi.value for phi in self._phis)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        if len(self._next) != len(self._initial):
            raise ValueError(f"loop carries {len(self._initial)} values but turn() gave {len(self._next)}")
        b = self._builder
        following = b.add(self.index, self._step, "nuw nsw" if self._step > 0 else "")
        again = b.icmp("slt", following, self._hi)
        latch = b.current
        b.condbr(again, self._body, self._exit, self._metadata)
        self._index_phi.add(following, latch)
        for phi, value in zip(self._phis, self._next, strict=True):
            phi.add(value, latch)
        b.label(self._exit)
        self.results = self._next
        if self._guarded:
            self.results = tuple(
                b.phi(old.type, [(old, self._before), (new, latch)]).value
                for old, new in zip(self._initial, self._next, strict=True)
            )
