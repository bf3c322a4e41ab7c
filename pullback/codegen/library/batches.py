"""Routines over the leading axes of their operands: one matrix (or line) after the other, or shared among threads.

A routine that fails says so in a status word that the caller passes along; the caller then returns it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from pullback.codegen.blas import one_blas_thread
from pullback.codegen.kernel import CHUNK_NS, SHARED_FROM_NS, chunk_pointers, run_parallel
from pullback.codegen.llvm import FunctionBuilder, V, const
from pullback.codegen.program import Frame, Program, aligned
from pullback.ir.graph import Op
from pullback.ir.types import TensorType
from pullback.record import record

MAX_CHUNKS, CHUNK_BYTES = 16, 32 << 20
"""Each chunk of a shared batch has scratch memory of its own, so there are not many: what fits in so much, but four."""

BLAS_THREADS_BELOW = 96
"""Of smaller matrices a BLAS, whichever it is, is expected to use one thread."""

BLAS_THREADS_FROM = 1024
"""A single matrix with a side this long is left to the threads of the BLAS, and in a batch each matrix has one of ours.
At 600 rows two of OpenBLAS's threads save a fifth of the time, and cost ten times as much while others use the cores:
they wait for one another busily."""


@record(frozen=True)
class Work:
    """What is done to each member of a batch.

    key : equal for equal code, apart from the size of the batch
    scratch : bytes it works in
    ns : about how long it takes in one thread; 0: never share it among threads
    failure : code of the one way in which it can fail; 0: it cannot
    side : the longest side of the matrices that BLAS or LAPACK is given; 0: neither is called
    """

    key: tuple[Hashable, ...]
    scratch: int
    ns: float
    failure: int = 0
    side: int = 0


# emit(program, builder, addresses of the member's operands and results and of what is shared, of its scratch memory)
# -> i1 that is true where it failed, or None
Member = Callable[[Program, FunctionBuilder, Sequence[V], V], V | None]


@record(frozen=True)
class _Batch:
    """A batch: how many members, the bytes between them in each buffer, and how many chunks they are cut into."""

    count: int
    strides: tuple[int, ...]
    chunks: int

    @property
    def length(self) -> int:
        return -(-self.count // self.chunks)


@record(frozen=True)
class Site:
    """Where a batch is done: the types and addresses of the operands and results of an op, as far as the routine is
    concerned (the op's own may be narrower), and of what all members read."""

    frame: Frame
    op: Op
    types: tuple[TensorType, ...]
    pointers: tuple[V, ...]
    shared: tuple[V, ...] = ()

    def run(self, axes: int, work: Work, member: Member) -> None:
        """Do `member` for all axes but the last `axes`. Members without elements are done too: what is made of them
        may have some."""
        batch = self._batch(axes, work)
        if batch.count == 0:
            return
        program, b = self.frame.program, self.frame.b

        def emit(program: Program, b: FunctionBuilder) -> None:
            if batch.chunks == 1:
                _emit_members(program, b, work, member, batch, b.params, (0, batch.count))
            else:
                run_parallel(program.e, b, _chunk(program, work, member, batch), b.params, batch.chunks)

        size = aligned(work.scratch) * batch.chunks
        with self.frame.scratch(size) as scratch, status_word(b, work.failure) as status:
            pointers = [*self.pointers, *self.shared, scratch, status]
            name = program.routine((work.key, batch), str(work.key[0]), len(pointers), emit)
            with one_blas_thread(program.e, b) if self._holds_blas(batch, work) else nullcontext():
                b.call("void", name, pointers)

    def _holds_blas(self, batch: _Batch, work: Work) -> bool:
        is_large = batch.count == 1 and work.side >= BLAS_THREADS_FROM
        return work.side > 0 and self.frame.program.blas_threads and not is_large

    def _batch(self, axes: int, work: Work) -> _Batch:
        first = self.types[0]
        count = math.prod(first.shape[: first.ndim - axes])
        strides = (*(t.nbytes // max(count, 1) for t in self.types), *(0 for _ in self.shared))
        total = count * work.ns
        if self.frame.serial or total < SHARED_FROM_NS or (work.side and not self._may_share(work)):
            return _Batch(count, strides, 1)
        most = min(MAX_CHUNKS, max(4, CHUNK_BYTES // max(1, work.scratch)))
        chunks = max(1, min(most, count, int(total / CHUNK_NS)))
        return _Batch(count, strides, -(-count // -(-count // chunks)))

    def _may_share(self, work: Work) -> bool:
        """A BLAS that cannot be told to use one thread uses its own for large matrices."""
        return self.frame.program.blas_threads or work.side < BLAS_THREADS_BELOW


def site_of(frame: Frame, op: Op) -> Site:
    """The op's own operands and results."""
    values = (*op.operands, *op.results)
    return Site(frame, op, tuple(v.type for v in values), tuple(frame.pointer(v) for v in values))


@contextmanager
def status_word(b: FunctionBuilder, failure: int) -> Iterator[V]:
    """A word for a routine to put a status in; afterwards the function returns if there is one."""
    if not failure:
        yield const("ptr", 0)
        return
    word = b.alloca("i64", align=8)
    b.store(const("i64", 0), word, 8)
    yield word
    leave, stay = b.new_label("leave"), b.new_label("stay")
    status = b.load("i64", word, 8)
    b.condbr(b.icmp("eq", status, 0), stay, leave)
    b.label(leave)
    b.ret(status)
    b.label(stay)


def _chunk(program: Program, work: Work, member: Member, batch: _Batch) -> str:
    """The function of one share of the batch."""

    def emit(b: FunctionBuilder) -> None:
        *buffers, scratch, status = chunk_pointers(b, len(batch.strides) + 2)
        number = b.params[1]
        own = b.gep("i8", scratch, b.mul(number, aligned(work.scratch)))
        lo = b.mul(number, batch.length)
        hi = b.intrinsic("smin", b.add(lo, batch.length), batch.count)
        _emit_members(program, b, work, member, batch, [*buffers, own, status], (lo, hi))

    return program.chunk((work.key, batch, "chunk"), f"{work.key[0]}.chunk", emit)


def _emit_members(
    program: Program,
    b: FunctionBuilder,
    work: Work,
    member: Member,
    batch: _Batch,
    pointers: Sequence[V],
    span: tuple[V | int, V | int],
) -> None:
    """The members of a range; the function returns at the first that fails."""
    *buffers, scratch, status = pointers
    if batch.count == 1:
        _leave_if(b, member(program, b, buffers, scratch), work.failure, status)
        return
    with b.loop(*span) as loop:
        own = [
            b.gep("i8", p, b.mul(loop.index, stride), flags="") if stride else p
            for p, stride in zip(buffers, batch.strides, strict=True)
        ]
        _leave_if(b, member(program, b, own, scratch), work.failure, status)


def _leave_if(b: FunctionBuilder, failed: V | None, failure: int, status: V) -> None:
    if failed is None:
        return
    leave, stay = b.new_label("failed"), b.new_label("fine")
    b.condbr(failed, leave, stay)
    b.label(leave)
    b.line(f"store atomic i64 {-failure}, ptr {status.name} monotonic, align 8")  # all chunks would store the same
    b.ret()
    b.label(stay)
