"""Programs that write in place: numerical methods as they stand in textbooks, with branches on numbers."""

import numpy as np

from tests.programs.program import Array, Program, Scalar


def shallow_water(bump: Array, gravity: float) -> Scalar:
    depth = 1.0 + bump
    east, north = np.zeros_like(depth), np.zeros_like(depth)
    for _ in range(2):
        east[1:-1] -= 0.05 * gravity * (depth[2:] - depth[:-2]) / 2
        north[:, 1:-1] -= 0.05 * gravity * (depth[:, 2:] - depth[:, :-2]) / 2
        flow = np.zeros_like(depth)
        flow[1:-1] += (east[2:] * depth[2:] - east[:-2] * depth[:-2]) / 2
        flow[:, 1:-1] += (north[:, 2:] * depth[:, 2:] - north[:, :-2] * depth[:, :-2]) / 2
        depth -= 0.05 * flow
        depth[0], depth[-1] = depth[1], depth[-2]
        depth[:, 0], depth[:, -1] = depth[:, 1], depth[:, -2]
    return np.sum(depth**2) + np.sum(east * north)


EAST, NORTH = np.array([0, 1, 0, -1, 0]), np.array([0, 0, 1, 0, -1])
SHARES = np.array([1 / 3, 1 / 6, 1 / 6, 1 / 6, 1 / 6])


def lattice_gas(density: Array, relaxation: float) -> Scalar:
    flows = SHARES[:, None, None] * density
    for _ in range(2):
        for i in range(5):
            flows[i] = np.roll(flows[i], (EAST[i], NORTH[i]), axis=(0, 1))
        total = flows.sum(axis=0)
        u, v = (np.einsum("i,ixy->xy", c, flows) / total for c in (EAST, NORTH))
        rest = np.empty_like(flows)
        for i in range(5):
            rest[i] = SHARES[i] * total * (1 + 3 * (EAST[i] * u + NORTH[i] * v))
        flows += (rest - flows) / relaxation
        wall = flows[:, 1, 1].copy()
        flows[[1, 3], 1, 1], flows[[2, 4], 1, 1] = wall[[3, 1]], wall[[4, 2]]
    return np.sum(flows**2 * np.arange(1.0, 6.0)[:, None, None])


def particle_in_cell(places: Array, speeds: Array, charges: Array) -> Scalar:
    n = 6
    x, v = places.copy(), speeds.copy()
    waves = 2 * np.pi * np.fft.rfftfreq(n)
    for _ in range(2):
        cell = np.floor(x).astype(int)
        share = x - cell
        density = np.zeros(n)
        np.add.at(density, cell % n, charges * (1 - share))
        np.add.at(density, (cell + 1) % n, charges * share)
        modes = np.fft.rfft(density - density.mean())
        potential = np.zeros(modes.shape, complex)
        potential[1:] = modes[1:] / waves[1:] ** 2
        field = -np.real(np.fft.irfft(1j * waves * potential, n))
        v += 0.1 * ((1 - share) * field[cell % n] + share * field[(cell + 1) % n])
        x = (x + 0.1 * v) % n
    return np.sum(v**2) + np.sum(np.sin(x))


def householder(matrix: Array) -> Scalar:
    r = matrix.copy()
    rows, columns = r.shape
    q = np.eye(rows)
    for k in range(columns):
        v = r[k:, k].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        v /= np.linalg.norm(v)
        r[k:, k:] -= 2 * np.outer(v, v @ r[k:, k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ v, v)
    return np.sum(np.abs(np.diag(r))) + np.sum(np.sin(q[:, :columns]))


def pivoted_solver(matrix: Array, right: Array) -> Scalar:
    a, b = matrix.copy(), right.copy()
    n = len(b)
    for k in range(n - 1):
        pivot = k + int(np.argmax(np.abs(a[k:, k])))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[[k, pivot]] = b[[pivot, k]]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k:] -= factor * a[k, k:]
            b[i] -= factor * b[k]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return np.sum(x**2) + np.prod(np.diag(a))


def conjugate_gradients(factor: Array, right: Array) -> Scalar:
    matrix = factor @ factor.T + np.eye(len(right))
    x, residual = np.zeros_like(right), right.copy()
    direction, square, turns = residual.copy(), residual @ residual, 0
    while np.sqrt(square) > 1e-9 and turns < 20:
        image = matrix @ direction
        step = square / (direction @ image)
        x += step * direction
        residual -= step * image
        square, last = residual @ residual, square
        direction = residual + (square / last) * direction
        turns += 1
    return np.sum(x**3)


def fourier_by_hand(signal: Array) -> Scalar:
    n = len(signal)
    z = signal.astype(complex)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            z[i], z[j] = z[j], z[i]
    length = 2
    while length <= n:
        half = length // 2
        turns = np.exp(-2j * np.pi / length * np.arange(half))
        for s in range(0, n, length):
            even, odd = z[s : s + half].copy(), turns * z[s + half : s + length]
            z[s : s + half], z[s + half : s + length] = even + odd, even - odd
        length *= 2
    return np.sum(np.abs(z) ** 2 * np.arange(n)) + np.sum(z.real[1:4])


