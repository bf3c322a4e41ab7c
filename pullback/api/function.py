"""The callable that transforms return: compiled for each kind of arguments it meets, traced inside other traces."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback import driver
from pullback.api.call import Argnum, Call, leaf_ranges, make_call, static_places
from pullback.api.paths import Specialisation
from pullback.api.settings import current_options, in_force
from pullback.api.staged import Stage, Staged
from pullback.runtime.compiled import Miss
from pullback.runtime.function import NativeFunction
from pullback.tracer.entry import constant_of, inline
from pullback.tracer.layout import is_c_order
from pullback.tracer.trace import current


class Transformed(NativeFunction):
    """A function made by `grad`, `jit` and the like.

    Called with arrays it runs compiled code, made once for each combination of argument types and structure. Called
    while another function is being traced it becomes a part of that trace. It keeps the options in force where it was
    made.
    """

    def __init__(
        self, wrapped: Callable[..., Any], stage: Stage, kind: str, statics: frozenset[Argnum] = frozenset()
    ) -> None:
        super().__init__(dispatch, wrapped)
        self.kind = kind
        self.statics = static_places(wrapped, tuple(statics))
        self.options = current_options()
        self._stage = stage

    def __repr__(self) -> str:
        return f"<pullback {self.kind}({getattr(self, '__name__', '?')})>"

    def call_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        return make_call(args, kwargs, self.statics)

    def stage(self, call: Call) -> Staged:
        """The program for a call, under the options of this function."""
        with in_force(self.options):
            return self._stage(call)


def make_transformed(
    wrapped: Callable[..., Any], stage: Stage, kind: str, statics: frozenset[Argnum] = frozenset()
) -> Transformed:
    """A new callable, of the native type where the interpreter allows it."""
    if not callable(wrapped):
        raise TypeError(f"{kind} needs a function, got {type(wrapped).__name__}")
    made: Transformed = driver.runtime().function_type(Transformed)(wrapped, stage, kind, statics)
    return made


def dispatch(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], miss: Miss | None) -> Any:
    """Called when no compiled entry takes the arguments."""
    if current() is not None:
        return trace_inside(function, args, kwargs)
    if miss is None and function.installed:
        plain = _contiguous(args)
        if plain is not None:
            return function(*plain, **kwargs)
    call = function.call_of(args, kwargs)
    return specialisation(function, call).call(call, miss)


def _contiguous(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The arguments with strided arrays copied, as native code takes them; None if there are none. An array whose axes
    lie in another order in memory stays: the order may matter to the function."""
    copied = tuple([np.ascontiguousarray(a) if _is_strided(a) else a for a in args])
    return copied if any(x is not y for x, y in zip(copied, args, strict=True)) else None


def _is_strided(x: Any) -> bool:
    if type(x) is not np.ndarray or x.flags.c_contiguous or not x.ndim:
        return False
    return x.ndim == 1 or is_c_order(x.shape, x.strides)


def specialisation(function: Transformed, call: Call) -> Specialisation:
    """All that was compiled for calls like this one."""

    def build() -> Specialisation:
        return Specialisation(repr(function), function.stage, function.options, function.install)

    if function.options.cache == "off":
        return build()
    found: Specialisation = function.specialisations.get_or_build(call.key, build)
    return found


def trace_inside(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The call as part of the trace that runs: stage it, and put the program there."""
    call = function.call_of(args, kwargs)
    staged = function.stage(call)
    results = inline(staged.function, call.traced_values(), staged.extras, staged.outputs)
    leaves = [o.value if o.kind == "static" else constant_of(results[o.index]) for o in staged.outputs]
    return staged.out_tree.unflatten(leaves)


def positions(call: Call, located: Sequence[Argnum]) -> list[range]:
    """The leaf numbers of each located argument."""
    positional, keyword = leaf_ranges(call)
    return [positional[a] if isinstance(a, int) else keyword[a] for a in located]
