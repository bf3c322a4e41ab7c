"""jit: a function compiled as it is; and what can be asked of compiled functions."""

from collections.abc import Callable
from typing import Any

from pullback import driver
from pullback.api.call import Argnums, Call, as_argnums
from pullback.api.function import Transformed, make_transformed
from pullback.api.staged import Staged, stage_plain
from pullback.errors import ArgumentError


def jit(fun: Callable[..., Any], *, static_argnums: Argnums = (), static_argnames: Argnums = ()) -> Any:
    """Compile a function of NumPy arrays.

    Parameters
    ----------
    static_argnums, static_argnames : arguments that are not arrays, told apart by value

    Returns
    -------
    A function of the same arguments and results. Results are fresh arrays; arguments are never written to.
    """
    statics = frozenset(
        [*as_argnums(static_argnums, "static_argnums"), *as_argnums(static_argnames, "static_argnames")]
    )

    def stage(call: Call) -> Staged:
        return stage_plain(fun, call)

    again = (jit, (fun,), {"static_argnums": static_argnums, "static_argnames": static_argnames})

    return make_transformed(fun, stage, "jit", statics, (), again)


def lower(function: Any, *args: Any, **kwargs: Any) -> Staged:
    """The program of a transformed function for these arguments, traced and differentiated but not yet optimised.

    Raises
    ------
    ArgumentError : `function` was not made by pullback.
    """
    if not isinstance(function, Transformed):
        raise ArgumentError(f"{function!r} was not made by grad, jit or another transform of pullback")
    return function.stage(function.call_of(args, kwargs))


def ops_before_and_after(function: Any, *args: Any, **kwargs: Any) -> dict[str, int]:
    """How many ops the program for these arguments has when traced, optimised and planned (kernels)."""
    log, staged = driver.Log(), lower(function, *args, **kwargs)
    driver.planned(driver.optimised(staged.function, function.options, log), function.options, log)
    return dict(log.ops)
