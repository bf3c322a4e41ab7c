"""Fit the polynomials of `pullback/codegen/math` and write `coefficients.py` and `pieces.py` there.

    python tools/fit_polynomials.py [NAME ...]     # without names: all; with names: those, the others are kept

Each row of `FITS` is a function, an interval and the weight of an error in it. A polynomial is found by the exchange
algorithm (Remez) on a fine grid of Chebyshev points in 50 digits. Its coefficients are then rounded one after the
other, lowest first, and after each rounding the rest is fitted again, so that rounding costs next to nothing.
"""

from __future__ import annotations

import struct
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpmath import mp, mpf

sys.path.insert(0, str(Path(__file__).parent))

from fit_special_table import BESSEL, INVERSE_ERF, MODIFIED
from fit_table import FITS, Fit, Pieces

FOLDER = Path(__file__).parent.parent / "pullback" / "codegen" / "math"
GRID_POINTS_PER_COEFFICIENT = 24


@dataclass(frozen=True)
class Grid:
    """Points of the interval with the function's value and the weight there."""

    points: list[mpf]
    values: list[mpf]
    weights: list[mpf]


def chebyshev_points(lo: mpf, hi: mpf, count: int) -> list[mpf]:
    middle, half = (lo + hi) / 2, (hi - lo) / 2
    return [middle - half * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def make_grid(fit: Fit, count: int) -> Grid:
    points = chebyshev_points(mpf(fit.interval[0]), mpf(fit.interval[1]), count)
    return Grid(points, [fit.function(x) for x in points], [fit.weight(x) for x in points])


def evaluate(coefficients: Sequence[mpf], x: mpf) -> mpf:
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def errors(grid: Grid, coefficients: Sequence[mpf]) -> list[mpf]:
    rows = zip(grid.points, grid.values, grid.weights, strict=True)
    return [w * (y - evaluate(coefficients, x)) for x, y, w in rows]


def alternation(values: Sequence[mpf], size: int) -> list[int]:
    """Indices of `size` extrema of alternating sign, the largest that can be had by dropping some from the ends."""
    peaks: list[int] = []
    for index, value in enumerate(values):
        if peaks and (values[peaks[-1]] > 0) == (value > 0):
            if abs(value) > abs(values[peaks[-1]]):
                peaks[-1] = index
        else:
            peaks.append(index)
    while len(peaks) > size:
        peaks.pop(0 if abs(values[peaks[0]]) < abs(values[peaks[-1]]) else -1)
    return peaks


def solve_reference(grid: Grid, reference: Sequence[int], fixed: Sequence[mpf], free: int) -> list[mpf]:
    """Free coefficients whose weighted error is equal and alternating on the reference."""
    matrix, right = mp.matrix(free + 1, free + 1), mp.matrix(free + 1, 1)
    for row, index in enumerate(reference):
        x, weight = grid.points[index], grid.weights[index]
        for column in range(free):
            matrix[row, column] = weight * x ** (column + len(fixed))
        matrix[row, free] = (-1) ** row
        right[row] = weight * (grid.values[index] - evaluate(fixed, x))
    return list(mp.lu_solve(matrix, right))[:free]


def remez(grid: Grid, fixed: Sequence[mpf], free: int) -> tuple[list[mpf], mpf]:
    """Best coefficients behind the `fixed` lowest ones, and the largest weighted error."""
    count = len(grid.points)
    reference = sorted({(count - 1) * k // free for k in range(free + 1)})
    best: tuple[list[mpf], mpf] = ([], mp.inf)
    for _ in range(25):
        coefficients = [*fixed, *solve_reference(grid, reference, fixed, free)]
        found = errors(grid, coefficients)
        largest = max(map(abs, found))
        if largest < best[1]:
            best = (coefficients, largest)
        peaks = alternation(found, free + 1)
        if len(peaks) < free + 1 or peaks == reference:
            break
        reference = peaks
    return best


def rounded(number: mpf, dtype: str) -> mpf:
    if dtype == "float":
        return mpf(struct.unpack("<f", struct.pack("<f", float(number)))[0])
    return mpf(float(number))


def fit_rounded(fit: Fit, dtype: str, count: int) -> tuple[list[float], mpf]:
    """Coefficients in `dtype`, lowest first, and the largest weighted error that they leave."""
    grid = make_grid(fit, GRID_POINTS_PER_COEFFICIENT * (count + 2))
    fixed: list[mpf] = []
    coefficients, _ = remez(grid, fixed, count)
    while len(fixed) < count:
        fixed.append(rounded(coefficients[len(fixed)], dtype))
        coefficients[: len(fixed)] = fixed
        if len(fixed) <= min(4, count - 1):
            refitted, largest = remez(grid, fixed, count - len(fixed))
            if largest < max(map(abs, errors(grid, coefficients))):  # not where the interval has zero inside
                coefficients = refitted
    return [float(c) for c in fixed], max(map(abs, errors(grid, fixed)))


def literal(number: float, dtype: str) -> str:
    return f"{number:.9g}" if dtype == "float" else repr(number)


def wrapped(numbers: Sequence[float], dtype: str, indent: int) -> list[str]:
    text = ", ".join(literal(number, dtype) for number in numbers) + ","
    return textwrap.wrap(text, 110, initial_indent=" " * indent, subsequent_indent=" " * indent)


def existing(output: Path) -> dict[str, str]:
    """Entries of the present file, by name, as text."""
    if not output.exists():
        return {}
    blocks = output.read_text().split("# fmt: off\n")[1].split("\n# ")[1:]
    return {block.split("\n")[1].split(":")[0]: "# " + block.rstrip() for block in blocks}


def polynomial_lines(fit: Fit, dtype: str, count: int) -> list[str]:
    numbers, error = fit_rounded(fit, dtype, count)
    exponent = f"2**{float(mp.log(error, 2)):.1f}"
    print(f"{fit.name:16} {dtype:6} {count:2} coefficients, error {exponent}", flush=True)
    return [f'    "{dtype}": (  # error {exponent}', *wrapped(numbers, dtype, 8), "    ),"]


def accurate_point(function: Callable[[mpf], mpf], lo: mpf, hi: mpf, dtype: str) -> mpf:
    """A number near the middle of the interval whose function value is almost exactly a number of the format."""
    candidates = [rounded((lo + hi) / 2 + k * (hi - lo) / 2**13, dtype) for k in range(-128, 129)]
    values = [function(point) for point in candidates]
    lost = [abs(value - rounded(value, dtype)) for value in values]
    return candidates[lost.index(min(lost))]


def piece_lines(pieces: Pieces, dtype: str, count: int) -> list[str]:
    """Rows of (centre, value there, coefficients...) for value + t q(t), t = x - centre."""
    lines = [f'    "{dtype}": (']
    worst = mpf(0)
    for k, (lo, hi) in enumerate(pieces.intervals):
        first = pieces.first if k == 0 else None
        zero = next((z for z in pieces.zeros if lo <= z < hi), None)
        centre = mpf(0) if first else accurate_point(pieces.function, lo, hi, dtype)
        if zero is not None:
            centre = rounded(zero, dtype)
        value = mpf(0) if first else rounded(pieces.function(centre), dtype)
        numbers, error = fit_rounded(first or pieces.around(centre, value, lo, hi), dtype, count)
        worst = max(worst, error)
        lines += ["        (", *wrapped([float(centre), float(value), *numbers], dtype, 12), "        ),"]
    print(f"{pieces.name:16} {dtype:6} {count:2} coefficients, error 2**{float(mp.log(worst, 2)):.1f}", flush=True)
    lines[0] += f"  # error 2**{float(mp.log(worst, 2)):.1f}"
    return [*lines, "    ),"]


def block(fit: Fit | Pieces) -> str:
    kind = "Coefficients" if isinstance(fit, Fit) else "Rows"
    lines = [f"# {fit.formula}", f"{fit.name}: {kind} = {{"]
    for dtype, count in (("double", fit.double), ("float", fit.single)):
        if count:
            lines += polynomial_lines(fit, dtype, count) if isinstance(fit, Fit) else piece_lines(fit, dtype, count)
    return "\n".join([*lines, "}"])


HEADERS = {
    Fit: '''"""Polynomials{of}, written by `tools/fit_polynomials.py`; lowest coefficient first.

The remark above each says what it approximates and on which interval; the error is in the function's own result.
"""

from typing import TypeAlias

Coefficients: TypeAlias = dict[str, tuple[float, ...]]

# With a line for each number this would be a long file.
# fmt: off
''',
    Pieces: '''"""Functions cut into intervals{of}, written by `tools/fit_polynomials.py`.

A row for each interval: (centre, value there, coefficients...), for value + t q(t) with t = x - centre. The centres
are such that the values are nearly exact. The error is in the function's own result.
"""

from typing import TypeAlias

Rows: TypeAlias = dict[str, tuple[tuple[float, ...], ...]]

# With a line for each number this would be a long file.
# fmt: off
''',
}
FILES = {
    "coefficients.py": (Fit, FITS, ""),
    "pieces.py": (Pieces, FITS, ""),
    "special_coefficients.py": (Fit, (*INVERSE_ERF, *BESSEL, *MODIFIED), " of special functions"),
    "inverse_erf_pieces.py": (Pieces, INVERSE_ERF, ": inverse error functions"),
    "bessel_pieces.py": (Pieces, BESSEL, ": Bessel functions"),
    "bessel_modified_pieces.py": (Pieces, MODIFIED, ": modified Bessel functions"),
}


def write(file: str, names: Sequence[str]) -> None:
    kind, table, of = FILES[file]
    fits = [fit for fit in table if isinstance(fit, kind)]
    known = existing(FOLDER / file)
    known.update({fit.name: block(fit) for fit in fits if not names or fit.name in names})
    text = HEADERS[kind].format(of=of) + "\n" + "\n\n".join(known[fit.name] for fit in fits if fit.name in known) + "\n"
    (FOLDER / file).write_text(text)


def main(names: Sequence[str]) -> None:
    for file in FILES:
        write(file, names)


if __name__ == "__main__":
    main(sys.argv[1:])
