"""Transforms of transforms: to third order, in both modes, batched, with containers; checked by formulas."""

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError

X = np.array([0.3, -0.7, 1.1])


def cubic(x: Any) -> Any:
    return np.sum(x**3) + np.prod(x)


def hessian_by_hand(x: Any) -> Any:
    return np.diag(6 * x) + np.array([[0, x[2], x[1]], [x[2], 0, x[0]], [x[1], x[0], 0]])


def test_derivatives_of_a_scalar_to_third_order() -> None:
    first = pb.grad(np.sin)
    second = pb.grad(first)
    third = pb.grad(second)
    for _ in range(2):
        assert first(0.4) == pytest.approx(np.cos(0.4), rel=1e-15)
        assert second(0.4) == pytest.approx(-np.sin(0.4), rel=1e-15)
        assert third(0.4) == pytest.approx(-np.cos(0.4), rel=1e-15)


@pytest.mark.parametrize(
    "hessian",
    [
        pb.hessian,
        lambda f: pb.jacfwd(pb.grad(f)),
        lambda f: pb.jacrev(pb.grad(f)),
        lambda f: pb.jacfwd(pb.jacfwd(f)),
        lambda f: pb.jacobian(pb.jacrev(f)),
        lambda f: lambda x: np.stack([pb.jvp(pb.grad(f), (x,), (e,))[1] for e in np.eye(3)]),
        lambda f: lambda x: np.stack([pb.vjp(pb.grad(f), x)[1](e)[0] for e in np.eye(3)]),
        lambda f: lambda x: pb.vmap(lambda e: pb.grad(lambda y: np.dot(pb.grad(f)(y), e))(x))(np.eye(3)),
    ],
)
def test_a_hessian_in_many_ways(hessian: Any) -> None:
    np.testing.assert_allclose(hessian(cubic)(X), hessian_by_hand(X), rtol=1e-13, atol=1e-15)


def test_third_derivatives_of_arrays() -> None:
    third = pb.jacfwd(pb.hessian(cubic))(X)
    expected = np.zeros((3, 3, 3))
    for i in range(3):
        expected[i, i, i] = 6.0
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        expected[i, j, k] = 1.0
    np.testing.assert_allclose(third, expected, atol=1e-14)


def test_vjp_keeps_what_it_needs_and_may_be_called_often() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = X.copy()
    value, pull = pb.vjp(lambda w, v: np.tanh(w @ v), a, x)
    x[:] = 0.0  # the forward pass has run
    slope = 1 - np.tanh(a @ X) ** 2
    np.testing.assert_allclose(value, np.tanh(a @ X))
    for ct in (np.array([1.0, 0.0]), np.array([0.5, 2.0]), np.array([1.0, 0.0])):
        left, right = pull(ct)
        np.testing.assert_allclose(left, np.outer(ct * slope, X))
        np.testing.assert_allclose(right, a.T @ (ct * slope))
    with pytest.raises(ArgumentError, match="structure"):
        pull((np.ones(2), np.ones(2)))
    with pytest.raises(ArgumentError, match="shape"):
        pull(np.ones(3))


def test_vjp_of_a_path_and_with_aux() -> None:
    def f(x: Any) -> Any:
        return (x**2 if x > 0 else -x), {"seen": x}

    for x, slope in ((3.0, 6.0), (-3.0, -1.0)):
        value, pull, aux = pb.vjp(f, x, has_aux=True)
        assert (value, aux["seen"]) == (abs(x) if x < 0 else 9.0, x)
        assert pull(1.0)[0] == slope


def test_jvp_of_containers_and_integers() -> None:
    def f(p: Any, n: Any) -> Any:
        return {"y": p["a"] * p["b"] * n, "n": n}

    (value, tangent) = pb.jvp(f, ({"a": 2.0, "b": X}, 3), ({"a": 1.0, "b": np.ones(3)}, 0))
    np.testing.assert_allclose(value["y"], 6 * X)
    np.testing.assert_allclose(tangent["y"], 3 * X + 6.0)
    assert tangent["n"] is None
    with pytest.raises(ArgumentError, match="structure"):
        pb.jvp(np.sin, (1.0,), (1.0, 2.0))
    with pytest.raises(ArgumentError, match=r"f64\[3\]"):
        pb.jvp(np.sin, (X,), (np.ones(2),))


def test_a_loop_of_jvps_compiles_once() -> None:
    traces = []

    def f(x: Any) -> Any:
        traces.append(1)
        return np.sum(x**3)

    for e in np.eye(3):
        _, tangent = pb.jvp(f, (X,), (e,))
        np.testing.assert_allclose(tangent, 3 * X**2 @ e)
    assert len(traces) == 1


A = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(("in_axes", "out_axes"), [(0, 0), (1, 0), (0, 1), (1, 1), (-1, -1), ((1,), 0)])
def test_vmap_along_any_axis(in_axes: Any, out_axes: Any) -> None:
    axis = in_axes[0] if isinstance(in_axes, tuple) else in_axes
    rows = np.moveaxis(A, axis, 0)
    expected = np.moveaxis(np.stack([np.cumsum(r) * r for r in rows]), 0, out_axes)
    np.testing.assert_allclose(pb.vmap(lambda r: np.cumsum(r) * r, in_axes, out_axes)(A), expected)


