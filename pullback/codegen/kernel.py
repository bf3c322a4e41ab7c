"""A kernel as LLVM functions: one for the whole, and one for a share of it where several threads are worth it.

How a kernel is shared depends on its sizes alone, never on the number of threads, and so do its results.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.codegen.body import BodyEmitter
from pullback.codegen.fill import fill
from pullback.codegen.llvm import FunctionBuilder, Module, V, const
from pullback.codegen.loops import LoopEmitter
from pullback.codegen.math import MathCalls, Shared
from pullback.codegen.nest import Nest, plan_nest
from pullback.codegen.reduce import identity_number
from pullback.codegen.scalars import Scalars
from pullback.codegen.segments import all_bounds
from pullback.codegen.spec import KernelSpec, make_spec, pairs_sine_and_cosine
from pullback.codegen.streaming import all_aligned, make_visible, streamed_stores
from pullback.codegen.target import Target
from pullback.codegen.tile import tiled
from pullback.ir.graph import Region, Value
from pullback.ir.index import Affine
from pullback.ir.kernel import Load, Store
from pullback.ir.types import TensorType, tensor_type
from pullback.record import record

PARALLEL_FOR = "pb_parallel_for"

SHARED_FROM_NS = 20_000.0
"""Estimated time from which a kernel is shared among threads; a fork and join costs about a microsecond."""

CHUNK_NS = 8_000.0
MAX_CHUNKS = 64
"""Chunks are at least so long, and not more than so many."""

_INSTRUCTION_NS = 0.4
_BYTE_NS = 0.04


@record(frozen=True)
class Share:
    """How the work is cut: `count` ranges of `length` indices of `level`.

    partial : results that accumulate over the level, so that each chunk has its own copy of them
    """

    level: int
    length: int
    count: int
    partial: tuple[int, ...]


@record(frozen=True)
class KernelCode:
    """A kernel that can be called: `name(operands..., results..., scratch)`.

    scratch : bytes wanted behind the last pointer, aligned to 64
    """

    name: str
    scratch: int


class Emission:
    """What the emitters of one module share.

    externals : functions that the object must be given when it is loaded
    contracts : may a product and the sum it goes into be rounded once, in any scalar op
    """

    __slots__ = ("contracts", "externals", "library", "module", "target")

    def __init__(self, module: Module, target: Target, contracts: bool = False) -> None:
        self.module = module
        self.target = target
        self.contracts = contracts
        self.library = MathCalls(module)
        self.externals: set[str] = set()

    def function(
        self, name: str, params: Sequence[tuple[str, str]], result: str = "void", attributes: str = ""
    ) -> FunctionBuilder:
        """Begin an internal function."""
        return self.module.function(name, result, params, "internal", attributes)

    def external(self, name: str, result: str, args: Sequence[str]) -> str:
        """Declare an external function; gives its name."""
        self.externals.add(name)
        self.module.declare(name, result, args)
        return name

    def scalars(self, b: FunctionBuilder, spec: KernelSpec | None = None) -> Scalars:
        """What emits scalar ops into `b`, for the body of `spec`."""
        shared: Shared | None = {} if spec is not None and pairs_sine_and_cosine(spec) else None
        return Scalars(b, self.library, shared, "contract" if self.contracts else "")


def emit_kernel(e: Emission, name: str, spec: KernelSpec, distinct: bool, serial: bool = False) -> KernelCode:
    """Add the functions of a kernel to the module.

    Parameters
    ----------
    distinct : results share no memory with operands
    serial : never use threads (the kernel runs inside of a chunk already)
    """
    attribute = "ptr noalias" if distinct else "ptr"
    params = [(attribute, f"o{k}") for k in range(len(spec.operands))]
    params += [(attribute, f"r{k}") for k in range(len(spec.stores))] + [("ptr", "scratch")]
    b = e.function(name, params, attributes="noinline")
    operands, results, scratch = b.params[: len(spec.operands)], b.params[len(spec.operands) : -1], b.params[-1]
    used = 0
    if spec.points == 0:
        _fill_empty(b, spec, results)
    else:
        for number, part in enumerate(tiled(spec, e.target)):
            nest = plan_nest(part, e.target)
            share = None if serial else plan_share(nest)
            if share is None:
                _emit_serial(e, b, nest, operands, results)
            else:
                chunk = f"{name}.chunk{number}"
                used = max(used, _emit_shared(e, b, nest, share, chunk, operands, results, scratch))
    b.ret()
    return KernelCode(name, used)


def _emit_serial(e: Emission, b: FunctionBuilder, nest: Nest, operands: Sequence[V], results: Sequence[V]) -> None:
    _fill_accumulators(b, nest, results, 1)
    _emit_loops(e, b, nest, operands, results)


def _emit_loops(
    e: Emission,
    b: FunctionBuilder,
    nest: Nest,
    operands: Sequence[V],
    results: Sequence[V],
    part: tuple[int, V, V] | None = None,
    ragged: bool = True,
) -> None:
    """The nest, or a part of it; twice where results are streamed if they are aligned."""
    streamed = streamed_stores(nest)
    if not streamed:
        LoopEmitter(BodyEmitter(e.scalars(b, nest.spec), nest, operands, results, ragged), part).run()
        return
    past, through, done = b.new_label("stream"), b.new_label("cached"), b.new_label("stored")
    b.condbr(all_aligned(b, nest, streamed, results), past, through)
    for label, chosen in ((past, streamed), (through, frozenset[int]())):
        b.label(label)
        body = BodyEmitter(e.scalars(b, nest.spec), nest, operands, results, ragged)
        body.streamed = chosen
        LoopEmitter(body, part).run()
        if chosen:
            make_visible(b)
        b.br(done)
    b.label(done)


def emit_inline(
    e: Emission, b: FunctionBuilder, spec: KernelSpec, operands: Sequence[V], results: Sequence[V]
) -> None:
    """Emit a kernel at the present place, in one thread."""
    if spec.points == 0:
        _fill_empty(b, spec, results)
        return
    for part in tiled(spec, e.target):
        _emit_serial(e, b, plan_nest(part, e.target), operands, results)


# ------------------------------------------------------------------ beginnings


def _fill_empty(b: FunctionBuilder, spec: KernelSpec, results: Sequence[V]) -> None:
    for store, pointer in zip(spec.stores, results, strict=True):
        if store.kind != "store":
            number = identity_number(store.kind, store.type.dtype)
            fill(b, pointer, store.type.dtype, number, store.type.size)


def _fill_accumulators(
    b: FunctionBuilder, nest: Nest, results: Sequence[V], copies: int, chosen: Sequence[int] | None = None
) -> None:
    """Put identities where elements are revisited; `chosen` are results, all by default."""
    for target, store in _result_stores(nest).items():
        if nest.accumulates_in_memory(store) and (chosen is None or target in chosen):
            number = identity_number(store.kind, store.type.dtype)
            fill(b, results[target], store.type.dtype, number, store.type.size * copies)


def _result_stores(nest: Nest) -> dict[int, Store]:
    """For each result a store that writes to it; others to the same one differ only in where."""
    return {nest.spec.target(k): store for k, store in enumerate(nest.stores)}


# ------------------------------------------------------------------ sharing


def estimated_ns(nest: Nest) -> float:
    """A guess of the time in one thread."""
    spec = nest.spec
    moved = sum(_touched(store.type, spec) for store in spec.stores)
    moved += sum(_touched(spec.operands[operand], spec) for operand in {load.operand for load in spec.loads})
    return spec.points * spec.weight / nest.lanes * _INSTRUCTION_NS + moved * _BYTE_NS


def _touched(type_: TensorType, spec: KernelSpec) -> int:
    return min(type_.size, spec.points) * type_.dtype.itemsize


def plan_share(nest: Nest) -> Share | None:
    """How to cut the kernel, None where it is not worth it."""
    time = estimated_ns(nest)
    if time < SHARED_FROM_NS:
        return None
    wanted = max(1, min(MAX_CHUNKS, int(time / CHUNK_NS)))
    level = _shared_level(nest, wanted)
    if level is None:
        return None
    size = nest.sizes[level]
    granule = nest.lanes * nest.copies if level == nest.vector else 1
    length = -(-size // (wanted * granule)) * granule
    count = -(-size // length)
    if count < 2:
        return None
    partial = tuple(k for k, store in _result_stores(nest).items() if nest.is_reduced(store, level))
    return Share(level, length, count, partial)


def _shared_level(nest: Nest, chunks: int) -> int | None:
    """The outermost level, if it is parallel or its partial results are small; else the longest parallel level."""
    sizes = nest.sizes
    partial = sum(store.type.size for store in _result_stores(nest).values() if nest.is_reduced(store, 0))
    if sizes[0] >= 2 and partial * min(chunks, sizes[0]) * 8 <= nest.spec.points:
        parallel = [level for level in range(nest.depth) if _is_parallel(nest, level) and sizes[level] >= 4 * chunks]
        return 0 if sizes[0] >= chunks // 4 or not parallel else parallel[0]
    parallel = [level for level in range(nest.depth) if _is_parallel(nest, level)]
    return max(parallel, key=lambda level: sizes[level], default=None)


def _is_parallel(nest: Nest, level: int) -> bool:
    return not any(nest.is_reduced(store, level) for store in nest.stores)


def _emit_shared(
    e: Emission,
    b: FunctionBuilder,
    nest: Nest,
    share: Share,
    name: str,
    operands: Sequence[V],
    results: Sequence[V],
    scratch: V,
) -> int:
    """Fill, run the chunks, combine partial results; gives the scratch bytes used."""
    partials, used = _partial_buffers(b, nest, share, scratch)
    targets = [partials.get(k, result) for k, result in enumerate(results)]
    _fill_accumulators(b, nest, targets, 1, [k for k in range(len(results)) if k not in partials])
    _fill_accumulators(b, nest, targets, share.count, list(partials))
    chunk = _emit_chunk(e, name, nest, share)
    run_parallel(e, b, chunk, [*operands, *targets], share.count)
    for k, buffer in partials.items():
        _combine(e, b, _result_stores(nest)[k], share.count, buffer, results[k])
    return used


def run_parallel(e: Emission, b: FunctionBuilder, chunk: str, pointers: Sequence[V], count: int) -> None:
    """Call `chunk(context, number)` for each number below `count`, on all threads; the context holds the pointers."""
    context = b.alloca("ptr", max(1, len(pointers)), align=8)
    for k, pointer in enumerate(pointers):
        b.store(pointer, b.gep("ptr", context, k), 8)
    e.external(PARALLEL_FOR, "void", ("ptr", "ptr", "i64"))
    b.call("void", PARALLEL_FOR, [V(f"@{chunk}", "ptr"), context, const("i64", count)])


def chunk_pointers(b: FunctionBuilder, count: int) -> list[V]:
    """The pointers that `run_parallel` stored."""
    context = b.params[0]
    return [b.load("ptr", b.gep("ptr", context, k), 8) for k in range(count)]


def _partial_buffers(b: FunctionBuilder, nest: Nest, share: Share, scratch: V) -> tuple[dict[int, V], int]:
    buffers, used = {}, 0
    for k in share.partial:
        buffers[k] = b.gep("i8", scratch, used)
        used += -(-_result_stores(nest)[k].type.nbytes * share.count // 64) * 64
    return buffers, used


def _emit_chunk(e: Emission, name: str, nest: Nest, share: Share) -> str:
    b = e.function(name, [("ptr", "context"), ("i64", "chunk")])
    count = len(nest.spec.operands)
    stores = _result_stores(nest)
    pointers = chunk_pointers(b, count + len(stores))
    number = b.params[1]
    results = pointers[count:]
    for k in share.partial:
        results[k] = b.gep("i8", results[k], b.mul(number, stores[k].type.nbytes))
    size = nest.sizes[share.level]
    lo = b.mul(number, share.length)
    hi = b.intrinsic("smin", b.add(lo, share.length), size)
    _emit_loops(e, b, nest, pointers[:count], results, (share.level, lo, hi), _is_ragged(nest, share))
    b.ret()
    return name


def _is_ragged(nest: Nest, share: Share) -> bool:
    """Can a chunk end within a turn of the vector loop."""
    if share.level != nest.vector:
        return False
    pinned = any(level == nest.vector for bound in all_bounds(nest) for level, _ in bound.index.terms)
    return pinned or nest.sizes[nest.vector] % (nest.lanes * nest.copies) != 0


def _combine(e: Emission, b: FunctionBuilder, store: Store, count: int, buffer: V, result: V) -> None:
    """Reduce `count` partial results; itself a kernel."""
    size, value = store.type.size, Value(tensor_type(store.type.dtype))
    partial = store.type.with_shape((count, size))
    spec = make_spec(
        (size, count),
        (Load(0, Affine(0, ((0, 1), (1, size)) if size > 1 else ((1, 1),))),),
        (Store(store.kind, store.type.with_shape((size,)), Affine(0, ((0, 1),))),),
        (partial,),
        Region((value,), (), (value,)),
    )
    emit_inline(e, b, spec, [buffer], [result])
