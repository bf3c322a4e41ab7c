"""The documentation says what the compiler does: generated blocks are current, examples run, links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pullback.ir.parse import parse_function
from pullback.ir.text import print_function

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_generated_blocks_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "tools/make_docs.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_example_of_the_readme_prints_what_it_says() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(import numpy as np\nimport pullback.*?)```", text, re.DOTALL)
    assert code is not None
    said = re.search(r"# (\[.*\])\n", code[1])
    assert said is not None
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_a_dump_parsed_and_dumped_again_is_identical() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for block in re.findall(r"```\n(// stage: .*?)\n```", page, re.DOTALL):
        text = "\n".join(line for line in block.splitlines() if not re.match(r"\s*// (\d+ \||memory)", line)) + "\n"
        assert print_function(parse_function(text)) == text