def wavelet_lifting(signal: Array) -> Scalar:
    y = signal.copy()
    n = len(y)
    while n > 1:
        even, odd = y[:n:2].copy(), y[1:n:2].copy()
        odd -= 0.5 * (even + np.roll(even, -1))
        even += 0.25 * (odd + np.roll(odd, 1))
        y[: n // 2], y[n // 2 : n] = even, odd
        n //= 2
    return np.sum(y**2 * np.arange(1, len(y) + 1))


KNOTS = np.array([0.0, 0.0, 0.0, 1 / 3, 2 / 3, 1.0, 1.0, 1.0])


def spline_by_de_boor(control: Array, places: Array) -> Scalar:
    total = 0.0
    for x in places:
        k = int(np.clip(np.searchsorted(KNOTS, x, side="right") - 1, 2, 4))
        d = [control[j + k - 2] for j in range(3)]
        for level in range(1, 3):
            for j in range(2, level - 1, -1):
                low, high = KNOTS[j + k - 2], KNOTS[j + 1 + k - level]
                d[j] = (high - x) / (high - low) * d[j - 1] + (x - low) / (high - low) * d[j]
        total = total + d[2] ** 2
    return total


def option_tree(spot: float, strike: float, volatility: float) -> Scalar:
    n = 4
    up = np.exp(volatility * np.sqrt(1 / n))
    chance = (np.exp(0.05 / n) - 1 / up) / (up - 1 / up)
    value = np.maximum(strike - spot * up ** (2 * np.arange(n + 1) - n), 0.0)
    for i in range(n - 1, -1, -1):
        value[: i + 1] = np.exp(-0.05 / n) * (chance * value[1 : i + 2] + (1 - chance) * value[: i + 1])
        value[: i + 1] = np.maximum(value[: i + 1], strike - spot * up ** (2 * np.arange(i + 1) - i))
    return value[0]


def label_alignment(logits: Array) -> Scalar:
    labels = [0, 1, 0, 2, 0]
    scores = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    paths = np.full(len(labels), -np.inf)
    paths[:2] = scores[0, labels[:2]]
    for t in range(1, len(logits)):
        longer = paths.copy()
        longer[1:] = np.logaddexp(longer[1:], paths[:-1])
        longer[3] = np.logaddexp(longer[3], paths[1])
        paths = longer + scores[t, labels]
    return -np.logaddexp(paths[-1], paths[-2])


def masked_attention(queries: Array, keys: Array, values: Array) -> Scalar:
    scores = queries @ keys.T / np.sqrt(queries.shape[-1])
    places = np.arange(len(scores))
    scores[places[None] > places[:, None]] = -np.inf
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.sum((weights @ values) ** 2)


def early_exercise(spot: float, strike: float, draws: Array) -> Scalar:
    prices = spot * np.exp(np.cumsum(0.15 * draws - 0.01, axis=1))
    payoff = np.maximum(strike - prices[:, -1], 0.0)
    for t in range(prices.shape[1] - 2, -1, -1):
        inside = prices[:, t] < strike
        x = prices[inside, t]
        basis = np.stack([np.ones_like(x), x], axis=1)
        weights = np.linalg.lstsq(basis, payoff[inside], rcond=None)[0]
        now = strike - x
        payoff[inside] = np.where(now > basis @ weights, now, payoff[inside])
    return payoff.mean()


def bar_elements(stiffness: Array, loads: Array) -> Scalar:
    n = len(stiffness)
    matrix, right = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    for e in range(n):
        i, j = e, e + 1
        element = stiffness[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        np.add.at(matrix, (np.array([i, i, j, j]), np.array([i, j, i, j])), element.ravel())
        right[[i, j]] += loads[e] / 2
    moved = np.zeros(n + 1)
    moved[1:] = np.linalg.solve(matrix[1:, 1:], right[1:])
    return moved @ right


def adaptive_steps(start: Array, stiffness: float) -> Scalar:
    def slope(y: Array) -> Array:
        return np.array([y[1], -stiffness * y[0] - 0.1 * y[1] ** 3])

    y, t, step = start, 0.0, 0.4
    while t < 1.0:
        if t + step > 1.0:
            step = 1.0 - t
        first = slope(y)
        second = slope(y + step * first)
        error = np.max([abs(e) for e in step * (second - first) / 2])
        if error < 0.05:
            y = y + step * (first + second) / 2
            t += step
            step *= 1.5
        else:
            step /= 2
    return np.sum(y**2)


PROGRAMS = (
    Program(shallow_water, lambda r: (0.1 * r.random((5, 4)), 9.8), argnums=(0, 1)),
    Program(lattice_gas, lambda r: (1 + 0.1 * r.random((3, 4)), 0.8), argnums=(0, 1)),
    Program(
        particle_in_cell,
        lambda r: (np.array([0.3, 1.6, 2.4, 4.7]), 0.1 * r.random(4), r.random(4)),
        argnums=(0, 1, 2),
    ),
    Program(householder, lambda r: (r.standard_normal((4, 2)),)),
    Program(pivoted_solver, lambda r: (r.standard_normal((3, 3)), r.standard_normal(3)), argnums=(0, 1)),
    Program(conjugate_gradients, lambda r: (r.standard_normal((3, 3)), r.standard_normal(3)), argnums=(0, 1)),
    Program(fourier_by_hand, lambda r: (r.standard_normal(8),)),
    Program(wavelet_lifting, lambda r: (r.standard_normal(8),)),
    Program(spline_by_de_boor, lambda r: (r.standard_normal(5), np.array([0.1, 0.45, 0.9])), argnums=(0, 1)),
    Program(option_tree, lambda r: (1.0, 1.07, 0.3), argnums=(0, 1, 2)),
    Program(label_alignment, lambda r: (r.standard_normal((4, 3)),)),
    Program(masked_attention, lambda r: tuple(r.standard_normal((3, 2)) for _ in range(3)), argnums=(0, 1, 2)),
    Program(early_exercise, lambda r: (1.0, 1.05, r.standard_normal((8, 3))), argnums=(0, 1)),
    Program(bar_elements, lambda r: (1 + r.random(4), r.random(4)), argnums=(0, 1)),
    Program(adaptive_steps, lambda r: (np.array([1.0, 0.5]), 2.0), argnums=(0, 1)),
)
