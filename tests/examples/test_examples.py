import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np

from tests import reference

FOLDER = Path(__file__).resolve().parents[2] / "examples"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_listed_and_tested() -> None:
    names = {path.stem for path in FOLDER.glob("*.py")}
    listed = {line.split("`")[1] for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| `")}
    assert {f"{name}.py" for name in names} == listed
    assert all(f"_load(\"{name}\")" in Path(__file__).read_text() for name in names)


def test_quickstart_agrees_with_derivatives_on_paper() -> None:
    found = _load("quickstart").main()
    x, y, z = 1.2, 0.8, 1.1
    gradient = [
        -400 * x * (y - x**2) - 2 * (1 - x),
        200 * (y - x**2) - 400 * y * (z - y**2) - 2 * (1 - y),
        200 * (z - y**2),
    ]
    hessian = np.array(
        [
            [1200 * x**2 - 400 * y + 2, -400 * x, 0],
            [-400 * x, 202 + 1200 * y**2 - 400 * z, -400 * y],
            [0, -400 * y, 200],
        ]
    )
    np.testing.assert_allclose(found["gradient"], gradient, rtol=1e-12)
    np.testing.assert_allclose(found["hessian"], hessian, rtol=1e-12)
    np.testing.assert_allclose(found["slope along (1, 0, -1)"], gradient[0] - gradient[2], rtol=1e-12)
    np.testing.assert_allclose(found["vjp of 2"], 2 * np.array(gradient), rtol=1e-12)
    np.testing.assert_allclose(found["hessian times (1, 0, -1)"], hessian @ [1, 0, -1], rtol=1e-12)


def test_the_lynxes_and_hares_have_the_rates_that_are_in_the_literature() -> None:
    # Carpenter's fit with Stan (2018) gives 0.55, 0.028, 0.024, 0.80; errors and priors differ a little here.
    np.testing.assert_allclose(_load("lynx_and_hare").main(), [0.55, 0.028, 0.024, 0.80], rtol=0.1)


def test_the_mixture_becomes_more_likely() -> None:
    before, after = _load("mixture").main()
    assert after < before - 1.0


def test_newtons_method_converges_and_tells_the_digits_apart() -> None:
    accuracy, gradient = _load("newton_digits").main()
    assert accuracy > 0.95
    assert np.abs(gradient).max() < 1e-10


def test_the_rod_is_found_from_its_end() -> None:
    heat = _load("heat")
    np.testing.assert_allclose(heat.main().mean(), heat.TRUTH.mean(), rtol=0.1)


def test_the_comets_sensitivities_agree_with_differences() -> None:
    kepler = _load("kepler")
    for year, value, *slopes in kepler.main():
        arguments = (float(year), kepler.AXIS, kepler.ECCENTRICITY)
        np.testing.assert_allclose(value, kepler.distance(*arguments), rtol=1e-12)
        expected = reference.gradient(kepler.distance, arguments, (0, 1, 2))
        np.testing.assert_allclose(slopes, expected, rtol=1e-6)
