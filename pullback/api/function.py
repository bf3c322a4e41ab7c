"""The callable that transforms return: compiled for each kind of arguments it meets, traced inside other traces."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from types import MethodType
from typing import Any

from pullback import driver
from pullback.api.call import Argnum, Call, Same, leaf_ranges, make_call, static_places
from pullback.api.paths import Specialisation
from pullback.api.settings import current_options, in_force
from pullback.api.staged import Stage, Staged
from pullback.config import Options
from pullback.runtime.compiled import Miss
from pullback.runtime.function import NativeFunction, Specialisations
from pullback.tracer.entry import constant_of, inline
from pullback.tracer.trace import current

KEPT_RECIPES = 32
"""For so many functions what was compiled is kept though the callable that compiled it is gone."""


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
    ) -> None:
        super().__init__(dispatch, wrapped)
        self.kind = kind
        self.statics = static_places(wrapped, tuple(statics))
        self.options = current_options()
        self.recipe = Same(stage) if recipe is None else recipe
        self._stage = stage
        if recipe is not None and self.options.cache != "off":
            self.specialisations = _specialisations_of(recipe)

    def __repr__(self) -> str:
        return f"<pullback {self.kind}({getattr(self, '__name__', '?')})>"

    def call_of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        return make_call(args, kwargs, self.statics)

    def stage(self, call: Call) -> Staged:
        """The program for a call, under the options of this function."""
        with in_force(self.options):
            return self._stage(call)


def make_transformed(
    wrapped: Callable[..., Any],
    stage: Stage,
    kind: str,
    statics: frozenset[Argnum] = frozenset(),
    parameters: tuple[Any, ...] | None = None,
) -> Transformed:
    """A new callable, of the native type where the interpreter allows it.

    Parameters
    ----------
    parameters : all that `stage` depends on beside `wrapped` and `kind`; callables of the same recipe share what they
        compile, so that `grad(f)(x)` in a loop compiles once. None: it shares with none
    """
    if not callable(wrapped):
        raise TypeError(f"{kind} needs a function, got {type(wrapped).__name__}")
    recipe = None if parameters is None else (kind, identity_of(wrapped), statics, current_options(), *parameters)
    if not _is_hashable(recipe):
        recipe = None
    made: Transformed = driver.runtime().function_type(Transformed)(wrapped, stage, kind, statics, recipe)
    return made


def identity_of(function: Any) -> Hashable:
    """Equal for callables that are one and the same: a method of one object, transforms of one function."""
    if isinstance(function, Transformed):
        return function.recipe
    if type(function) is MethodType:
        return Same(function.__self__), Same(function.__func__)
    return Same(function)


def _is_hashable(thing: object) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=KEPT_RECIPES)
def _specialisations_of(recipe: Hashable) -> Specialisations[Any]:
    return Specialisations()


def dispatch(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], miss: Miss | None) -> Any:
    """Called when no compiled entry takes the arguments."""
    if current() is not None:
        return trace_inside(function, args, kwargs)
    call = function.call_of(args, kwargs)
    return specialisation(function, call).call(call, miss, function.install)


def specialisation(function: Transformed, call: Call) -> Specialisation:
    """All that was compiled for calls like this one."""

    def build() -> Specialisation:
        return Specialisation(repr(function), function.stage, function.options)

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


# ------------------------------------------------------------------ transforms that are made and called in one step


def kept(make: Callable[..., Any], fun: Callable[..., Any], has_aux: bool) -> Any:
    """What `make(fun, has_aux)` gives, kept for the next call with the same function: a loop of such calls compiles
    once."""
    if current() is not None:
        return make(fun, has_aux)
    return _kept(make, _Recipe(identity_of(fun), fun), has_aux, current_options())


class _Recipe:
    """A function, equal to another one if that has the same identity."""

    __slots__ = ("fun", "identity")

    def __init__(self, identity: Hashable, fun: Callable[..., Any]) -> None:
        self.identity = identity
        self.fun = fun

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Recipe) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


@lru_cache(maxsize=KEPT_RECIPES)
def _kept(make: Callable[..., Any], recipe: _Recipe, has_aux: bool, options: Options) -> Any:
    with in_force(options):
        return make(recipe.fun, has_aux)
