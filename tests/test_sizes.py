"""Modules and functions stay small, say what they are for, and leave nothing half done."""

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("pullback", "tests", "benchmarks", "tools", "examples")
PACKAGE = sorted((ROOT / "pullback").rglob("*.py"))
ALL = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
MOST_LINES = 600
MOST_LINES_OF_A_FUNCTION = 80
UNFINISHED = ("TODO", "FIXME", "XXX", "HACK", "NotImplementedError(")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_module_is_longer_than_it_can_be_taken_in() -> None:
    long = {name_of(p): n for p in ALL if (n := len(p.read_text(encoding="utf-8").splitlines())) > MOST_LINES}
    assert not long, long


def test_functions_are_short() -> None:
    lengths = {f"{name_of(p)}:{f.name}": lines_of(f) for p in PACKAGE for f in functions(p)}
    long = {name: n for name, n in lengths.items() if n > MOST_LINES_OF_A_FUNCTION}
    assert not long, long
    assert median(lengths.values()) <= 12


@pytest.mark.parametrize("path", PACKAGE, ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree) or not tree.body


def test_nothing_is_left_unfinished() -> None:
    found = [f"{name_of(p)}: {word}" for p in PACKAGE for word in UNFINISHED if word in p.read_text(encoding="utf-8")]
    assert not found, found


def test_no_function_rebinds_a_variable_of_its_module() -> None:
    found = [
        f"{name_of(p)}:{node.lineno}: global {', '.join(node.names)}"
        for p in PACKAGE
        for node in ast.walk(ast.parse(p.read_text(encoding="utf-8")))
        if isinstance(node, ast.Global)
    ]
    assert not found, found


def test_public_classes_of_the_package_have_a_docstring() -> None:
    bare = [
        f"{name_of(path)}:{node.lineno}: {node.name}"
        for path in PACKAGE
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and ast.get_docstring(node) is None
    ]
    assert not bare, bare
