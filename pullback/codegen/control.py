"""Structured control flow and effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pullback.codegen.program import Frame
from pullback.ir.graph import Op

Lowering = Callable[[Frame, Op], None]

CONTROL: Mapping[str, Lowering] = {}
