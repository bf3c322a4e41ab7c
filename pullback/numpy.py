"""NumPy's namespace for those who want no patching: ``import pullback.numpy as np``.

Every name is NumPy's own, but for those creation functions (`zeros`, `array`, `arange`, ...) whose arrays must be able
to take traced values: inside a trace they give such arrays, outside they are NumPy's. With the option ``patch=off`` the
names of `numpy` itself are left alone while a function is traced.
"""

from typing import Any

import numpy

from pullback.tracer.functions.table import PATCHER

__array_api_version__ = "2024.12"
"""The edition of the Python array API standard that is tested; a newer NumPy may have names of a later one too."""


def __getattr__(name: str) -> Any:
    return PATCHER.replacement(getattr(numpy, name))


def __dir__() -> list[str]:
    return dir(numpy)
