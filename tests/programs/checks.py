"""The checks that every program of the tables must pass."""

from typing import Any

import numpy as np

import pullback as pb
from pullback.ir.interpret import interpret
from tests import reference
from tests.programs.program import Program

# Richardson's extrapolation reaches about 1e-10 of the largest entry on these programs.
RELATIVE = 1e-7
OF_LARGEST = 1e-9


def check_value(program: Program) -> None:
    """The compiled program returns what NumPy returns, and leaves its arguments alone."""
    arguments = program.sample()
    before = reference.copy(arguments)
    _assert_close(pb.jit(program.function)(*arguments), program.function(*reference.copy(arguments)), 1e-13, 1e-14)
    np.testing.assert_array_equal(reference.flatten(arguments), reference.flatten(before))


def check_gradient(program: Program) -> None:
    """`grad` agrees with finite differences; `value_and_grad` and `vjp` agree with `grad`."""
    arguments = program.sample()
    found = pb.grad(program.function, argnums=program.argnums)(*arguments)
    expected = reference.gradient(program.function, arguments, program.argnums)
    _assert_close(reference.flatten(found), reference.flatten(expected), RELATIVE, OF_LARGEST)
    value, again = pb.value_and_grad(program.function, argnums=program.argnums)(*arguments)
    _assert_close(value, program.function(*reference.copy(arguments)), 1e-13, 1e-14)
    _assert_close(reference.flatten(again), reference.flatten(found), 1e-12, 1e-13)
    active = tuple(arguments[number] for number in program.argnums)
    _, pull = pb.vjp(_in_active(program, arguments), *active)
    _assert_close(reference.flatten(pull(2.0)), 2.0 * reference.flatten(found), 1e-12, 1e-13)


def check_interpreter(program: Program) -> None:
    """Native code agrees to a few units in the last place with the interpreter on the program as differentiated."""
    arguments = program.sample()
    transformed = pb.value_and_grad(program.function, argnums=program.argnums)
    staged = pb.lower(transformed, *reference.copy(arguments))
    call = transformed.call_of(arguments, {})
    values = [call.values[leaf] for leaf in staged.traced.leaves] + [extra.source for extra in staged.extras]
    typed = [np.asarray(v, dtype=p.type.dtype) for v, p in zip(values, staged.function.params, strict=True)]
    results = interpret(staged.function, typed)
    expected = staged.out_tree.unflatten([results[output.index] for output in staged.outputs])
    found = transformed(*arguments)
    _assert_close(reference.flatten(found), reference.flatten(expected), 1e-12, 1e-14)


def check_forward_mode(program: Program) -> None:
    """`jvp` along a direction is the gradient's product with it."""
    arguments, active, direction = _with_direction(program)
    _, slope = pb.jvp(_in_active(program, arguments), active, direction)
    gradient = reference.flatten(pb.grad(program.function, argnums=program.argnums)(*arguments))
    weights = reference.flatten(direction)
    _assert_close(slope, gradient @ weights, 1e-10, 1e-12 * float(np.abs(gradient) @ np.abs(weights)))


def check_second_derivative(program: Program) -> None:
    """The derivative of `grad` along a direction agrees with second differences, in both nestings."""
    arguments, active, direction = _with_direction(program)
    expected = reference.second_derivative(
        program.function, arguments, direction, program.argnums, program.analytic
    )
    function, weights = _in_active(program, arguments), reference.flatten(direction)
    every = tuple(range(len(active)))
    _, change = pb.jvp(pb.grad(function, argnums=every), active, direction)
    tolerance = max(1e-7 * abs(expected.value), 10 * expected.error, 1e-8)
    assert abs(reference.flatten(change) @ weights - expected.value) <= tolerance

    def slope(*inner: Any) -> Any:
        return pb.jvp(function, inner, direction)[1]

    again = pb.grad(slope, argnums=every)(*active)
    _assert_close(reference.flatten(again), reference.flatten(change), 1e-9, 1e-10)


def check_hessian(program: Program) -> None:
    """`hessian` is symmetric, and its product with a direction is the change of the gradient along it."""
    arguments, active, direction = _with_direction(program)
    function = _in_active(program, arguments)
    size = reference.flatten(active).size
    hessian = np.reshape(pb.hessian(function)(*active), (size, size))
    _, change = pb.jvp(pb.grad(function), active, direction)
    _assert_close(hessian, hessian.T, 1e-9, 1e-11)
    _assert_close(hessian @ reference.flatten(direction), reference.flatten(change), 1e-9, 1e-11)


def has_small_hessian(program: Program) -> bool:
    """Tell whether the program is differentiated in one array of at most a dozen numbers."""
    active = [program.sample()[number] for number in program.argnums]
    return len(active) == 1 and isinstance(active[0], np.ndarray) and active[0].size <= 12


def _with_direction(program: Program) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]:
    arguments = program.sample()
    active = tuple(arguments[number] for number in program.argnums)
    numbers = np.random.default_rng(1).standard_normal(reference.flatten(active).size)
    return arguments, active, reference.unflatten(active, numbers)


def _in_active(program: Program, arguments: tuple[Any, ...]) -> Any:
    def function(*active: Any) -> Any:
        full = list(reference.copy(arguments))
        for number, argument in zip(program.argnums, active, strict=True):
            full[number] = argument
        return program.function(*full)

    return function


def _assert_close(found: Any, expected: Any, relative: float, of_largest: float) -> None:
    largest = float(np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=relative, atol=of_largest * max(largest, 1.0))
