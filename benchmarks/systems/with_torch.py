"""PyTorch in eager mode: tensors that share memory with the NumPy arguments."""

import importlib
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..stepping import python_scan
from ..workload import Library, Prepared, Workload

torch: Any = importlib.import_module("torch")


def _largest(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return torch.amax(x, dim=() if axis is None else axis, keepdim=keepdims)


# The NumPy names that PyTorch has under another name or with other rules; the rest is taken from torch as it is.
RENAMED = {
    "max": _largest,
    "concatenate": lambda arrays, axis=0: torch.cat(tuple(arrays), dim=axis),
    "stack": lambda arrays, axis=0: torch.stack(tuple(arrays), dim=axis),
    "log": lambda x: torch.log(torch.as_tensor(x, dtype=torch.get_default_dtype())),
    "sqrt": lambda x: x**0.5 if isinstance(x, float) else torch.sqrt(x),
    "pad": lambda x, width: torch.nn.functional.pad(x, (width,) * (2 * x.ndim)),
    "logaddexp": lambda x, y: torch.logaddexp(torch.as_tensor(x, dtype=y.dtype), y),
}


class _NumpyNames(SimpleNamespace):
    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


NAMES = _NumpyNames(**RENAMED)
TORCH = Library(NAMES, torch.special, python_scan(NAMES))
torch.set_default_dtype(torch.float64)


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    function, argnums, with_value = workload.bind(TORCH), workload.argnums, workload.with_value

    def call(*tensors: Any) -> Any:
        value = function(*tensors)
        return value, torch.autograd.grad(value, [tensors[number] for number in argnums])

    def numbers(result: Any) -> tuple[Any, list[Any]]:
        value, gradients = result
        return value.item() if with_value else None, [gradient.numpy() for gradient in gradients]

    return Prepared(call, tuple(_tensor(a, n in argnums) for n, a in enumerate(arguments)), numbers)


def _tensor(argument: Any, active: bool) -> Any:
    if isinstance(argument, np.ndarray):
        tensor = torch.from_numpy(argument)
        return tensor.requires_grad_() if active else tensor
    return torch.tensor(argument, requires_grad=True) if active else argument
