"""Every stage, in order. The only module that knows them all.

traced -> (differentiated by the front end) -> optimised -> planned -> LLVM -> object code -> loaded
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from time import perf_counter

import llvmlite
import numpy as np

from pullback.codegen.entry import emit_entry
from pullback.codegen.lower import Lowered, lower
from pullback.codegen.object import CompiledObject, Layout, Signature, SupportObject
from pullback.codegen.support import support_part
from pullback.codegen.target import Target, assembly, compile_module, host_target, load_object
from pullback.config import Options
from pullback.errors import CodegenError
from pullback.ir.graph import Function
from pullback.ir.plan import Plan
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.passes.base import Context, count_ops
from pullback.passes.fuse import fuse
from pullback.passes.manager import Ran, report
from pullback.passes.manager import Watch as PassWatch
from pullback.passes.memory import plan as plan_memory
from pullback.passes.pipeline import optimise as run_pipeline
from pullback.runtime.cache import DiskCache, cache_folder, cache_key
from pullback.runtime.compiled import Compiled
from pullback.runtime.encode import compiled_from_bytes, compiled_to_bytes, support_from_bytes, support_to_bytes
from pullback.runtime.runtime import Runtime
from pullback.runtime.watch import Watch
from pullback.version import VERSION

STAGES = ("traced", "adjoint", "optimised", "kernels", "llvm", "asm")

KERNEL, ENTRY = "pb_kernel", "pb_entry"

RELEASE_GIL_ELEMENTS = 20_000
"""Other threads run meanwhile where a call touches more elements than this: some ten microseconds."""


# ------------------------------------------------------------------ what a compilation did


@dataclass
class Log:
    """Times of the stages and passes of one compilation, for `PULLBACK=time` and `explain`."""

    seconds: dict[str, float] = field(default_factory=dict)
    passes: tuple[Ran, ...] = ()
    ops: dict[str, int] = field(default_factory=dict)
    cached: bool = False

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begin

    def text(self, title: str, rules: bool = False) -> str:
        lines = [f"pullback: {title}{' (object code from the disk cache)' if self.cached else ''}"]
        lines += [f"  {name:<12}{seconds * 1e3:>9.2f} ms" for name, seconds in self.seconds.items()]
        if self.passes:
            lines += ["  " + line for line in report(self.passes, rules).splitlines()]
        return "\n".join(lines)


# ------------------------------------------------------------------ stages


def optimised(function: Function, options: Options, log: Log | None = None, watch: PassWatch | None = None) -> Function:
    """The function after `passes.pipeline.OPTIMISE`."""
    log = log or Log()
    with log.stage("optimise"):
        result, log.passes = run_pipeline(function, Context.of(options), watch)
    log.ops["traced"], log.ops["optimised"] = count_ops(function), count_ops(result)
    return result


def planned(function: Function, options: Options, log: Log | None = None) -> Plan:
    """Kernels and memory of an optimised function."""
    log = log or Log()
    with log.stage("fuse"):
        fused = fuse(function, options)
    if options.verify != "off":
        verify(fused)
    with log.stage("memory"):
        plan = plan_memory(fused, options)
    log.ops["planned"] = count_ops(fused)
    return plan


def lowered(plan: Plan, signature: Signature | None, log: Log | None = None) -> tuple[Lowered, tuple[str, ...]]:
    """The LLVM module of a plan, with the native entry if there is a signature and the interpreter allows one.

    Returns
    -------
    The module and the externals it needs.
    """
    log = log or Log()
    with log.stage("lower"):
        made = lower(plan, host_target(), KERNEL)
        symbols = made.symbols
        layout = runtime().layout if signature is not None else None
        if signature is not None and layout is not None:
            releases = work_of(plan.function) > RELEASE_GIL_ELEMENTS
            extra = emit_entry(made.module, ENTRY, KERNEL, signature, made.arena_bytes, layout, releases)
            symbols = tuple(dict.fromkeys((*symbols, *extra)))
    return made, symbols


def work_of(function: Function) -> int:
    """How many elements a call writes, about."""
    return sum(r.type.size for op in function.ops for r in op.results)


def compiled(function: Function, signature: Signature, options: Options, log: Log | None = None) -> CompiledObject:
    """Object code for a traced (or differentiated) function, from the disk cache where it is there."""
    log = log or Log()
    key = _object_key(function, signature, options) if options.cache == "disk" else ""
    if key:
        with log.stage("cache"):
            found = _cached_object(key, options)
        if found is not None:
            log.cached = True
            return found
    plan = planned(optimised(function, options, log), options, log)
    module, symbols = lowered(plan, signature, log)
    with log.stage("llvm"):
        code = compile_module(module.text, host_target(), verify=options.verify != "off")
    has_entry = runtime().layout is not None
    made = CompiledObject(
        code=code,
        kernel=KERNEL,
        entry=ENTRY if has_entry else "",
        signature=signature,
        arena_bytes=module.arena_bytes,
        symbols=symbols,
        releases_gil=work_of(plan.function) > RELEASE_GIL_ELEMENTS,
    )
    if key:
        disk_cache(options.cache_dir).put(key, compiled_to_bytes(made))
    return made


def loaded(
    made: CompiledObject,
    objects: Sequence[object],
    log: Log | None = None,
    watch: Watch | None = None,
    serial: bool = False,
) -> Compiled:
    """A compiled object as callable code of this process; see `Runtime.load`."""
    log = log or Log()
    with log.stage("load"):
        return runtime().load(made, objects, watch, serial)


def trace_report(log: Log, title: str, options: Options) -> None:
    """Print what a compilation took, where the options ask for it."""
    if options.time or options.rules:
        reason = runtime().reason
        note = f"\n  calls go through ctypes: {reason}" if reason else ""
        sys.stderr.write(log.text(title, options.rules) + note + "\n")


# ------------------------------------------------------------------ text of a stage


def stage_text(function: Function, stage: str, options: Options, signature: Signature | None = None) -> str:
    """A traced or differentiated function as text, taken on to `stage`."""
    if stage in ("traced", "adjoint"):
        return print_function(function)
    small = optimised(function, options)
    if stage == "optimised":
        return print_function(small)
    plan = planned(small, options)
    if stage == "kernels":
        return print_function(plan.function) + plan_text(plan)
    text = lowered(plan, signature)[0].text
    return text if stage == "llvm" else assembly(text, host_target())


def plan_text(plan: Plan) -> str:
    """The memory plan as comments: arena, and copies that could not be avoided, with the reason."""
    lines = [f"// memory: arena {plan.arena_bytes} bytes, stack {sum(plan.stack_bytes)} bytes"]
    lines += [f"// copy: {copy.op}: {copy.reason}" for copy in plan.copies]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------ the process


@lru_cache(maxsize=1)
def runtime() -> Runtime:
    """The one runtime of this process, made when first needed."""
    options = Options.from_env()
    return Runtime(load_object, _support_object, options.threads)


@lru_cache(maxsize=8)
def disk_cache(folder: str = "") -> DiskCache:
    return DiskCache(cache_folder(folder))


def environment_key(target: Target) -> str:
    """What compiled code depends on beside its IR."""
    parts = [VERSION, _sources(), llvmlite.__version__, target.cpu, target.features, target.triple, np.__version__]
    return "|".join(parts)


@lru_cache(maxsize=1)
def _sources() -> str:
    """Sizes and times of the compiler's own files: an edited checkout must not run what it compiled before."""
    folder = Path(__file__).parent
    found = []
    for part in ("ir", "passes", "codegen"):
        for path, _, files in os.walk(folder / part):
            stats = [os.stat(os.path.join(path, name)) for name in files if name.endswith(".py")]
            found += [(s.st_size, s.st_mtime_ns) for s in stats]
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()[:16]


