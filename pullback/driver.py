"""Every stage, in order. The only module that knows them all.

traced -> (differentiated by the front end) -> optimised -> planned -> LLVM -> object code -> loaded
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from pullback.codegen.object import CompiledObject, Layout, Signature, SupportObject
from pullback.config import Options
from pullback.errors import ParseError
from pullback.ir.graph import Function
from pullback.ir.plan import Plan
from pullback.ir.text import print_function
from pullback.ir.verify import verify
from pullback.ir.work import work_of
from pullback.lazy import LazyModule, uncollected
from pullback.passes import base, manager, memory, pipeline
from pullback.passes.fuse import fuse
from pullback.record import record
from pullback.runtime.cache import DiskCache, cache_folder, cache_key
from pullback.runtime.compiled import Compiled, Loaded
from pullback.runtime.encode import compiled_from_bytes, compiled_to_bytes, support_from_bytes, support_to_bytes
from pullback.runtime.identity import package_identity, processor_identity
from pullback.runtime.runtime import Runtime
from pullback.runtime.watch import Watch
from pullback.version import VERSION

if TYPE_CHECKING:
    from pullback.codegen import entry, lower, support, target
    from pullback.ir import page
else:
    page = LazyModule("pullback.ir.page")
    entry, lower, support, target = (
        LazyModule(f"pullback.codegen.{name}") for name in ("entry", "lower", "support", "target")
    )

STAGES = ("traced", "adjoint", "optimised", "kernels", "llvm", "asm")

KERNEL, ENTRY = "pb_kernel", "pb_entry"

RELEASE_GIL_WORK = 20_000
"""Other threads run meanwhile where a call computes more elements than this: some ten microseconds."""


# ------------------------------------------------------------------ what a compilation did


@record
class Log:
    """Times of the stages and passes of one compilation, for `PULLBACK=time` and `explain`."""

    seconds: dict[str, float] = field(default_factory=dict)
    passes: "tuple[manager.Ran, ...]" = ()
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
            lines += ["  " + line for line in manager.report(self.passes, rules).splitlines()]
        return "\n".join(lines)


# ------------------------------------------------------------------ stages


def optimised(
    function: Function, options: Options, log: Log | None = None, watch: "manager.Watch | None" = None
) -> Function:
    """The function after `passes.pipeline.OPTIMISE`."""
    log = log or Log()
    with log.stage("optimise"):
        result, log.passes = pipeline.optimise(function, base.Context.of(options), watch)
    log.ops["traced"], log.ops["optimised"] = base.count_ops(function), base.count_ops(result)
    return result


def planned(function: Function, options: Options, log: Log | None = None) -> Plan:
    """Kernels and memory of an optimised function."""
    log = log or Log()
    with log.stage("fuse"):
        fused = fuse(function, options)
    if options.verify != "off":
        verify(fused)
    with log.stage("memory"):
        plan = memory.plan(fused, options)
    log.ops["planned"] = base.count_ops(fused)
    return plan


def lowered(
    plan: Plan, signature: Signature | None, log: Log | None = None, fast: bool = False
) -> "tuple[lower.Lowered, tuple[str, ...]]":
    """The LLVM module of a plan, with the native entry if there is a signature and the interpreter allows one.

    With `fast` products and sums may be rounded once.

    Returns
    -------
    The module and the externals it needs.
    """
    log = log or Log()
    with log.stage("lower"):
        blas = runtime().blas
        made = lower.lower(
            plan,
            target.host_target(),
            KERNEL,
            blas_int=blas.int_bytes,
            blas_threads=blas.has_thread_control,
            contracts=fast,
        )
        symbols = made.symbols
        layout = runtime().layout if signature is not None else None
        if signature is not None and layout is not None:
            releases = work_of(plan.function) > RELEASE_GIL_WORK
            extra = entry.emit_entry(made.module, ENTRY, KERNEL, signature, made.arena_bytes, layout, releases)
            symbols = tuple(dict.fromkeys((*symbols, *extra)))
    return made, symbols


def compiled(function: Function, signature: Signature, options: Options, log: Log | None = None) -> CompiledObject:
    """Object code for a traced (or differentiated) function, from the disk cache where it is there."""
    log = log or Log()
    key = _object_key(function, signature, options) if options.cache == "disk" else ""
    if key and not _wants_passes(options):
        with log.stage("cache"):
            found = _from_cache(key, options, compiled_from_bytes)
        if found is not None:
            log.cached = True
            return found
    with uncollected():
        made = _compiled_anew(function, signature, options, log)
    if key:
        disk_cache(options.cache_dir).put(key, compiled_to_bytes(made))
    return made


def _wants_passes(options: Options) -> bool:
    """Is something asked for that only running the passes gives."""
    return bool(options.dump or options.html or options.rules or options.check or options.verify != "off")


def _compiled_anew(function: Function, signature: Signature, options: Options, log: Log) -> CompiledObject:
    columns = [page.Column("traced", print_function(function))] if options.html else []

    def watch(name: str, before: Function, after: Function) -> None:
        columns.append(page.Column(name, print_function(after), after is not before))

    plan = planned(optimised(function, options, log, watch if options.html else None), options, log)
    if options.html:
        columns.append(page.Column("kernels", print_function(plan.function) + plan_text(plan)))
        _page(options.html).add(page.row(function.name, columns))
    made, symbols = lowered(plan, signature, log, options.fast)
    with log.stage("llvm"):
        code = target.compile_module(made.text, target.host_target(), verify=options.verify != "off")
    return CompiledObject(
        code=code,
        kernel=KERNEL,
        entry=ENTRY if runtime().layout is not None else "",
        signature=signature,
        arena_bytes=made.arena_bytes,
        symbols=symbols,
        releases_gil=work_of(plan.function) > RELEASE_GIL_WORK,
    )


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
    text = lowered(plan, signature, fast=options.fast)[0].text
    return text if stage == "llvm" else target.assembly(text, target.host_target())


_HANDED_ON = {
    "place": "is made elsewhere, and the places change",
    "row": "lives in the row where it is stacked",
    "next": "is made in the row where it will be stacked",
}


def plan_text(plan: Plan) -> str:
    """The memory plan as comments: arena, copies that could not be avoided, with the reason, and what goes on where it
    was made."""
    lines = [f"// memory: arena {plan.arena_bytes} bytes, stack {sum(plan.stack_bytes)} bytes"]
    lines += [f"// copy: {copy.op}: {copy.reason}" for copy in plan.copies]
    for op, moves in plan.handovers.items():
        lines += [f"// {op.name} at {op.loc}: carried value {m.carry} {_HANDED_ON[m.kind]}" for m in moves]
    return "\n".join(lines) + "\n"


class _Page:
    """The page of all programs compiled by this process; written anew with each."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: list[str] = []

    def add(self, text: str) -> None:
        self._rows.append(text)
        Path(self._path).write_text(page.page(self._rows), encoding="utf-8")


