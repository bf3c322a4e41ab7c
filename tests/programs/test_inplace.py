import pytest

from tests.programs import checks
from tests.programs.inplace import PROGRAMS

every_program = pytest.mark.parametrize("name", sorted(PROGRAMS))


@every_program
def test_the_compiled_program_that_writes_in_place_returns_what_numpy_returns(name: str) -> None:
    checks.check_value(PROGRAMS[name])


@every_program
def test_the_gradient_through_writes_agrees_with_finite_differences(name: str) -> None:
    checks.check_gradient(PROGRAMS[name])


@every_program
def test_native_code_agrees_with_the_interpreter_through_writes(name: str) -> None:
    checks.check_interpreter(PROGRAMS[name])


@every_program
def test_forward_mode_through_writes_agrees_with_reverse_mode(name: str) -> None:
    checks.check_forward_mode(PROGRAMS[name])


@pytest.mark.parametrize("name", sorted(name for name, program in PROGRAMS.items() if program.smooth))
def test_the_second_derivative_through_writes_agrees_with_second_differences(name: str) -> None:
    checks.check_second_derivative(PROGRAMS[name])


@pytest.mark.parametrize("name", sorted(name for name in PROGRAMS if checks.has_small_hessian(PROGRAMS[name])))
def test_the_hessian_through_writes_is_symmetric_and_agrees_with_nested_modes(name: str) -> None:
    checks.check_hessian(PROGRAMS[name])
