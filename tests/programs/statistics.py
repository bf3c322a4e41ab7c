"""Programs of statistics and finance: likelihoods, filters, prices; nothing written in place."""

import numpy as np
from scipy import special

from tests.programs.program import Array, Indices, Program, Scalar


def black_scholes(spot: Array, strike: Array, volatility: Array, rate: float, years: Array) -> Scalar:
    spread = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    d2 = d1 - spread
    call = spot * _normal_cdf(d1) - strike * np.exp(-rate * years) * _normal_cdf(d2)
    return np.sum(call)


def _normal_cdf(x: Array) -> Array:
    cdf: Array = 0.5 * (1.0 + special.erf(x / np.sqrt(2.0)))
    return cdf


def logsumexp_of_rows(x: Array) -> Scalar:
    peak = np.max(x, axis=1, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(x - peak), axis=1)) + peak[:, 0])


def gaussian_mixture(log_weights: Array, means: Array, log_scales: Array, points: Array) -> Scalar:
    weights = log_weights - np.log(np.sum(np.exp(log_weights)))
    normal = (points[:, None] - means) / np.exp(log_scales)
    each = weights - 0.5 * np.sum(normal**2, axis=2) - np.sum(log_scales, axis=1)
    peak = each.max(axis=1)
    return -np.mean(np.log(np.exp(each - peak[:, None]).sum(axis=1)) + peak)


def gaussian_process_fit(log_scale: float, log_noise: float, x: Array, y: Array) -> Scalar:
    distance = (x[:, None] - x[None, :]) / np.exp(log_scale)
    covariance = np.exp(-0.5 * distance**2) + np.exp(log_noise) * np.eye(len(x))
    solution, residual = np.zeros_like(y), y
    direction = residual
    for _ in range(3):
        image = covariance @ direction
        step = residual @ residual / (direction @ image)
        solution = solution + step * direction
        following = residual - step * image
        direction = following + (following @ following) / (residual @ residual) * direction
        residual = following
    return 0.5 * y @ solution + 0.5 * np.log(np.trace(covariance @ covariance))


def kalman_filter(log_drift: float, log_noise: float, observed: Array) -> Scalar:
    transition = np.array([[1.0, 1.0], [0.0, 0.95]])
    process = np.exp(log_drift) * np.array([[0.25, 0.5], [0.5, 1.0]])
    state, covariance = np.zeros(2), np.eye(2)
    likelihood = 0.0
    for value in observed:
        state = transition @ state
        covariance = transition @ covariance @ transition.T + process
        innovation = value - state[0]
        variance = covariance[0, 0] + np.exp(log_noise)
        gain = covariance[:, 0] / variance
        state = state + gain * innovation
        covariance = covariance - np.outer(gain, covariance[0])
        likelihood = likelihood - 0.5 * (np.log(2 * np.pi * variance) + innovation**2 / variance)
    return -likelihood


def hidden_markov_forward(start: Array, transitions: Array, emissions: Array, symbols: Indices) -> Scalar:
    log_transitions = transitions - np.log(np.sum(np.exp(transitions), axis=1, keepdims=True))
    log_emissions = emissions - np.log(np.sum(np.exp(emissions), axis=1, keepdims=True))
    alpha = start - np.log(np.sum(np.exp(start))) + log_emissions[:, symbols[0]]
    for symbol in symbols[1:]:
        paths = alpha[:, None] + log_transitions
        peak = np.max(paths, axis=0)
        alpha = np.log(np.sum(np.exp(paths - peak), axis=0)) + peak + log_emissions[:, symbol]
    return -np.log(np.sum(np.exp(alpha)))


def portfolio_risk(logits: Array, returns: Array) -> Scalar:
    weights = np.exp(logits) / np.sum(np.exp(logits))
    outcome = returns @ weights
    centred = outcome - np.mean(outcome)
    return np.std(outcome) - 0.5 * np.mean(outcome) + 0.1 * np.mean(centred**4)


def garch(parameters: Array, returns: Array) -> Scalar:
    omega, alpha, beta = np.exp(parameters[0]), 0.3 * np.exp(parameters[1]), 0.5 * np.exp(parameters[2])
    variance = np.var(returns)
    total = 0.0
    for value in returns:
        total = total + np.log(variance) + value**2 / variance
        variance = omega + alpha * value**2 + beta * variance
    return 0.5 * total


def student_t(location: float, log_scale: float, log_degrees: float, data: Array) -> Scalar:
    degrees = np.exp(log_degrees)
    normal = (data - location) / np.exp(log_scale)
    each = (
        special.gammaln(0.5 * (degrees + 1))
        - special.gammaln(0.5 * degrees)
        - 0.5 * np.log(np.pi * degrees)
        - log_scale
        - 0.5 * (degrees + 1) * np.log1p(normal**2 / degrees)
    )
    return -each.sum()


