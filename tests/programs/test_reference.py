import numpy as np
import pytest

from tests import reference
from tests.programs import inplace, table

ANALYTIC = sorted(name for name, program in table.PROGRAMS.items() if program.analytic)


def test_the_tables_are_long_enough_and_share_no_name() -> None:
    assert len(table.PROGRAMS) >= 40
    assert len(inplace.PROGRAMS) >= 30
    assert not table.PROGRAMS.keys() & inplace.PROGRAMS.keys()


@pytest.mark.parametrize("name", ANALYTIC)
def test_extrapolated_differences_agree_with_complex_steps(name: str) -> None:
    program = table.PROGRAMS[name]
    found, exact = (
        reference.flatten(method(program.function, program.sample(), program.argnums))
        for method in (reference.gradient, reference.complex_gradient)
    )
    np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("name", ANALYTIC)
def test_both_kinds_of_second_difference_agree(name: str) -> None:
    program = table.PROGRAMS[name]
    arguments = program.sample()
    active = tuple(arguments[number] for number in program.argnums)
    numbers = np.random.default_rng(1).standard_normal(reference.flatten(active).size)
    direction = reference.unflatten(active, numbers)
    coarse, fine = (
        reference.second_derivative(program.function, arguments, direction, program.argnums, analytic)
        for analytic in (False, True)
    )
    assert abs(coarse.value - fine.value) <= max(1e-7 * abs(fine.value), 1e-8)


def test_nested_arguments_flatten_and_come_back() -> None:
    tree = {"b": (np.arange(3.0), 2.0), "a": [np.ones((2, 2))]}
    numbers = reference.flatten(tree)
    np.testing.assert_array_equal(numbers, [1, 1, 1, 1, 0, 1, 2, 2])
    again = reference.unflatten(tree, numbers)
    assert list(again) == ["b", "a"]
    assert again["b"][1] == 2.0
    np.testing.assert_array_equal(again["b"][0], tree["b"][0])


def test_a_known_derivative_is_found_to_ten_digits() -> None:
    (slope,) = reference.gradient(lambda x: np.exp(np.sin(x)), (0.7,))
    np.testing.assert_allclose(slope, np.cos(0.7) * np.exp(np.sin(0.7)), rtol=1e-10)
