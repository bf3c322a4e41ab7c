"""What to keep and what to compute again between a forward and a backward part: a minimum cut weighted by bytes.

The values of the forward part that the backward part reads need not be stored themselves: any set of values that they
can be computed from by cheap ops will do. The smallest such set, in bytes, is a minimum vertex cut between what
cannot be computed again and what is read.
"""

from collections.abc import Callable, Iterable, Sequence

from pullback.ir.graph import Op, Value
from pullback.ir.opdef import Scalar, View
from pullback.ir.ops.transcendental import TRANSCENDENTAL
from pullback.passes.views import networkx

LARGEST = 2000  # values in one component: beyond, what is read is stored
LONGEST = 48  # cost of a chain that is computed again; what ends a longer one is stored
DEAR = frozenset({op.name for op in TRANSCENDENTAL} | {"pow", "hypot", "arctan2", "mod", "fmod", "floor_divide"})
DEAR_STEP = 8  # cost of one of these in a chain; of any other op 1
# Capacities are bytes times this; the rest prefers, of equally small sets, the one nearest to the reader.
PRECISION = 1024


def is_recomputable(op: Op) -> bool:
    """Whether computing the op again costs about as much as reading its result from memory."""
    return len(op.results) == 1 and not op.opdef.effect and isinstance(op.opdef.lower, Scalar | View)


def is_source(op: Op) -> bool:
    """Ops that read nothing: never stored, always made again."""
    return op.name in ("constant", "iota")


def choose_residuals(ops: Sequence[Op], read: Iterable[Value], cost: Callable[[Value], int]) -> list[Value]:
    """The values to store.

    Parameters
    ----------
    ops : the forward part, in order
    read : the values of it that the backward part reads (parameters among them)
    cost : bytes that storing a value takes

    Returns
    -------
    Values from which all of `read` can be computed by recomputable ops and sources, in order of definition.
    """
    reads = set(read)
    depth = _depths(ops)
    wanted = _ancestors(ops, reads, depth)
    stored: set[Value] = set()
    for component in _components(ops, wanted, reads, depth):
        stored |= _cut(component, reads, depth, cost) if len(component) <= LARGEST else component & reads
    order = {v: k for k, v in enumerate(v for op in ops for v in op.results)}
    return sorted(stored, key=lambda v: order.get(v, -1 - v.index))


def _depths(ops: Sequence[Op]) -> dict[Value, int]:
    """The cost of the chain behind each value that may be computed again; 0 if made from nothing; others are absent."""
    depth: dict[Value, int] = {}
    for op in ops:
        if is_source(op) or (is_recomputable(op) and op.operands and all(depth.get(v) == 0 for v in op.operands)):
            depth[op.results[0]] = 0
        elif is_recomputable(op):
            longest = max((depth.get(v, 0) for v in op.operands), default=0)
            step = DEAR_STEP if op.name in DEAR else 1
            if longest + step <= LONGEST:
                depth[op.results[0]] = longest + step
    return depth


def _is_made_from_nothing(value: Value, depth: dict[Value, int]) -> bool:
    return depth.get(value) == 0


def _ancestors(ops: Sequence[Op], reads: set[Value], depth: dict[Value, int]) -> set[Value]:
    """What is read and all it could be computed from again, sources left out."""
    wanted = {v for v in reads if not _is_made_from_nothing(v, depth)}
    for op in reversed(ops):
        if len(op.results) == 1 and op.results[0] in wanted and op.results[0] in depth:
            wanted.update(v for v in op.operands if not _is_made_from_nothing(v, depth))
    return wanted


def _components(ops: Sequence[Op], wanted: set[Value], reads: set[Value], depth: dict[Value, int]) -> list[set[Value]]:
    """Groups of values that are linked by recomputable ops; each is cut for itself."""
    parent: dict[Value, Value] = {v: v for v in wanted}

    def find(v: Value) -> Value:
        while parent[v] is not v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    for op in ops:
        if len(op.results) == 1 and op.results[0] in wanted and op.results[0] in depth:
            for v in op.operands:
                if v in parent:
                    parent[find(v)] = find(op.results[0])
    groups: dict[Value, set[Value]] = {}
    for v in wanted:
        groups.setdefault(find(v), set()).add(v)
    return list(groups.values())


def _cut(component: set[Value], reads: set[Value], depth: dict[Value, int], cost: Callable[[Value], int]) -> set[Value]:
    given = {v for v in component if v not in depth}
    if len(component) == 1 or all(cost(v) == 0 for v in given):
        return given or set(component)
    nx = networkx()
    graph = nx.DiGraph()
    deepest = max(depth.get(v, 0) for v in component)
    for v in component:
        nearness = min(deepest - depth.get(v, 0), PRECISION - 1)
        graph.add_edge((v, "in"), (v, "out"), capacity=cost(v) * PRECISION + nearness + 1)
        if v not in depth:
            graph.add_edge("source", (v, "in"))
        elif v.op is not None:
            graph.add_edges_from(((u, "out"), (v, "in")) for u in v.op.operands if u in component)
        if v in reads:
            graph.add_edge((v, "out"), "sink")
    if "source" not in graph:
        return set()
    _, (above, _) = nx.minimum_cut(graph, "source", "sink")
    return {v for v in component if (v, "in") in above and (v, "out") not in above}
