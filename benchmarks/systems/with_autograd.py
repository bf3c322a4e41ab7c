"""HIPS autograd: the NumPy function on its wrapped NumPy, operation by operation."""

import importlib
from typing import Any

from ..stepping import python_scan
from ..workload import Library, Prepared, Workload, gradients_alone, value_and_gradients

autograd: Any = importlib.import_module("autograd")
NAMES = importlib.import_module("autograd.numpy")
AUTOGRAD = Library(NAMES, importlib.import_module("autograd.scipy.special"), python_scan(NAMES))


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    function, argnum = workload.bind(AUTOGRAD), workload.differentiated
    if workload.with_value:
        return Prepared(autograd.value_and_grad(function, argnum=argnum), arguments, value_and_gradients)
    return Prepared(autograd.grad(function, argnum=argnum), arguments, gradients_alone)
