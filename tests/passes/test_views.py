"""Views of the graph: networkx and DOT."""

from pullback.ir.builder import Builder
from pullback.ir.emit import Emitter
from pullback.ir.graph import Function, Location
from pullback.ir.ops import OPS
from pullback.ir.parse import parse_function
from pullback.ir.types import parse_type
from pullback.passes.views import networkx, op_graph, to_dot


def example() -> Function:
    b = Builder(Location('a "quoted" file.py', 3))
    f = Emitter(b, OPS)
    x = f.wrap(b.param(parse_type("f64[3]"), "x"))
    return b.function("example", [(f.exp(x) * x).value])


def test_the_graph_has_ops_and_parameters_and_the_bytes_that_flow() -> None:
    function = example()
    graph = op_graph(function.body)
    (x,), (exp, mul) = function.params, function.ops
    assert set(graph.nodes) == {x, exp, mul}
    assert graph[x][exp]["bytes"] == graph[exp][mul]["bytes"] == 24
    assert networkx().is_directed_acyclic_graph(graph)


def test_dot_has_a_box_for_each_op_with_its_line() -> None:
    text = to_dot(example())
    assert 'f_1 [label="%1: f64[3] = mul", tooltip="a \\"quoted\\" file.py:3"];' in text
    assert "f_p0 -> f_0;" in text
    assert text.count("{") == text.count("}")


def test_dot_has_a_frame_for_each_region() -> None:
    function = parse_function("""// stage: traced
func @branch(%p: bool[], %x: f64[]) -> (f64[]) {
  %0 = if %p, %x : f64[] [
    then (%t: f64[]) {
      %1 = exp %t : f64[]
      yield %1
    }
    else (%t_1: f64[]) {
      yield %t_1
    }
  ]
  return %0
}
""")
    text = to_dot(function)
    assert "subgraph cluster_f_0_then" in text
    assert "subgraph cluster_f_0_else" in text
    assert "f_0_then_p0 -> f_0_then_0;" in text