def _object_key(function: Function, signature: Signature, options: Options) -> str:
    layout = runtime().layout
    abi = layout.abi if layout is not None else "ctypes"
    relevant = str(options.override(time=False, rules=False, dump=(), cache="disk", cache_dir=""))
    return cache_key(print_function(function), repr(signature), relevant, abi, environment_key(host_target()))


def _cached_object(key: str, options: Options) -> CompiledObject | None:
    cache = disk_cache(options.cache_dir)
    data = cache.get(key)
    if data is None:
        return None
    try:
        return compiled_from_bytes(data)
    except (CodegenError, ValueError):
        cache.drop(key)
        return None


def _support_object(name: str, layout: Layout) -> SupportObject:
    """A support part's object code: from the disk, or compiled and put there."""
    part = support_part(name, layout)
    options = Options.from_env()
    key = cache_key("support", name, part.text, environment_key(host_target()))
    cache: DiskCache | None = disk_cache(options.cache_dir) if options.cache == "disk" else None
    data = cache.get(key) if cache else None
    if cache and data is not None:
        try:
            return support_from_bytes(data)
        except (CodegenError, ValueError):
            cache.drop(key)
    made = SupportObject(compile_module(part.text, host_target()), part.exports, part.symbols)
    if cache:
        cache.put(key, support_to_bytes(made))
    return made