def evidence_lower_bound(mean: Array, log_scale: Array, noise: Array, inputs: Array, targets: Array) -> Scalar:
    sample = mean + np.exp(log_scale) * noise
    fit = -0.5 * np.sum((sample @ inputs.T - targets) ** 2, axis=1)
    divergence = 0.5 * np.sum(np.exp(2 * log_scale) + mean**2 - 1.0 - 2 * log_scale)
    return divergence - np.mean(fit)


def cox_regression(weights: Array, inputs: Array, censored: Array) -> Scalar:
    risk = inputs @ weights
    at_risk = np.cumsum(np.exp(risk))
    return -np.sum(np.where(censored, 0.0, risk - np.log(at_risk)))


def beta_fit(log_a: float, log_b: float, data: Array) -> Scalar:
    a, b = np.exp(log_a), np.exp(log_b)
    normaliser = special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b)
    return data.size * normaliser - np.sum((a - 1) * np.log(data) + (b - 1) * np.log1p(-data))


def ising_mean_field(fields: Array, couplings: Array) -> Scalar:
    symmetric = couplings + couplings.T
    spin = np.tanh(fields)
    for _ in range(4):
        spin = 0.5 * spin + 0.5 * np.tanh(fields + symmetric @ spin)
    up, down = 0.5 * (1 + spin), 0.5 * (1 - spin)
    entropy = -np.sum(up * np.log(up) + down * np.log(down))
    return -0.5 * spin @ symmetric @ spin - fields @ spin - entropy


def monte_carlo_option(spot: float, volatility: float, draws: Array) -> Scalar:
    steps = 0.1 * -0.5 * volatility**2 + volatility * np.sqrt(0.1) * draws
    paths = spot * np.exp(np.cumsum(steps, axis=1))
    average = paths.mean(axis=1)
    return np.mean(np.maximum(average - 1.0, 0.0))


def autocorrelation_fit(coefficients: Array, series: Array) -> Scalar:
    lags = np.stack([series[1:-1], series[:-2]])
    residual = series[2:] - coefficients @ lags
    return np.log(np.sum(residual**2)) + np.sum(residual[1:] * residual[:-1]) / np.sum(residual**2)


def weighted_quantile_loss(centre: Array, data: Array) -> Scalar:
    level = np.array([0.1, 0.5, 0.9])
    error = data[:, None] - centre
    return np.sum(np.maximum(level * error, (level - 1) * error))


PROGRAMS = (
    Program(
        black_scholes,
        lambda r: (1 + 0.2 * r.random(4), 1 + 0.2 * r.random(4), 0.2 + 0.1 * r.random(4), 0.03, 0.5 + r.random(4)),
        argnums=(0, 1, 2, 3, 4),
        analytic=True,
    ),
    Program(logsumexp_of_rows, lambda r: (3 * r.standard_normal((3, 5)),), analytic=True),
    Program(
        gaussian_mixture,
        lambda r: (r.random(3), r.standard_normal((3, 2)), 0.2 * r.random((3, 2)), r.standard_normal((8, 2))),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(
        gaussian_process_fit,
        lambda r: (-0.5, -1.0, np.linspace(0.0, 3.0, 6), r.standard_normal(6)),
        argnums=(0, 1, 3),
        analytic=True,
    ),
    Program(
        kalman_filter,
        lambda r: (-1.0, 0.2, np.cumsum(r.standard_normal(6))),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(
        hidden_markov_forward,
        lambda r: (r.random(3), r.standard_normal((3, 3)), r.standard_normal((3, 4)), np.array([0, 3, 1, 1, 2])),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(portfolio_risk, lambda r: (r.random(4), 0.1 * r.standard_normal((12, 4)))),
    Program(garch, lambda r: (np.array([-1.0, -0.3, 0.1]), r.standard_normal(8))),
    Program(student_t, lambda r: (0.2, -0.1, 1.2, r.standard_normal(7)), argnums=(0, 1, 2)),
    Program(
        evidence_lower_bound,
        lambda r: (
            r.random(3),
            -1 + r.random(3),
            r.standard_normal((4, 3)),
            r.standard_normal((5, 3)),
            r.standard_normal(5),
        ),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(
        cox_regression,
        lambda r: (r.standard_normal(3), r.standard_normal((7, 3)), r.random(7) > 0.7),
        analytic=True,
    ),
    Program(beta_fit, lambda r: (0.4, 0.9, 0.1 + 0.8 * r.random(6)), argnums=(0, 1)),
    Program(
        ising_mean_field,
        lambda r: (r.standard_normal(5), 0.2 * r.standard_normal((5, 5))),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(monte_carlo_option, lambda r: (1.02, 0.3, r.standard_normal((6, 5))), argnums=(0, 1)),
    Program(
        autocorrelation_fit,
        lambda r: (np.array([0.5, -0.2]), np.cumsum(r.standard_normal(9))),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(weighted_quantile_loss, lambda r: (np.array([-1.0, 0.1, 1.2]), r.standard_normal(9))),
)
