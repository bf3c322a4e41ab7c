"""Fixtures of the code generator's tests."""

from __future__ import annotations

import pytest

from pullback.codegen import kernel


@pytest.fixture(params=[False, True], ids=["one thread", "shared"])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Kernels of any size are cut into chunks, which `tests.native` runs from the last to the first."""
    if request.param:
        monkeypatch.setattr(kernel, "SHARED_FROM_NS", 0.0)
        monkeypatch.setattr(kernel, "CHUNK_NS", 3.0)
    return bool(request.param)
