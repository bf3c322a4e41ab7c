"""Programs of statistics and machine learning: losses of models, nothing written in place."""

import numpy as np

from tests.programs.program import Array, Indices, Program, Scalar


def logistic_regression(weights: Array, bias: float, inputs: Array, signs: Array) -> Scalar:
    margins = signs * (inputs @ weights + bias)
    return np.mean(np.logaddexp(0.0, -margins)) + 0.01 * np.sum(weights**2)


def mlp(parameters: dict[str, Array], inputs: Array, labels: Indices) -> Scalar:
    hidden = np.tanh(inputs @ parameters["w1"] + parameters["b1"])
    logits = hidden @ parameters["w2"] + parameters["b2"]
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return -np.mean(log_probabilities[np.arange(labels.shape[0]), labels])


def softmax_cross_entropy(logits: Array, targets: Array) -> Scalar:
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return -(targets * np.log(probabilities)).sum() / len(logits)


def layer_norm(x: Array, gain: Array, bias: Array) -> Scalar:
    mean = x.mean(axis=-1, keepdims=True)
    variance = x.var(axis=-1, keepdims=True)
    normal = (x - mean) / np.sqrt(variance + 1e-5)
    return np.sum(np.sin(gain * normal + bias))


def attention_block(x: Array, w_query: Array, w_key: Array, w_value: Array) -> Scalar:
    heads = 2
    n, width = x.shape
    query, key, value = (
        (x @ w).reshape(n, heads, width // heads).transpose(1, 0, 2) for w in (w_query, w_key, w_value)
    )
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(width / heads)
    scores = np.where(np.tril(np.ones((n, n), dtype=bool)), scores, -np.inf)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = weights / np.sum(weights, axis=-1, keepdims=True)
    mixed = (weights @ value).transpose(1, 0, 2).reshape(n, width)
    return np.mean((x + mixed) ** 2)


def soft_kmeans(centres: Array, points: Array) -> Scalar:
    squares = np.sum((points[:, None, :] - centres[None, :, :]) ** 2, axis=-1)
    affinity = np.exp(-2.0 * squares)
    share = affinity / affinity.sum(axis=1, keepdims=True)
    return np.sum(share * squares)


def huber_regression(weights: Array, inputs: Array, targets: Array) -> Scalar:
    residual = np.abs(inputs @ weights - targets)
    return np.sum(np.where(residual < 1.0, 0.5 * residual**2, residual - 0.5))


def poisson_regression(weights: Array, inputs: Array, counts: Array) -> Scalar:
    log_rate = np.dot(inputs, weights)
    return np.sum(np.exp(log_rate) - counts * log_rate)


def matrix_factorisation(left: Array, right: Array, ratings: Array, seen: Array) -> Scalar:
    error = np.where(seen, left @ right.T - ratings, 0.0)
    return np.sum(error**2) + 0.1 * (np.sum(left**2) + np.sum(right**2))


def ridge(weights: Array, inputs: Array, targets: Array) -> Scalar:
    residual = targets - inputs @ weights
    return residual @ residual + 0.3 * weights @ weights


def smooth_elastic_net(weights: Array, inputs: Array, targets: Array) -> Scalar:
    residual = inputs @ weights - targets
    lasso = np.sum(np.sqrt(weights**2 + 1e-2))
    return np.mean(np.square(residual)) + 0.1 * lasso + 0.05 * np.sum(np.square(weights))


def recurrent_network(w_state: Array, w_input: Array, w_out: Array, series: Array) -> Scalar:
    state = np.zeros(w_state.shape[0])
    loss = 0.0
    for step in range(len(series) - 1):
        now, following = series[step], series[step + 1]
        state = np.tanh(w_state @ state + w_input * now)
        loss = loss + (w_out @ state - following) ** 2
    return loss / (len(series) - 1)


def lstm_cell(weights: Array, bias: Array, series: Array) -> Scalar:
    size = bias.shape[0] // 4
    hidden, cell = np.zeros(size), np.zeros(size)
    for value in series:
        gates = weights @ np.concatenate([hidden, value[None]]) + bias
        forget, write, read, new = np.split(gates, 4)
        cell = cell / (1 + np.exp(-forget)) + np.tanh(new) / (1 + np.exp(-write))
        hidden = np.tanh(cell) / (1 + np.exp(-read))
    return np.sum(hidden**2)


def convolution(image: Array, kernel: Array) -> Scalar:
    rows, columns = kernel.shape
    height, width = image.shape[0] - rows + 1, image.shape[1] - columns + 1
    out = sum(
        kernel[i, j] * image[i : i + height, j : j + width] for i in range(rows) for j in range(columns)
    )
    return np.sum(np.log1p(np.exp(out)))


def radial_basis_network(centres: Array, log_widths: Array, weights: Array, x: Array, y: Array) -> Scalar:
    distance = (x[:, np.newaxis] - centres) / np.exp(log_widths)
    prediction = np.exp(-0.5 * distance**2) @ weights
    return np.mean((prediction - y) ** 2)


def pca_reconstruction(basis: Array, data: Array) -> Scalar:
    centred = data - data.mean(0)
    first = basis[:, 0] / np.sqrt(np.sum(basis[:, 0] ** 2))
    second = basis[:, 1] - np.dot(basis[:, 1], first) * first
    second = second / np.sqrt(np.sum(second**2))
    axes = np.stack([first, second], axis=1)
    return np.sum((centred - centred @ axes @ axes.T) ** 2)


def support_vector_machine(weights: Array, inputs: Array, signs: Array) -> Scalar:
    hinge = np.maximum(0.0, 1.0 - signs * (inputs @ weights))
    return hinge.mean() + 0.5 * np.sum(weights * weights)


def cosine_contrast(anchors: Array, others: Array) -> Scalar:
    anchors = anchors / np.linalg.norm(anchors, axis=1, keepdims=True)
    others = others / np.linalg.norm(others, axis=1, keepdims=True)
    similarity = 5.0 * np.einsum("ik,jk->ij", anchors, others)
    peak = np.max(similarity, axis=1)
    return np.mean(np.log(np.sum(np.exp(similarity - peak[:, None]), axis=1)) + peak - np.diagonal(similarity))


def _signs(rng: np.random.Generator, n: int) -> Array:
    return np.where(rng.standard_normal(n) > 0, 1.0, -1.0)


def _mlp_arguments(rng: np.random.Generator) -> tuple[object, ...]:
    parameters = {
        "w1": rng.standard_normal((3, 4)),
        "b1": rng.standard_normal(4),
        "w2": rng.standard_normal((4, 3)),
        "b2": rng.standard_normal(3),
    }
    return parameters, rng.standard_normal((6, 3)), rng.integers(0, 3, 6)


PROGRAMS = (
    Program(
        logistic_regression,
        lambda r: (r.standard_normal(4), 0.3, r.standard_normal((9, 4)), _signs(r, 9)),
        argnums=(0, 1),
    ),
    Program(mlp, _mlp_arguments, analytic=True),
    Program(
        softmax_cross_entropy,
        lambda r: (r.standard_normal((4, 3)), np.eye(3)[[0, 2, 1, 1]]),
        analytic=True,
    ),
    Program(
        layer_norm,
        lambda r: (r.standard_normal((3, 5)), 1 + 0.1 * r.standard_normal(5), r.standard_normal(5)),
        argnums=(0, 1, 2),
    ),
    Program(
        attention_block,
        lambda r: (r.standard_normal((4, 4)), *(0.5 * r.standard_normal((4, 4)) for _ in range(3))),
        argnums=(0, 1, 2, 3),
    ),
    Program(soft_kmeans, lambda r: (r.random((3, 2)), r.random((10, 2))), analytic=True),
    Program(
        huber_regression,
        lambda r: (r.standard_normal(3), r.standard_normal((8, 3)), 2 * r.standard_normal(8)),
    ),
    Program(
        poisson_regression,
        lambda r: (0.3 * r.standard_normal(4), r.standard_normal((7, 4)), r.poisson(2.0, 7)),
        analytic=True,
    ),
    Program(
        matrix_factorisation,
        lambda r: (r.standard_normal((4, 2)), r.standard_normal((5, 2)), r.random((4, 5)), r.random((4, 5)) > 0.4),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(
        ridge,
        lambda r: (r.standard_normal(4), r.standard_normal((6, 4)), r.standard_normal(6)),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(
        smooth_elastic_net,
        lambda r: (r.standard_normal(5), r.standard_normal((6, 5)), r.standard_normal(6)),
        analytic=True,
    ),
    Program(
        recurrent_network,
        lambda r: (0.5 * r.standard_normal((3, 3)), r.standard_normal(3), r.standard_normal(3), np.sin(np.arange(6.0))),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(
        lstm_cell,
        lambda r: (0.5 * r.standard_normal((8, 3)), r.standard_normal(8), r.standard_normal(4)),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(
        convolution,
        lambda r: (r.standard_normal((5, 6)), r.standard_normal((3, 2))),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(
        radial_basis_network,
        lambda r: (r.random(4), -1 + 0.2 * r.random(4), r.standard_normal(4), r.random(9), r.random(9)),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(pca_reconstruction, lambda r: (r.standard_normal((4, 2)), r.standard_normal((8, 4))), analytic=True),
    Program(
        support_vector_machine,
        lambda r: (r.standard_normal(3), r.standard_normal((8, 3)), _signs(r, 8)),
    ),
    Program(
        cosine_contrast,
        lambda r: (r.standard_normal((4, 3)), r.standard_normal((4, 3))),
        argnums=(0, 1),
    ),
)
