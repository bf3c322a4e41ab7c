"""Ops that are a function of their own: products, sorts, scans, scatters, factorisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pullback.codegen.library.sources import lower_constant
from pullback.codegen.program import Frame
from pullback.ir.graph import Op

LIBRARY: Mapping[str, Callable[[Frame, Op], None]] = {
    "constant": lower_constant,
}