def test_vmap_shares_arguments_and_takes_containers() -> None:
    def f(p: Any, x: Any) -> Any:
        return p["w"] @ x + p["b"], p["b"]

    p = {"w": A, "b": np.arange(3.0)}
    xs = np.arange(8.0).reshape(2, 4)
    found, shared = pb.vmap(f, in_axes=(None, 0), out_axes=(0, None))(p, xs)
    np.testing.assert_allclose(found, xs @ A.T + p["b"])
    np.testing.assert_allclose(shared, p["b"])
    stacked = {"w": np.stack([A, 2 * A]), "b": np.arange(3.0)}
    found, _ = pb.vmap(f, in_axes=({"w": 0, "b": None}, 0), out_axes=(0, None))(stacked, xs)
    np.testing.assert_allclose(found[1], 2 * A @ xs[1] + p["b"])
    with pytest.raises(ArgumentError, match="different numbers of rows"):
        pb.vmap(lambda a, b: a + b)(np.ones(2), np.ones(3))
    with pytest.raises(ArgumentError, match="no axis"):
        pb.vmap(lambda a: a)(1.0)


def test_gradients_of_each_row_and_rows_of_rows() -> None:
    g = pb.vmap(pb.grad(lambda w, x: np.sum(np.tanh(w * x))), in_axes=(None, 0))
    w = np.arange(4.0) / 4
    np.testing.assert_allclose(g(w, A), A * (1 - np.tanh(w * A) ** 2))
    table = pb.vmap(pb.vmap(lambda x, y: x * y + x, (None, 0)), (0, None))(X, np.arange(2.0))
    np.testing.assert_allclose(table, np.outer(X, np.arange(2.0)) + X[:, None])


def test_jacobians_of_containers_are_containers_of_jacobians() -> None:
    def f(p: Any) -> Any:
        return {"sum": np.sum(p["a"]) * p["s"], "outer": np.outer(p["a"], p["a"])}

    p = {"a": X, "s": 2.0}
    for transform in (pb.jacrev, pb.jacfwd, pb.jacobian):
        found = transform(f)(p)
        np.testing.assert_allclose(found["sum"]["a"], np.full(3, 2.0))
        np.testing.assert_allclose(found["sum"]["s"], np.sum(X))
        eye = np.eye(3)
        expected = np.einsum("ik,j->ijk", eye, X) + np.einsum("jk,i->ijk", eye, X)
        np.testing.assert_allclose(found["outer"]["a"], expected)
        np.testing.assert_allclose(found["outer"]["s"], np.zeros((3, 3)))


def test_jacobians_in_several_arguments_with_aux() -> None:
    (by_x, by_y), aux = pb.jacrev(lambda x, y: (x * y, x + y), (0, 1), has_aux=True)(X, 2 * X)
    np.testing.assert_allclose(by_x, np.diag(2 * X))
    np.testing.assert_allclose(by_y, np.diag(X))
    np.testing.assert_allclose(aux, 3 * X)


def test_stop_gradient_is_a_constant_in_every_mode() -> None:
    def f(x: Any) -> Any:
        return np.sum(pb.stop_gradient(x) * x)

    np.testing.assert_allclose(pb.grad(f)(X), X)
    np.testing.assert_allclose(pb.jvp(f, (X,), (np.ones(3),))[1], np.sum(X))
    np.testing.assert_allclose(pb.hessian(f)(X), np.zeros((3, 3)))
    assert pb.stop_gradient({"a": 1.0}) == {"a": 1.0}


def test_jit_inside_and_outside_changes_nothing() -> None:
    plain, inside = pb.grad(cubic)(X), pb.grad(pb.jit(cubic))(X)
    np.testing.assert_array_equal(plain, inside)
    np.testing.assert_array_equal(plain, pb.jit(pb.grad(cubic))(X))


def test_what_a_batch_decides_row_by_row_is_refused_with_a_way_out_that_works() -> None:
    rng = np.random.default_rng(3)
    matrices, sides = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3))
    with pytest.raises(TypeError, match=r"np\.linalg\.pinv\(a\) @ b .*np\.linalg\.eigvals\(a\.astype\(complex\)\)"):
        pb.vmap(lambda a, b: np.linalg.lstsq(a, b)[0])(matrices, sides)
    found = pb.vmap(lambda a, b: np.linalg.pinv(a) @ b)(matrices, sides)
    assert np.allclose(found, [np.linalg.lstsq(a, b)[0] for a, b in zip(matrices, sides, strict=True)])
    square = matrices[:, :2]
    values = pb.vmap(lambda a: np.linalg.eigvals(a.astype(complex)))(square)
    assert np.allclose(np.sort(values), np.sort(np.linalg.eigvals(square)))
