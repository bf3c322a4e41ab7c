"""Errors of compiled code: the numbers it gives back, and the NaNs, as exceptions with the user's line."""

import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.api.replay import failing_op, has_nan, nan_op
from pullback.api.staged import Staged
from pullback.errors import NanError, PathLimitError, PullbackError
from pullback.ir.failures import FAILURES, check_error, failure_error
from pullback.ir.graph import Function, Location, Op
from pullback.ir.opdef import Array
from pullback.tracer.location import describe


def code_error(staged: Staged, arguments: Sequence[Array], code: int) -> Exception:
    """The error behind a number that compiled code returned: a check of the tracer, or a library op that failed.

    Parameters
    ----------
    arguments : for the parameters of the staged program
    """
    check = next((c for c in staged.checks if c.code == code), None)
    if check is not None:
        return check_error(check.message)(f"{check.message}{describe(check.loc)}")
    op = failing_op(staged.function, arguments) if code in FAILURES else None
    error = failure_error(code)
    if error is None:
        return PullbackError(f"compiled code of {staged.function.name} returned the unknown error number {code}")
    return type(error)(f"{error}{described(op)}")


def described(op: Op | None) -> str:
    """The user's line of an op, for the end of a message; whether it is of the function or of its derivative."""
    if op is None or op.loc is None:
        return ""
    note = f", in the {op.loc.note} of" if op.loc.note else ""
    return f"{note}{describe(op.loc)}"


def stop_at_nan(staged: Staged, arguments: Sequence[Array], outcome: Sequence[Any]) -> None:
    """Raise NanError if a result is NaN.

    Parameters
    ----------
    arguments : for the parameters of the staged program
    outcome : the leaves of the result
    """
    if not any(map(has_nan, outcome)):
        return
    function = staged.function
    op = nan_op(function, arguments)
    if op is not None:
        raise NanError(f"{op.name} makes a NaN out of numbers{described(op)}")
    bad = next((p for p, a in zip(function.params, arguments, strict=True) if has_nan(a)), None)
    if bad is not None:
        raise NanError(f"{bad.hint or 'an argument'} of {function.name} has a NaN, and so has the result")
    raise NanError(f"a result of {function.name} is NaN in compiled code but not op by op; please report it")


def path_limit_error(function: Any, programs: Sequence[Staged], limit: int) -> PathLimitError:
    """Names the line whose decisions differ most from path to path, and shows how to write it in compiled form."""
    ways: dict[Location | None, set[tuple[int, ...]]] = {}
    for staged in programs:
        decisions: dict[Location | None, list[int]] = {}
        for guard in staged.guards:
            decisions.setdefault(guard.loc, []).append(guard.expected)
        for at, outcomes in decisions.items():
            ways.setdefault(at, set()).add(tuple(outcomes))
    loc = max(ways, key=lambda at: len(ways[at]), default=None)
    return PathLimitError(
        f"{function} took more than {limit} different Python paths for arguments of one type; the line below went "
        f"{len(ways.get(loc, ()))} different ways. Write it in compiled form, {structured_form(loc)}, or raise the "
        f"bound with PULLBACK=paths=N{describe(loc)}"
    )


def structured_form(loc: Location | None) -> str:
    """The compiled form of the Python statement on a line: of a loop, of a range with a run-time end, of a branch."""
    line = "" if loc is None else linecache.getline(loc.file, loc.line).strip()
    word, _, rest = line.partition(" ")
    condition = rest.rstrip().removesuffix(":") if rest.endswith(":") else "condition"
    if word == "while":
        return f"`state = pullback.while_loop(lambda state: {condition}, body, state)`"
    if word == "for":
        return "`state = pullback.fori_loop(0, n, body, state)`"
    condition = condition if word in ("if", "elif") else "condition"
    return f"`result = pullback.cond({condition}, then, otherwise, *operands)` (or np.where)"


def retracing_warning(function: Any, staged: Staged) -> str:
    """What keeps changing."""
    return (
        f"{function} is compiled again and again, because {staged.environment.changed() or 'something outside it'} has "
        "another value at each call; pass it as an argument"
    )


def arrays_for(function: Function, values: Sequence[Any]) -> list[Array]:
    """Plain arrays of the types of the parameters."""
    return [np.asarray(v, p.type.dtype) for v, p in zip(values, function.params, strict=True)]
