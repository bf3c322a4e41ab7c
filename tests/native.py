"""Running lowered functions through ctypes, without the runtime: object code, three pointers, a status."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from pullback.codegen.lower import Lowered, lower
from pullback.codegen.target import QUICK, compile_module, host_target, load_object
from pullback.ir.graph import Function, Value, walk
from pullback.ir.plan import Plan, Slot
from pullback.ir.types import TensorType
from pullback.runtime.blas import Blas

Array = np.ndarray[Any, Any]

_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_CHUNK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


def _serial_for(function: int, context: int, count: int) -> None:
    chunk = _CHUNK(function)
    for number in reversed(range(count)):  # the order of chunks must not matter
        chunk(context, number)


_SERIAL_FOR = _FOR(_serial_for)


@cache
def _symbol(name: str) -> int:
    if name == "pb_parallel_for":
        return ctypes.cast(_SERIAL_FOR, ctypes.c_void_p).value or 0
    found = _library(name)
    if not found:
        raise LookupError(f"no symbol {name}")
    return found


def _library(name: str) -> int:
    if name.startswith(("cblas_", "lapack_")):
        return Blas.find().address(name) or 0
    for library in (ctypes.CDLL(None), ctypes.CDLL(ctypes.util.find_library("m"))):
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        except AttributeError:
            continue
    return 0


@dataclass(frozen=True)
class Native:
    """A compiled function; call it with arrays, get arrays."""

    function: Function
    lowered: Lowered
    loaded: Any

    def __call__(self, *args: object) -> tuple[Array, ...]:
        status, results = self.run(*args)
        if status:
            raise RuntimeError(f"status {status}")
        return results

    def run(self, *args: object, align: int = 0) -> tuple[int, tuple[Array, ...]]:
        """The status and the results, whose memory begins `align` elements behind a multiple of 64 bytes."""
        inputs = [
            np.ascontiguousarray(np.asarray(x, t.dtype)).reshape(t.shape)
            for x, t in zip(args, self.function.param_types, strict=True)
        ]
        outputs = [_filled(t, align) for t in self.function.result_types]
        raw = np.empty(self.lowered.arena_bytes + 64, np.uint8)
        raw[:] = 0xA5
        arena = -(-raw.ctypes.data // 64) * 64
        entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(self.loaded.address(self.lowered.kernel))
        return int(entry(_pointers(inputs), _pointers(outputs), arena)), tuple(outputs)


def _filled(type_: TensorType, align: int) -> Array:
    """An array full of rubbish."""
    raw = np.full(type_.nbytes + 128, 0xA5, np.uint8)
    start = -raw.ctypes.data % 64 + align * type_.dtype.itemsize
    return raw[start : start + type_.nbytes].view(type_.dtype).reshape(type_.shape)


def _pointers(arrays: Sequence[Array]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])


def compile_plan(plan: Plan, opt: int = QUICK) -> Native:
    """Object code of a planned function, linked."""
    target = host_target()
    lowered = lower(plan, target)
    code = compile_module(lowered.text, target, opt, verify=True)
    return Native(plan.function, lowered, load_object(code, [lowered.kernel], symbols_of(lowered)))


def symbols_of(lowered: Lowered) -> Mapping[str, int]:
    return {name: _symbol(name) for name in lowered.symbols}


def simple_plan(function: Function, stack_below: int = 0) -> Plan:
    """A place of its own for each value: results in results, arguments in arguments, the rest in the arena.

    Values below `stack_below` bytes are small local buffers.
    """
    slots: dict[Value, Slot] = {p: Slot("arg", k) for k, p in enumerate(function.params)}
    copies = []
    for k, value in enumerate(function.results):
        if value in slots:
            copies.append((k, value))
        else:
            slots[value] = Slot("result", k)
    at, stack = 0, []
    for value in _values(function):
        if value in slots:
            continue
        if value.op is not None and value.op.name == "constant":
            slots[value] = Slot("constant")
        elif value.type.nbytes < stack_below:
            slots[value] = Slot("stack", len(stack))
            stack.append(value.type.nbytes)
        else:
            slots[value] = Slot("arena", 0, at)
            at += -(-value.type.nbytes // 64) * 64
    return Plan(function, slots, at, tuple(stack), tuple(copies))


def _values(function: Function) -> list[Value]:
    values = []
    for op in walk(function.body):
        if op.name == "kernel":
            values.extend(op.results)
            continue
        values.extend(op.results)
        for region in op.regions:
            values.extend(region.params)
    return values


def run_native(what: Plan | Function, args: Sequence[object]) -> tuple[Array, ...]:
    """Results of a planned function, or of one planned simply."""
    plan = what if isinstance(what, Plan) else simple_plan(what)
    return compile_plan(plan)(*args)
