"""Tapes in the interpreter. A tape holds one record for each turn of a loop whose length is known only when it runs; in
the IR it is an i64[] handle, in native code a growing buffer that is freed when the function returns. Handle 0 is the
tape whose records are all zero, however many are read."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from pullback.ir.opdef import Array

_STORE: ContextVar[list[Sequence[Array]] | None] = ContextVar("tapes of the running interpretation", default=None)


@contextmanager
def tape_store() -> Iterator[None]:
    """Tapes made inside live until the end of the outermost such block."""
    if _STORE.get() is not None:
        yield
        return
    token = _STORE.set([()])  # number 0 is never written
    try:
        yield
    finally:
        _STORE.reset(token)


def write_tape(records: Sequence[Array]) -> Array:
    """Keep the records, one for each turn in the order of the turns; gives the handle."""
    store = _store()
    store.append(records)
    return np.asarray(len(store) - 1, np.int64)


def read_tape(handle: Array, turns: int, zero: Array) -> Sequence[Array]:
    """The records of a tape; of the zero tape, `turns` times `zero`."""
    number = int(handle)
    return _store()[number] if number else [zero] * turns


def _store() -> list[Sequence[Array]]:
    store = _STORE.get()
    if store is None:
        raise RuntimeError("a tape exists only while `interpret` runs")
    return store
