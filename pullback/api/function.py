"""The callable that transforms return: compiled for each kind of arguments it meets, traced inside other traces."""

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from pullback import driver
from pullback.api.call import Argnum, Call, Same, leaf_ranges, make_call, static_places
from pullback.api.kept import identity_of, is_hashable, store_of
from pullback.api.paths import Specialisation
from pullback.api.settings import current_options, in_force
from pullback.api.staged import Stage, Staged
from pullback.config import Options
from pullback.runtime.compiled import Miss
from pullback.runtime.function import NativeFunction, Specialisations
from pullback.tracer.entry import constant_of, inline
from pullback.tracer.trace import current

Remake = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A transform, and the arguments that it is called with to make a callable once more where that is unpickled."""


class Transformed(NativeFunction):
    """A function made by `grad`, `jit` and the like.

    Called with arrays it runs compiled code, made once for each combination of argument types and structure. Called
    while another function is being traced it becomes a part of that trace. It keeps the options in force where it was
    made.
    """

    def __init__(
        self,
        wrapped: Callable[..., Any],
        stage: Stage,
        kind: str,
        statics: frozenset[Argnum] = frozenset(),
        recipe: Hashable = None,
        remake: Remake | None = None,
    ) -> None:
        super().__init__(dispatch, wrapped)
        self.kind = kind
        self.statics = static_places(wrapped, tuple(statics))
        self.options = current_options()
        self.recipe = Same(stage) if recipe is None else recipe
        self._stage = stage
        self._remake = remake
        if recipe is not None and self.options.cache != "off":
            self.specialisations = store_of(innermost(wrapped)).get(recipe, Specialisations)

    def __reduce__(self) -> Any:
        """A transform that a module holds under the name of its function, as a decorator leaves it, is pickled by that
        name; another one as the function, and what was made of it."""
        if _named(self.__module__, self.__qualname__) is self:
            return self.__qualname__
        if self._remake is None:
            return super().__reduce__()
        return remade, (*self._remake, self.options)

    def __repr__(self) -> str:
        return f"<pullback {self.kind}({getattr(self, '__name__', '?')})>"

    def call_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        return make_call(args, kwargs, self.statics)

    def stage(self, call: Call) -> Staged:
        """The program for a call, under the options of this function."""
        return staged_under(self.options, self._stage, call)


def staged_under(options: Options, stage: Stage, call: Call) -> Staged:
    with in_force(options):
        return stage(call)


def _named(module: str, name: str) -> Any:
    """What a module that is loaded holds under a name with dots."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def make_transformed(
    wrapped: Callable[..., Any],
    stage: Stage,
    kind: str,
    statics: frozenset[Argnum] = frozenset(),
    parameters: tuple[Any, ...] | None = None,
    remake: Remake | None = None,
) -> Transformed:
    """A new callable, of the native type where the interpreter allows it.

    Parameters
    ----------
    parameters : all that `stage` depends on beside `wrapped` and `kind`; callables of the same recipe share what they
        compile, so that `grad(f)(x)` in a loop compiles once. None: it shares with none
    """
    if not callable(wrapped):
        raise TypeError(f"{kind} needs a function, got {type(wrapped).__name__}")
    recipe = None if parameters is None else (kind, recipe_of(wrapped), statics, current_options(), *parameters)
    if not is_hashable(recipe):
        recipe = None
    made: Transformed = driver.runtime().function_type(Transformed)(wrapped, stage, kind, statics, recipe, remake)
    return made


def recipe_of(function: Any) -> Hashable:
    """Equal for callables that do the same: one function, or the same transforms of one function."""
    return function.recipe if isinstance(function, Transformed) else identity_of(function)


def innermost(function: Any) -> Any:
    """The user's function in a transform of a transform."""
    while isinstance(function, Transformed):
        function = function.__wrapped__
    return function


def remade(make: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Any:
    """A transform that was pickled: made once more, under the options it had."""
    with in_force(options):
        return make(*args, **kwargs)


def dispatch(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], miss: Miss | None) -> Any:
    """Called when no compiled entry takes the arguments."""
    if current() is not None:
        return trace_inside(function, args, kwargs)
    call = function.call_of(args, kwargs)
    return specialisation(function, call).call(call, miss, function.install)


def specialisation(function: Transformed, call: Call) -> Specialisation:
    """All that was compiled for calls like this one."""

    def build() -> Specialisation:
        stage = partial(staged_under, function.options, function._stage)  # the callable itself may be dropped
        return Specialisation(repr(function), stage, function.options)

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


def kept(make: Callable[..., Any], fun: Callable[..., Any], has_aux: bool) -> Any:
    """What `make(fun, has_aux)` gives, kept for the next call with the same function: transforms that are made and
    called in one step compile once. It is made under the options in force now."""
    if current() is not None:
        return make(fun, has_aux)
    key = (make, recipe_of(fun), has_aux, current_options())
    return store_of(innermost(fun)).get(key, lambda: make(fun, has_aux))