@lru_cache(maxsize=8)
def _page(path: str) -> _Page:
    return _Page(path)


# ------------------------------------------------------------------ the process


@lru_cache(maxsize=1)
def runtime() -> Runtime:
    """The one runtime of this process, made when first needed."""
    return Runtime(_load_object, _support_object, Options.from_env().threads)


def _load_object(code: bytes, exports: Iterable[str], symbols: Mapping[str, int]) -> Loaded:
    return target.load_object(code, exports, symbols)


@lru_cache(maxsize=8)
def disk_cache(folder: str = "") -> DiskCache:
    """The cache in that folder; the default folder if it is empty."""
    return DiskCache(cache_folder(folder))


@lru_cache(maxsize=1)
def environment_key() -> str:
    """What compiled code depends on beside its IR; LLVM is not loaded for it if the processor is known without."""
    processor = processor_identity()
    if not processor:
        host = target.host_target()
        processor = f"{host.cpu} {host.features} {host.triple}"
    packages = [package_identity(name) for name in ("llvmlite", "numpy")]
    return "|".join([VERSION, _sources(), processor, *packages])


def _sources() -> str:
    """Sizes and times of the compiler's own files: an edited checkout must not run what it compiled before."""
    found: list[tuple[str, int, int]] = []
    pending = [os.path.join(os.path.dirname(__file__), part) for part in ("ir", "passes", "codegen")]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for item in entries:
                if item.name.endswith(".py"):
                    status = item.stat()
                    found.append((item.name, status.st_size, status.st_mtime_ns))
                elif "." not in item.name and item.name != "__pycache__":
                    pending.append(item.path)
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()[:16]


def _object_key(function: Function, signature: Signature, options: Options) -> str:
    layout = runtime().layout
    abi = layout.abi if layout is not None else "ctypes"
    relevant = options.override(
        verify="off",
        check="",
        dump=(),
        dump_dir="",
        html="",
        time=False,
        rules=False,
        threads=0,
        cache="disk",
        cache_dir="",
        nan=False,
        paths=1,
    )
    return cache_key(print_function(function), repr(signature), str(relevant), abi, environment_key())


T = TypeVar("T")


def _from_cache(key: str, options: Options, read: Callable[[bytes], T]) -> T | None:
    cache = disk_cache(options.cache_dir)
    data = cache.get(key)
    if data is None:
        return None
    try:
        return read(data)
    except ParseError:
        cache.drop(key)
        return None


def _support_object(name: str, layout: Layout) -> SupportObject:
    """A support part's object code: from the disk, or compiled and put there."""
    options = Options.from_env()
    key = cache_key("support", name, repr(layout), environment_key()) if options.cache == "disk" else ""
    found = _from_cache(key, options, support_from_bytes) if key else None
    if found is not None:
        return found
    part = support.support_part(name, layout)
    opt = target.QUICK if part.has_loops else target.NO_OPT
    code = target.compile_module(part.text, target.host_target(), opt, verify=False)
    made = SupportObject(code, part.exports, part.symbols)
    if key:
        disk_cache(options.cache_dir).put(key, support_to_bytes(made))
    return made
