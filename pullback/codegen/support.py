"""Native code that serves every compiled function, in parts that are compiled when first needed.

- `dispatch`: the call of a native function object, which tries its compiled entries in turn.
- `blocks`: memory kept between calls, for arenas and for the data of large results.
- `threads`: the pool that large kernels are shared over.
- `strided`: copies of arguments that are laid out otherwise than kernels read them.

The parts are fixed programs, so they are written as text and not through the builder; only offsets are filled in.
They must never be unloaded: arrays, types and worker threads that outlive everything else point into them.
"""

from __future__ import annotations

from pullback.codegen import blocks, dispatch, strided, threads
from pullback.codegen.object import Layout
from pullback.errors import CodegenError
from pullback.record import record


@record(frozen=True, slots=True)
class SupportPart:
    """A module of support code: its LLVM text, what it exports, and the externals to bind.

    has_loops : its speed is worth LLVM's passes
    """

    name: str
    text: str
    exports: tuple[str, ...]
    symbols: tuple[str, ...]
    has_loops: bool = False


def support_part(name: str, layout: Layout) -> SupportPart:
    """The part of that name.

    Raises
    ------
    CodegenError : there is no such part
    """
    match name:
        case "dispatch":
            text = dispatch.dispatch_text(layout)
            return SupportPart(name, text, dispatch.DISPATCH_EXPORTS, dispatch.DISPATCH_SYMBOLS)
        case "blocks":
            return SupportPart(name, blocks.blocks_text(), blocks.BLOCK_EXPORTS, blocks.block_symbols())
        case "threads":
            return SupportPart(name, threads.pool_text(), threads.POOL_EXPORTS, threads.POOL_SYMBOLS)
        case "strided":
            text = strided.strided_text(layout)
            return SupportPart(name, text, strided.STRIDED_EXPORTS, strided.STRIDED_SYMBOLS, has_loops=True)
    raise CodegenError(f"no support part {name!r}; there are dispatch, blocks, threads, strided")
