"""Programs that write in place: linear algebra and sequences, element by element or slice by slice."""

import numpy as np

from tests.programs.program import Array, Indices, Program, Scalar


def gram_schmidt(matrix: Array) -> Scalar:
    rows, columns = matrix.shape
    q, r = np.zeros((rows, columns)), np.zeros((columns, columns))
    for k in range(columns):
        q[:, k] = matrix[:, k]
        for j in range(k):
            r[j, k] = np.dot(q[:, j], q[:, k])
            q[:, k] -= r[j, k] * q[:, j]
        r[k, k] = np.sqrt(np.dot(q[:, k], q[:, k]))
        q[:, k] /= r[k, k]
    return np.sum(np.log(np.diag(r))) + np.sum(q[0] ** 3)


def lu_determinant(matrix: Array) -> Scalar:
    work = matrix.copy()
    n = len(work)
    for k in range(n - 1):
        work[k + 1 :, k] /= work[k, k]
        work[k + 1 :, k + 1 :] -= np.outer(work[k + 1 :, k], work[k, k + 1 :])
    return np.prod(np.diag(work))


def cholesky_log_determinant(factor: Array) -> Scalar:
    matrix = factor @ factor.T + np.eye(len(factor))
    n = len(matrix)
    lower = np.zeros_like(matrix)
    for i in range(n):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(rest) if i == j else rest / lower[j, j]
    return 2 * np.sum(np.log(lower[np.arange(n), np.arange(n)]))


