"""`tools/fit_polynomials.py` makes the numbers that the package has."""

import importlib
import runpy
from pathlib import Path

import pytest

from pullback.codegen.math import coefficients

TOOL = Path(__file__).parent.parent.parent / "tools" / "fit_polynomials.py"


@pytest.mark.parametrize("name", ["COSH_TAIL", "LOG2_SHORT"])
def test_fitting_again_gives_the_same_coefficients(name: str) -> None:
    tool = runpy.run_path(str(TOOL))
    (fit,) = [fit for fit in tool["FITS"] if fit.name == name]
    for dtype, count in (("double", fit.double), ("float", fit.single)):
        if count:
            numbers, _ = tool["fit_rounded"](fit, dtype, count)
            written = [float(tool["literal"](number, dtype)) for number in numbers]
            assert written == list(getattr(coefficients, name)[dtype])


def test_every_row_of_the_table_is_in_the_package() -> None:
    tool = runpy.run_path(str(TOOL))
    for file, (kind, fits, _) in tool["FILES"].items():
        module = importlib.import_module(f"pullback.codegen.math.{Path(file).stem}")
        for fit in fits:
            if isinstance(fit, kind):
                counts = {"double": fit.double, "float": fit.single}
                assert set(getattr(module, fit.name)) == {dtype for dtype, count in counts.items() if count}
