"""Imports point one way. They are read from the source, drawn as a graph, and asked: no cycle, no upward arrow."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pullback"
# What each part of the package may import beside itself. What is not listed is a front end: it may import all of these.
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "version": set(),
    "lazy": set(),
    "record": set(),
    "config": {"errors", "record"},
    "ir": {"errors", "record", "config"},
    "tracer": {"errors", "record", "config", "ir", "lazy"},
    "passes": {"errors", "record", "config", "ir", "lazy"},
    "codegen": {"errors", "record", "config", "ir", "version", "lazy"},
    "runtime": {"errors", "record", "config", "ir", "version", "codegen"},
    "driver": {"errors", "record", "config", "ir", "version", "lazy", "tracer", "passes", "codegen", "runtime"},
    "api": {"errors", "record", "config", "ir", "version", "lazy", "tracer", "passes", "codegen", "runtime", "driver"},
}
FRONT_ENDS_BELOW = {"cli": {"demo"}, "__main__": {"cli"}, "__init__": {"api", "lazy", "numpy", "scipy"}}
# The one module of codegen that the runtime may use: the records of compiled code.
HANDED_TO_RUNTIME = "pullback.codegen.object"
ONLY_IN = {"llvmlite": "codegen", "networkx": "passes"}


@dataclass(frozen=True)
class Import:
    """One import: by which module, of what, on which line; inside a function, or for the type checker only."""

    by: str
    of: str
    line: int
    in_function: bool
    for_types: bool

    def __str__(self) -> str:
        return f"{self.by}:{self.line} imports {self.of}"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=1)
def modules() -> dict[str, ast.Module]:
    return {module_name(p): ast.parse(p.read_text(encoding="utf-8")) for p in sorted(PACKAGE.rglob("*.py"))}


def part(name: str) -> str:
    """The folder or top-level module that a module belongs to."""
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


class _Reader(ast.NodeVisitor):
    def __init__(self, by: str) -> None:
        self.by = by
        self.found: list[Import] = []
        self.functions = 0
        self.type_checking = 0

    def add(self, node: ast.stmt, of: str) -> None:
        self.found.append(Import(self.by, of, node.lineno, self.functions > 0, self.type_checking > 0))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert node.level == 0, f"{self.by}:{node.lineno}: relative import"
        assert node.module is not None
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            self.add(node, inner if inner in modules() else node.module)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._inside(node)

    def _inside(self, node: ast.AST) -> None:
        self.functions += 1
        self.generic_visit(node)
        self.functions -= 1

    def visit_If(self, node: ast.If) -> None:
        name = isinstance(node.test, ast.Name | ast.Attribute)
        inside = name and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        self.type_checking += inside
        for child in node.body:
            self.visit(child)
        self.type_checking -= inside
        for child in node.orelse:
            self.visit(child)

    def visit_Call(self, node: ast.Call) -> None:
        """`import_module("x")` and `LazyModule("x")` are imports of x, wherever they stand."""
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))  # unparsing every call takes seconds
        named = called in ("import_module", "__import__", "LazyModule")
        if named and node.args and isinstance(node.args[0], ast.Constant):
            self.found.append(Import(self.by, str(node.args[0].value), node.lineno, False, False))
        self.generic_visit(node)


@lru_cache(maxsize=1)
def imports() -> tuple[Import, ...]:
    found: list[Import] = []
    for name, tree in modules().items():
        reader = _Reader(name)
        reader.visit(tree)
        found.extend(reader.found)
    return tuple(found)


def ours() -> Iterator[Import]:
    return (i for i in imports() if i.of.split(".")[0] == "pullback")


def allowed(by: str) -> set[str]:
    if by in BELOW:
        return BELOW[by] | {by}
    return set(BELOW) | FRONT_ENDS_BELOW.get(by, set()) | {by, "__init__"}


def test_no_arrow_points_upward() -> None:
    wrong = [str(i) for i in ours() if part(i.of) not in allowed(part(i.by))]
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = nx.DiGraph((i.by, i.of) for i in ours() if not i.for_types and not i.in_function and i.by != i.of)
    cycle = next(iter(nx.simple_cycles(graph)), None)
    assert cycle is None, " -> ".join(cycle or ())


def test_the_parts_form_no_circle_even_for_the_type_checker() -> None:
    graph = nx.DiGraph((part(i.by), part(i.of)) for i in ours() if part(i.by) != part(i.of))
    cycle = next(iter(nx.simple_cycles(graph)), None)
    assert cycle is None, " -> ".join(cycle or ())


def test_the_runtime_knows_of_codegen_only_the_records_of_compiled_code() -> None:
    found = [i for i in ours() if part(i.by) == "runtime" and part(i.of) == "codegen"]
    wrong = [str(i) for i in found if i.of != HANDED_TO_RUNTIME]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_large_library_is_used_in_one_folder_only(library: str) -> None:
    wrong = [str(i) for i in imports() if i.of.split(".")[0] == library and part(i.by) != ONLY_IN[library]]
    assert not wrong, "\n".join(wrong)


def test_networkx_is_not_imported_with_the_package() -> None:
    """It costs a tenth of a second; `passes.views.networkx` loads it when it is first needed."""
    by = {i.by for i in imports() if i.of.split(".")[0] == "networkx"}
    statements = [i for name in by for i in _statements(name) if i.of.split(".")[0] == "networkx"]
    assert not statements, statements


def _statements(name: str) -> list[Import]:
    reader = _Reader(name)
    for node in ast.walk(modules()[name]):
        if isinstance(node, ast.Import | ast.ImportFrom):
            reader.visit(node)
    return reader.found


def test_no_import_inside_a_function_but_in_the_command_line() -> None:
    wrong = [str(i) for i in imports() if i.in_function and part(i.by) not in ("cli", "__main__")]
    assert not wrong, "\n".join(wrong)