def forward_substitution(lower: Array, right: Array) -> Scalar:
    x = np.empty_like(right)
    for i in range(len(right)):
        x[i] = (right[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x @ x


def thomas_solver(below: Array, diagonal: Array, above: Array, right: Array) -> Scalar:
    n = len(diagonal)
    c, d = np.zeros(n), np.zeros(n)
    c[0], d[0] = above[0] / diagonal[0], right[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - below[i] * c[i - 1]
        c[i] = above[i] / pivot
        d[i] = (right[i] - below[i] * d[i - 1]) / pivot
    x = np.zeros(n)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return np.sum(x**2)


def durbin(reflections: Array) -> Scalar:
    n = len(reflections)
    y = np.zeros(n)
    y[0] = -reflections[0]
    beta, alpha = 1.0, -reflections[0]
    for k in range(1, n):
        beta *= 1 - alpha * alpha
        alpha = -(reflections[k] + np.dot(reflections[:k][::-1], y[:k])) / beta
        y[:k] += alpha * y[:k][::-1]
        y[k] = alpha
    return np.sum(y**2)


def sparse_product(values: Array, x: Array, columns: Indices, starts: Indices) -> Scalar:
    y = np.zeros(len(starts) - 1)
    for row in range(len(y)):
        for entry in range(starts[row], starts[row + 1]):
            y[row] += values[entry] * x[columns[entry]]
    return np.sum(np.tanh(y))


def weighted_histogram(weights: Array, bins: Indices) -> Scalar:
    counts = np.zeros(4)
    np.add.at(counts, bins, weights**2)
    return np.sum(counts * np.log(counts))


def prefix_sums(x: Array) -> Scalar:
    total = x.copy()
    step = 1
    while step < len(total):
        total[step:] = total[step:] + total[:-step]
        step *= 2
    return np.sum(np.sin(total))


def horner(coefficients: Array, x: Array) -> Scalar:
    value = np.zeros_like(x)
    value[:] = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value *= x
        value += coefficient
    return np.sum(value**2)


def companion_product(coefficients: Array, start: Array) -> Scalar:
    n = len(coefficients)
    companion = np.zeros((n, n))
    companion[0] = coefficients
    companion[np.arange(1, n), np.arange(n - 1)] = 1.0
    state = start
    for _ in range(4):
        state = companion @ state
    return state @ state


def random_walk(drift: float, scale: float, increments: Array) -> Scalar:
    path = np.empty(len(increments) + 1)
    path[0] = 0.0
    for t, increment in enumerate(increments):
        path[t + 1] = path[t] + drift + scale * np.exp(0.1 * path[t]) * increment
    return np.mean(path[1:] ** 2)


def soft_time_warp(first: Array, second: Array) -> Scalar:
    rows, columns = len(first), len(second)
    cost = np.full((rows + 1, columns + 1), 1e3)
    cost[0, 0] = 0.0
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            options = np.array([cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1]])
            low = np.min(options)
            soft = low - np.log(np.sum(np.exp(low - options)))
            cost[i, j] = (first[i - 1] - second[j - 1]) ** 2 + soft
    return cost[rows, columns]


def power_iteration(matrix: Array) -> Scalar:
    symmetric = matrix + matrix.T
    vector = np.ones(len(matrix))
    for _ in range(4):
        np.matmul(symmetric, vector.copy(), out=vector)
        vector /= np.sqrt(np.sum(vector**2))
    return vector @ symmetric @ vector


def givens_rotations(matrix: Array) -> Scalar:
    work = matrix.copy()
    n = work.shape[0]
    for column in range(n - 1):
        for row in range(n - 1, column, -1):
            a, b = work[row - 1, column], work[row, column]
            radius = np.hypot(a, b)
            rotation = np.array([[a, b], [-b, a]]) / radius
            work[row - 1 : row + 1] = rotation @ work[row - 1 : row + 1]
    return np.sum(np.log(np.abs(np.diagonal(work)))) + work[0, -1] ** 2


def exponential_smoothing(series: Array, rates: Array) -> Scalar:
    level, trend = np.zeros(len(series)), np.zeros(len(series))
    level[0], trend[0] = series[0], series[1] - series[0]
    error = np.zeros(len(series))
    for t in range(1, len(series)):
        forecast = level[t - 1] + trend[t - 1]
        error[t] = series[t] - forecast
        level[t] = forecast + rates[0] * error[t]
        trend[t] = trend[t - 1] + rates[1] * error[t]
    return np.sum(error**2)


def normalised_argument(x: Array) -> Scalar:
    x -= x.mean()
    x /= np.sqrt(np.mean(x**2))
    return np.sum(x**3)


COLUMNS, STARTS = np.array([0, 2, 1, 2, 3, 0]), np.array([0, 2, 3, 5, 6])

PROGRAMS = (
    Program(gram_schmidt, lambda r: (r.standard_normal((4, 3)),)),
    Program(lu_determinant, lambda r: (r.standard_normal((4, 4)) + 4 * np.eye(4),)),
    Program(cholesky_log_determinant, lambda r: (r.standard_normal((3, 3)),)),
    Program(
        forward_substitution,
        lambda r: (np.tril(r.standard_normal((4, 4))) + 3 * np.eye(4), r.standard_normal(4)),
        argnums=(0, 1),
    ),
    Program(
        thomas_solver,
        lambda r: (r.random(5), 3 + r.random(5), r.random(5), r.standard_normal(5)),
        argnums=(0, 1, 2, 3),
    ),
    Program(durbin, lambda r: (0.4 * (r.random(5) - 0.5),)),
    Program(
        sparse_product,
        lambda r: (r.standard_normal(6), r.standard_normal(4), COLUMNS, STARTS),
        argnums=(0, 1),
    ),
    Program(weighted_histogram, lambda r: (0.5 + r.random(7), np.array([0, 3, 1, 1, 2, 0, 1]))),
    Program(prefix_sums, lambda r: (r.standard_normal(7),)),
    Program(horner, lambda r: (r.standard_normal(5), r.random(4)), argnums=(0, 1)),
    Program(companion_product, lambda r: (r.standard_normal(3), r.standard_normal(3)), argnums=(0, 1)),
    Program(random_walk, lambda r: (0.1, 0.4, r.standard_normal(8)), argnums=(0, 1)),
    Program(soft_time_warp, lambda r: (r.standard_normal(3), r.standard_normal(4)), argnums=(0, 1)),
    Program(power_iteration, lambda r: (r.random((3, 3)),)),
    Program(givens_rotations, lambda r: (r.standard_normal((3, 3)),)),
    Program(
        exponential_smoothing, lambda r: (np.cumsum(r.standard_normal(7)), np.array([0.5, 0.2])), argnums=(0, 1)
    ),
    Program(normalised_argument, lambda r: (r.standard_normal(6),)),
)
