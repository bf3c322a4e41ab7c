"""Views of the graph: as a networkx graph for questions that have an algorithm there, and as DOT for the eye."""

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pullback.ir.graph import Function, Op, Region, Value
from pullback.ir.text import value_names


def networkx() -> ModuleType:
    """The networkx module, imported when first asked for: that takes a tenth of a second, and few compilations do."""
    return importlib.import_module("networkx")


def op_graph(region: Region) -> Any:
    """A `networkx.DiGraph` of a region: ops and parameters are nodes, an edge goes from each to the ops that read it.

    Parameters stand as their `Value`. The edge attribute `bytes` is the size of all that flows along it. Regions
    inside are part of their op.
    """
    graph = networkx().DiGraph()
    graph.add_nodes_from(region.params)
    for op in region.ops:
        graph.add_node(op)
        for operand in dict.fromkeys(op.operands):
            source = operand if operand.op is None else operand.op
            before = graph.get_edge_data(source, op, {"bytes": 0})["bytes"]
            graph.add_edge(source, op, bytes=before + operand.type.nbytes)
    return graph


# ------------------------------------------------------------------ DOT


def to_dot(function: Function) -> str:
    """The function in the DOT language: a box for each op, a frame for each region, the user's line as tooltip."""
    names = value_names(function)
    body = "\n".join(_Dot(names).lines(function.body, "f"))
    return f'digraph "{_escape(function.name)}" {{\n  node [shape=box, fontname="monospace"];\n{body}\n}}\n'


class _Dot:
    """The lines of a DOT file; nodes are named by the path of their region and their number in it."""

    def __init__(self, names: dict[Value, str]) -> None:
        self.names = names
        self.nodes: dict[Value, str] = {}

    def lines(self, region: Region, path: str) -> Iterator[str]:
        for param in region.params:
            self.nodes[param] = f"{path}_p{param.index}"
            label = f"{self.names[param]}: {param.type}"
            yield f'  {self.nodes[param]} [label="{_escape(label)}", style=rounded];'
        for number, op in enumerate(region.ops):
            yield from self.op(op, f"{path}_{number}")
        yield f'  {path}_end [label="results", style=rounded];'
        for value in region.results:
            yield f"  {self.nodes[value]} -> {path}_end;"

    def op(self, op: Op, node: str) -> Iterator[str]:
        results = ", ".join(f"{self.names[r]}: {r.type}" for r in op.results)
        label = f"{results} = {op.opdef.name}" if results else op.opdef.name
        yield f'  {node} [label="{_escape(label)}", tooltip="{_escape(str(op.loc or ""))}"];'
        self.nodes.update(dict.fromkeys(op.results, node))
        for operand in op.operands:
            yield f"  {self.nodes[operand]} -> {node};"
        for name, region in zip(op.opdef.regions, op.regions, strict=True):
            inner = f"{node}_{name}"
            yield f'  subgraph cluster_{inner} {{\n  label="{op.opdef.name}: {name}";'
            yield from self.lines(region, inner)
            yield "  }"
            yield f"  {node} -> {inner}_end [style=dotted, dir=back];"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
