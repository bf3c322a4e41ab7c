"""What a command line names: a function in a file, and the types or values of its arguments."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ParseError
from pullback.ir.types import TensorType, parse_type


class UsageError(Exception):
    """Something on the command line that cannot be used; one clear line, exit status 2."""


def load_function(target: str) -> Callable[..., Any]:
    """The function that `FILE.py:FUNC` names."""
    path_text, colon, name = target.rpartition(":")
    if not colon or not name:
        raise UsageError(f"{target!r} does not name a function; write FILE.py:FUNC")
    module = load_module(path_text)
    function = getattr(module, name, None)
    if function is None:
        known = [k for k, v in vars(module).items() if callable(v) and getattr(v, "__module__", "") == module.__name__]
        raise UsageError(f"{path_text} has no function {name!r}; it has {', '.join(known) or 'none'}")
    if not callable(function):
        raise UsageError(f"{name} in {path_text} is not a function but {type(function).__name__}")
    return function  # type: ignore[no-any-return]


def load_module(path_text: str) -> ModuleType:
    """The module of a Python file, run once, its folder importable."""
    path = Path(path_text)
    if not path.is_file():
        raise UsageError(f"no such file: {path_text}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path_text} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent.resolve()))
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path_text} could not be run: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def parse_types(text: str) -> tuple[TensorType, ...]:
    """Read `f64[100,3], f64[3]`; commas inside brackets do not separate."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    parts.append(current)
    try:
        return tuple(parse_type(part) for part in parts if part.strip())
    except ParseError as error:
        raise UsageError(str(error)) from error


def sample_arrays(types: tuple[TensorType, ...], seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Arrays of these types: uniform in 0.5..1.5 where floating, small integers, both booleans."""
    rng = np.random.default_rng(seed)
    arrays: list[np.ndarray[Any, Any]] = []
    for t in types:
        if t.dtype.kind == "b":
            arrays.append(np.asarray(rng.integers(0, 2, t.shape)).astype(bool))
        elif t.dtype.kind in "iu":
            arrays.append(np.asarray(rng.integers(0, 4, t.shape)).astype(t.dtype))
        elif t.dtype.kind == "c":
            arrays.append(
                np.asarray(rng.uniform(0.5, 1.5, t.shape) + 1j * rng.uniform(0.5, 1.5, t.shape)).astype(t.dtype)
            )
        else:
            arrays.append(np.asarray(rng.uniform(0.5, 1.5, t.shape)).astype(t.dtype))
    return arrays


def parse_values(text: str) -> tuple[Any, ...]:
    """Evaluate `np.ones(3), 2.0` as Python, for functions whose path depends on their arguments."""
    try:
        values = eval(f"({text},)", {"np": np, "numpy": np})
    except Exception as error:
        raise UsageError(f"--values {text!r} cannot be evaluated: {type(error).__name__}: {error}") from error
    return tuple(values)


def parse_argnums(text: str) -> int | str | tuple[int | str, ...]:
    """`0`, `w`, or `0,2`."""
    parts: list[int | str] = [int(p) if p.strip().lstrip("-").isdigit() else p.strip() for p in text.split(",")]
    if not parts or "" in parts:
        raise ArgumentError(f"--argnums {text!r}: write numbers or argument names, separated by commas")
    return parts[0] if len(parts) == 1 else tuple(parts)
