"""Whether a reshape is a view or a copy, and in which memory order results lie: as NumPy decides."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.tracer.layout import common_order, reshaped_strides
from tests.tracer.support import assert_as_numpy, traced

SHAPES = [(2, 3, 4), (6, 4), (1, 5), (4, 1, 3), (2, 2, 2, 3)]
slices = st.builds(slice, st.integers(-3, 3) | st.none(), st.none(), st.sampled_from([1, 2, -1, None]))


@st.composite
def views(draw: Any) -> Any:
    """A view of a fresh array: sliced, transposed."""
    shape = draw(st.sampled_from(SHAPES))
    base = np.arange(int(np.prod(shape))).reshape(shape)
    return base[tuple(draw(slices) for _ in shape)].transpose(draw(st.permutations(range(len(shape)))))


def element_strides(a: Any) -> tuple[int, ...]:
    return tuple(s // a.itemsize for s in a.strides)


@settings(max_examples=150, deadline=None)
@given(views(), st.data())
def test_a_reshape_is_a_view_exactly_where_numpys_is(view: Any, data: Any) -> None:
    if view.size == 0:
        return
    divisors = [d for d in range(1, view.size + 1) if view.size % d == 0]
    first = data.draw(st.sampled_from(divisors))
    target = data.draw(st.sampled_from([(first, view.size // first), (view.size,), (1, first, view.size // first, 1)]))
    order = data.draw(st.sampled_from(["C", "F"]))
    wanted = view.reshape(target, order=order)
    strides = reshaped_strides(view.shape, element_strides(view), target, order)
    assert (strides is not None) == np.shares_memory(wanted, view)
    if strides is not None:
        long = [k for k, n in enumerate(target) if n != 1]
        assert [strides[k] for k in long] == [element_strides(wanted)[k] for k in long]


@settings(max_examples=100, deadline=None)
@given(views())
def test_the_memory_order_of_an_elementwise_result_is_numpys(view: Any) -> None:
    if view.size == 0:
        return
    flat = tuple(0 if n == 1 else s for n, s in zip(view.shape, element_strides(view), strict=True))
    order = common_order(view.shape, [flat]) or tuple(range(view.ndim))
    result = view + 1
    long = [k for k in order if view.shape[k] > 1]
    assert long == sorted(long, key=lambda k: -result.strides[k])


def test_a_copying_reshape_does_not_alias_and_a_view_does() -> None:
    def f(x: Any) -> Any:
        turned = x.T + 1.0
        copied = turned.reshape(-1)
        copied[0] = 100.0
        aliased = turned.T.reshape(-1)
        aliased[1] = 50.0
        return turned, copied

    assert_as_numpy(f, np.arange(6.0).reshape(2, 3))


def test_a_fortran_ordered_argument_is_seen_as_such() -> None:
    def f(x: Any) -> Any:
        flat = x.reshape(-1)
        flat[0] = 9.0
        turned = x.T.reshape(-1)
        turned[1] = 7.0
        return x, x.flags.f_contiguous, x.strides

    assert_as_numpy(f, np.asfortranarray(np.arange(6.0).reshape(2, 3)))


def test_strides_and_flags_are_numpys() -> None:
    def f(x: Any) -> Any:
        return x[::2, 1:].T.strides, x.T.flags.c_contiguous, x.T.flags["F"], x[1:].base is None

    assert_as_numpy(f, np.arange(12.0).reshape(3, 4))


def test_shape_facts_are_free() -> None:
    program = traced(lambda x: (np.shape(x), np.ndim(x), x.size, len(x), np.result_type(x, 1.0)), np.ones((2, 3)))
    assert {op.name for op in program.function.ops} == {"constant"}
