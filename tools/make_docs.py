"""Write the generated parts of the documentation: the op table of docs/ir.md, the tables of NumPy's names in
docs/numpy.md and of SciPy's in docs/special.md, and the programs in docs/architecture.md.

    python tools/make_docs.py            write
    python tools/make_docs.py --check    exit status 1 if something is not up to date

A code block is generated when the comment line above it says what it holds: `<!-- dump STAGE -->` or
`<!-- file PATH -->`.
"""

import contextlib
import io
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pullback.cli import main as command_line  # noqa: E402  # the package beside this folder
from pullback.codegen.math import MATH  # noqa: E402
from pullback.ir.describe import table  # noqa: E402
from pullback.ir.ops import ALL_OPS  # noqa: E402
from pullback.tracer.functions import catalogue, special_catalogue  # noqa: E402

EXAMPLE = "docs/examples/model.py"
OPS_HEADING = "## Ops\n"
NAMES_HEADING = "## Names\n"
ACCURACY_MARK = "<!-- accuracy -->\n"
_BLOCK = re.compile(r"(<!-- (?P<kind>dump|file|command) (?P<what>[^>]+) -->\n```[a-z]*\n).*?(\n```)", re.DOTALL)


def command_output(arguments: list[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = command_line(arguments)
    if status:
        raise SystemExit(f"pullback {' '.join(arguments)} gave status {status}")
    return out.getvalue().rstrip("\n")


def content(kind: str, what: str) -> str:
    """What belongs into a generated block."""
    if kind == "file":
        return (ROOT / what).read_text(encoding="utf-8").rstrip("\n")
    target = [f"{ROOT / EXAMPLE}:loss", "--args", "f64[4,3], f64[3]", "--argnums", "0,1", "--no-color"]
    if kind == "dump":
        gradient = [] if what == "traced" else ["--grad"]
        return command_output(["dump", *target, *gradient, "--stage", what])
    return command_output(what.split())


def with_blocks(text: str) -> str:
    """The page with each generated block made anew."""
    return _BLOCK.sub(lambda m: m[1] + content(m["kind"], m["what"]) + m[4], text)


def ir_page(text: str) -> str:
    """docs/ir.md with the op table made anew; what stands above its heading is kept."""
    return f"{text.partition(OPS_HEADING)[0]}{OPS_HEADING}\n{table(ALL_OPS)}"


def numpy_page(text: str) -> str:
    """docs/numpy.md with its tables made anew, or as it is where they tell of another release of NumPy.

    To have them made for the release that is installed, remove them from the page first.
    """
    head, heading, _ = text.partition(NAMES_HEADING)
    made = catalogue.page()
    first_line = made.splitlines()[0]
    return text if heading and first_line not in text else f"{head}{NAMES_HEADING}\n{made}"


def special_page(text: str) -> str:
    """docs/special.md with its tables made anew."""
    head = text.partition(ACCURACY_MARK)[0]
    rows = [
        f"| `{f.name}` | {f.ulp[0]:g} | {f.ulp[1]:g} |" for f in MATH.values() if f.numpy.startswith("scipy.special.")
    ]
    table_ = "\n".join(["| | float64 | float32 |", "|---|---|---|", *rows])
    return f"{head}{ACCURACY_MARK}\n{table_}\n\n## Names\n\n{special_catalogue.page()}"


PAGES: dict[str, Callable[[str], str]] = {
    "docs/ir.md": ir_page,
    "docs/special.md": special_page,
    "docs/numpy.md": numpy_page,
    "docs/architecture.md": with_blocks,
    "README.md": with_blocks,
}


def main(arguments: list[str]) -> int:
    stale = []
    for name, make in PAGES.items():
        path = ROOT / name
        old = path.read_text(encoding="utf-8")
        new = make(old)
        if old != new:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(new, encoding="utf-8")
    if stale:
        print(("not up to date: " if "--check" in arguments else "wrote ") + ", ".join(stale))
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
