"""Write the generated parts of the documentation: the op table of docs/ir.md.

    python tools/make_docs.py            write
    python tools/make_docs.py --check    exit status 1 if something is not up to date
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pullback.ir.describe import table  # noqa: E402  # the package beside this folder
from pullback.ir.ops import ALL_OPS  # noqa: E402

MARK = "## Ops\n"


def ir_page(old: str) -> str:
    """docs/ir.md with the op table made anew; what stands above the heading is kept."""
    head = old.partition(MARK)[0]
    return f"{head}{MARK}\n{table(ALL_OPS)}"


def main(arguments: list[str]) -> int:
    path = ROOT / "docs" / "ir.md"
    old = path.read_text(encoding="utf-8")
    new = ir_page(old)
    if old == new:
        return 0
    if "--check" in arguments:
        print(f"{path} is not up to date; run python tools/make_docs.py")
        return 1
    path.write_text(new, encoding="utf-8")
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
