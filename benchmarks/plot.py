"""The ratios as a picture: SVG, written as text, so that no plotting package is needed."""

import math
from html import escape

from .report import duration
from .results import Result

COLOURS = {
    "numpy": "#9aa5b1",
    "jax": "#d9822b",
    "jax+numpy": "#f2b36b",
    "torch": "#c23030",
    "autograd": "#8f398f",
    "numba": "#0f9960",
}
LEFT, RIGHT, TOP, ROW, GAP, SPAN = 190, 110, 64, 9, 12, 620


def draw(results: list[Result]) -> str:
    """Return an SVG: for each workload a bar for each other system, as long as its time over pullback's (logarithmic).

    Bars to the right of the line are slower than pullback, bars to the left faster.
    """
    rows = [(result, _ratios(result)) for result in results if _ratios(result)]
    every = [ratio for _, ratios in rows for ratio in ratios.values()]
    low, high = min([0.5, *every]), max([2.0, *every])
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))

    def across(ratio: float) -> float:
        return LEFT + SPAN * (math.log10(ratio) - first) / (last - first)

    parts, y = [], float(TOP)
    for result, ratios in rows:
        parts.append(_label(result, y + ROW * len(ratios) / 2))
        for system, ratio in ratios.items():
            parts.append(_bar(system, across(1.0), across(ratio), y, ratio))
            y += ROW
        y += GAP
    grid = [_grid(across(10.0**power), y, power) for power in range(first, last + 1)]
    return _page([*grid, *parts, *_legend(rows)], y + 8)


def _ratios(result: Result) -> dict[str, float]:
    names = [entry.system for entry in result.entries if entry.system != "pullback"]
    return {name: ratio for name in names if (ratio := result.ratio(name)) is not None}


def _label(result: Result, y: float) -> str:
    time = duration(result.median("pullback") or 0.0)
    return (
        f'<text x="{LEFT - 10}" y="{y:.1f}" text-anchor="end" dominant-baseline="middle">{escape(result.workload)} '
        f'<tspan fill="#8a9ba8">{time}</tspan></text>'
    )


def _bar(system: str, one: float, end: float, y: float, ratio: float) -> str:
    left, width, colour = min(one, end), abs(end - one), COLOURS.get(system, "#5c7080")
    text = f"{escape(system)}: {ratio:.3g} times pullback's time"
    after, middle = max(one, end) + 4, y + ROW / 2
    return (
        f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{ROW - 1}" fill="{colour}">'
        f"<title>{text}</title></rect>"
        f'<text x="{after:.1f}" y="{middle:.1f}" dominant-baseline="middle" class="n">{ratio:.3g}</text>'
    )


def _grid(x: float, bottom: float, power: int) -> str:
    colour = "#182026" if power == 0 else "#d8dee4"
    label = "pullback" if power == 0 else f"{10.0**power:g} x"
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 10}" y2="{bottom:.1f}" stroke="{colour}"/>'
        f'<text x="{x:.1f}" y="{TOP - 16}" text-anchor="middle">{label}</text>'
    )


def _legend(rows: list[tuple[Result, dict[str, float]]]) -> list[str]:
    systems = list(dict.fromkeys(system for _, ratios in rows for system in ratios))
    return [
        f'<rect x="{LEFT + 100 * n}" y="14" width="10" height="10" fill="{COLOURS.get(system, "#5c7080")}"/>'
        f'<text x="{LEFT + 100 * n + 15}" y="23">{escape(system)}</text>'
        for n, system in enumerate(systems)
    ]


def _page(parts: list[str], height: float) -> str:
    width = LEFT + SPAN + RIGHT
    style = "text{font:11px system-ui,sans-serif;fill:#182026}.n{font-size:8px;fill:#5c7080}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}">'
    body = "\n".join(parts)
    return f'{head}\n<style>{style}</style>\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n'
