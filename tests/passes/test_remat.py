"""The minimum cut between what is computed ahead and what is read behind."""

from pullback.passes.remat import choose_residuals, is_recomputable
from tests.passes.making import make, total


def chosen(build, types: str, read: list[str]) -> list[str]:  # type: ignore[no-untyped-def]
    """The names of the ops whose results are stored when the results of the ops named `read` are read."""
    fn = make(types, build)
    values = [op.results[0] for op in fn.ops if op.name in read]
    kept = choose_residuals(fn.ops, values, lambda v: v.type.nbytes if v.op is not None else 0)
    return [v.op.name if v.op is not None else "parameter" for v in kept]


def test_cheap_ops_of_parameters_are_computed_again() -> None:
    assert chosen(lambda f, x: f.exp(f.sin(x)), "f64[9]", ["sin", "exp"]) == ["parameter"]


def test_a_reduction_is_stored_and_what_follows_it_computed_again() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        return f.broadcast_to(f.exp(total(f.sin(x))), (9,))

    assert chosen(build, "f64[9]", ["broadcast", "exp"]) == ["exp"]


def test_of_equally_small_sets_the_one_nearest_to_the_reader_is_stored() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        return f.exp(f.tanh(f.dot_general(x, x, contract=((1,), (0,)), batch=((), ()))))

    assert chosen(build, "f64[3,3]", ["exp"]) == ["exp"]


def test_one_narrow_value_is_stored_instead_of_several_made_from_it() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        y = f.dot_general(x, x, contract=((1,), (0,)), batch=((), ()))
        return f.sin(y) + f.cos(y)

    assert chosen(build, "f64[3,3]", ["sin", "cos"]) == ["dot_general"]


def test_ops_with_regions_effects_or_several_results_are_never_computed_again() -> None:
    fn = make("f64[3]", lambda f, x: f.ops_of("sort", x, x, axis=0))
    assert not is_recomputable(fn.ops[0])


def test_a_component_too_large_for_a_cut_stores_what_is_read() -> None:
    def build(f, x):  # type: ignore[no-untyped-def]
        y = f.dot_general(x, x, contract=((1,), (0,)), batch=((), ()))
        parts = [y * float(k) for k in range(2100)]
        out = parts[0]
        for part in parts[1:]:
            out = f.maximum(out, part)
        return out

    assert chosen(build, "f64[2,2]", ["dot_general"]) == ["dot_general"]
