"""Splitting a function by what is known first."""

import numpy as np

from pullback.ir.interpret import interpret
from pullback.ir.verify import verify
from pullback.passes.partition import Partition, partition
from pullback.passes.reverse import reverse
from tests.passes.making import arrays, make, names, total

X = np.linspace(0.1, 0.9, 6).reshape(2, 3)


def split(build, types: str) -> tuple[Partition, object]:  # type: ignore[no-untyped-def]
    fn = make(types, build)
    vjp = reverse(fn, range(len(fn.params)))
    cts = len(vjp.params) - len(fn.params)
    flags = [True] * len(fn.results) + [False] * len(fn.params)
    parts = partition(vjp, [True] * len(fn.params) + [False] * cts, known_results=flags)
    verify(parts.known)
    verify(parts.unknown)
    return parts, vjp


def check_parts(parts: Partition, vjp, arguments, cts) -> None:  # type: ignore[no-untyped-def]
    """Both parts, one after the other, give what the whole gives."""
    ahead = interpret(parts.known, arguments)
    outputs = ahead[: len(ahead) - len(parts.residuals)]
    back = interpret(parts.unknown, [*ahead[len(outputs) :], *cts])
    for got, want in zip([*outputs, *back], interpret(vjp, [*arguments, *cts]), strict=True):
        np.testing.assert_array_equal(got, want)


def network(f, x, w):  # type: ignore[no-untyped-def]
    hidden = f.tanh(f.dot_general(x, w, contract=((1,), (0,)), batch=((), ())))
    return f.exp(hidden * hidden)


def test_forward_and_backward_part_together_are_the_whole() -> None:
    parts, vjp = split(network, "f64[2,3] f64[3,2]")
    check_parts(parts, vjp, arrays(X, X.T + 1), arrays(np.ones((2, 2))))


def test_residuals_are_typed_and_those_that_are_parameters_are_told() -> None:
    parts, _ = split(network, "f64[2,3] f64[3,2]")
    assert [str(t) for t in parts.residuals] == [str(t) for t in parts.unknown.param_types[: len(parts.residuals)]]
    assert {k for k in parts.from_param if k is not None} == {0, 1}


def test_one_array_of_a_chain_is_stored_and_the_rest_computed_again() -> None:
    parts, _ = split(network, "f64[2,3] f64[3,2]")
    stored = [t for t, k in zip(parts.residuals, parts.from_param, strict=True) if k is None]
    assert len(stored) == 1
    assert "dot_general" in names(parts.known)
    assert names(parts.unknown).count("dot_general") == 2


def test_the_smaller_side_of_a_broadcast_is_stored() -> None:
    def build(f, x, y):  # type: ignore[no-untyped-def]
        small = f.exp(f.sum(x, axes=(0,)))
        return f.broadcast_to(small, (2, 3)) * y

    parts, vjp = split(build, "f64[2,3] f64[2,3]")
    stored = [str(t) for t, k in zip(parts.residuals, parts.from_param, strict=True) if k is None]
    assert stored == ["f64[3]"]
    check_parts(parts, vjp, arrays(X, X + 1), arrays(np.ones((2, 3))))


def test_constants_are_made_again_and_never_stored() -> None:
    parts, _ = split(lambda f, x: x * f.constant(np.arange(6.0).reshape(2, 3)), "f64[2,3]")
    assert parts.residuals == ()
    assert "constant" in names(parts.unknown)


def test_by_default_the_known_part_gives_all_results_that_it_can() -> None:
    fn = make("f64[3] f64[3]", lambda f, x, y: (f.sin(x), x * y, f.full(x.type, 1.0)))
    parts = partition(fn, [True, False])
    assert parts.result_known == (True, False, True)
    assert len(parts.known.results) == 2 + len(parts.residuals)


def test_checks_stay_in_the_part_that_can_evaluate_them() -> None:
    from pullback.ir.graph import Attrs
    from pullback.ir.ops import OPS

    def build(f, x, y):  # type: ignore[no-untyped-def]
        for v in (x, y):
            f.b.add(OPS["check"], [(v > 0.0).value], Attrs(message="positive", code=1))
        return x * y

    parts = partition(make("f64[3] f64[3]", build), [True, False])
    assert names(parts.known).count("check") == 1
    assert names(parts.unknown).count("check") == 1


def test_a_long_chain_is_not_computed_again_as_a_whole() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        for _ in range(40):
            x = f.sin(x)
        return total(x)

    parts, vjp = split(build, "f64[2,3]")
    check_parts(parts, vjp, arrays(X), arrays(1.0))
    assert names(parts.unknown).count("sin") < 40
    assert len(parts.residuals) < 40
