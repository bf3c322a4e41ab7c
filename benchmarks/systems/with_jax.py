"""JAX: jitted, 64 bit on, and every result waited for.

`prepare` gives JAX its best case: the arguments are on its device beforehand and the results stay there.
`prepare_with_numpy` takes NumPy arrays and gives NumPy arrays, as pullback does.
"""

import importlib
from typing import Any

import numpy as np

from ..workload import Library, Prepared, Workload, gradients_alone, value_and_gradients

jax: Any = importlib.import_module("jax")
jax.config.update("jax_enable_x64", True)


def _scan(step: Any, carry: Any, xs: Any, length: int) -> Any:
    return jax.lax.scan(step, carry, xs, length)


JAX = Library(jax.numpy, importlib.import_module("jax.scipy.special"), _scan)


def prepare(workload: Workload, arguments: tuple[Any, ...]) -> Prepared | None:
    if workload.unrolled:
        return None
    compiled, with_value = _compile(workload), workload.with_value

    # `jax.block_until_ready` of a tuple walks a tree, which costs more than a small function.
    def call(*inputs: Any) -> Any:
        result = compiled(*inputs)
        gradients = result[1] if with_value else result
        for gradient in gradients if isinstance(gradients, tuple) else (gradients,):
            gradient.block_until_ready()
        if with_value:
            result[0].block_until_ready()
        return result

    on_device = tuple(
        jax.device_put(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments
    )
    return Prepared(call, on_device, _numbers(workload))


def prepare_with_numpy(workload: Workload, arguments: tuple[Any, ...]) -> Prepared:
    compiled = _compile(workload)

    def call(*inputs: Any) -> Any:
        return jax.tree.map(np.asarray, compiled(*inputs))

    return Prepared(call, arguments, _numbers(workload))


def _compile(workload: Workload) -> Any:
    transform = jax.value_and_grad if workload.with_value else jax.grad
    return jax.jit(transform(workload.bind(JAX), argnums=workload.differentiated))


def _numbers(workload: Workload) -> Any:
    return value_and_gradients if workload.with_value else gradients_alone
