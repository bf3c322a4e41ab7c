"""Programs that write in place: fields on grids, images, particles."""

import numpy as np

from tests.programs.program import Array, Program, Scalar


def jacobi(source: Array) -> Scalar:
    field = np.zeros((source.shape[0] + 2, source.shape[1] + 2))
    field[0] = 1.0
    for _ in range(3):
        old = field.copy()
        field[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] + source)
    return np.sum(field**2)


def heat_3d(field: Array, rate: float) -> Scalar:
    now = np.array(field)
    for _ in range(2):
        middle = now[1:-1, 1:-1, 1:-1]
        middle += rate * (
            (now[2:, 1:-1, 1:-1] - 2.0 * middle + now[:-2, 1:-1, 1:-1])
            + (now[1:-1, 2:, 1:-1] - 2.0 * middle + now[1:-1, :-2, 1:-1])
            + (now[1:-1, 1:-1, 2:] - 2.0 * middle + now[1:-1, 1:-1, :-2])
        )
    return np.sum(now**2)


def fdtd(strength: Array, permittivity: Array) -> Scalar:
    n = len(permittivity)
    electric, magnetic = np.zeros(n), np.zeros(n - 1)
    for amplitude in strength:
        magnetic += 0.5 * (electric[1:] - electric[:-1])
        electric[1:-1] += 0.5 / permittivity[1:-1] * (magnetic[1:] - magnetic[:-1])
        electric[n // 2] += amplitude
    return np.sum(permittivity * electric**2) + np.sum(magnetic**2)


def cavity_flow(lid: float, viscosity: float) -> Scalar:
    n, dt, dx = 5, 0.02, 0.25
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    u[-1, :] = lid
    for _ in range(3):
        b = np.zeros((n, n))
        b[1:-1, 1:-1] = ((u[1:-1, 2:] - u[1:-1, :-2]) + (v[2:, 1:-1] - v[:-2, 1:-1])) / (2 * dx * dt)
        for _ in range(2):
            q = p.copy()
            p[1:-1, 1:-1] = 0.25 * (q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1] - dx**2 * b[1:-1, 1:-1])
            p[:, -1], p[0, :], p[:, 0], p[-1, :] = p[:, -2], p[1, :], p[:, 1], 0.0
        old = u.copy()
        u[1:-1, 1:-1] += dt * (
            viscosity * (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1] - 4 * old[1:-1, 1:-1]) / dx**2
            - (p[1:-1, 2:] - p[1:-1, :-2]) / (2 * dx)
            - old[1:-1, 1:-1] * (old[1:-1, 1:-1] - old[1:-1, :-2]) / dx
        )
        v[1:-1, 1:-1] -= dt * (p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * dx)
    return np.sum(u**2) + np.sum(v**2)


def alternating_directions(field: Array, rate: float) -> Scalar:
    u = field.copy()
    n = len(u)
    for _ in range(2):
        for sweep in (u, u.T):
            ratio = np.zeros(n)
            for i in range(1, n - 1):
                pivot = 1 + 2 * rate - rate * ratio[i - 1]
                ratio[i] = rate / pivot
                sweep[i, 1:-1] = (sweep[i, 1:-1] + rate * sweep[i - 1, 1:-1]) / pivot
            for i in range(n - 2, 0, -1):
                sweep[i, 1:-1] += ratio[i] * sweep[i + 1, 1:-1]
    return np.sum(u[1:-1, 1:-1] ** 2)


def vertical_advection(tracer: Array, wind: Array) -> Scalar:
    levels = tracer.shape[0]
    upper, right = np.empty_like(tracer), np.empty_like(tracer)
    for k in range(levels):
        up = 0.25 * (wind[k] + wind[k + 1]) if k + 1 < levels else 0.25 * wind[k]
        if k == 0:
            upper[k], right[k] = up / 1.5, tracer[k] / 1.5
        else:
            pivot = 1.5 + up * upper[k - 1]
            upper[k] = up / pivot
            right[k] = (tracer[k] + up * right[k - 1]) / pivot
    out = np.zeros_like(tracer)
    out[-1] = right[-1]
    for k in reversed(range(levels - 1)):
        out[k] = right[k] - upper[k] * out[k + 1]
    return np.sum(out**2)


def n_body_steps(positions: Array, velocities: Array, masses: Array) -> Scalar:
    x, v = positions.copy(), velocities.copy()
    for _ in range(2):
        difference = x[:, None, :] - x[None, :, :]
        squares = (difference**2).sum(axis=2)
        apart = squares > 0
        inverse = np.zeros_like(squares)
        inverse[apart] = squares[apart] ** -1.5
        v -= 0.05 * np.sum(masses[None, :, None] * difference * inverse[:, :, None], axis=1)
        x += 0.05 * v
    return np.sum(x**2) + np.sum(v**2)


def convolution_loops(image: Array, kernels: Array) -> Scalar:
    count, size, _ = kernels.shape
    height, width = image.shape[0] - size + 1, image.shape[1] - size + 1
    out = np.empty((height, width, count))
    for i in range(height):
        for j in range(width):
            out[i, j, :] = np.sum(image[i : i + size, j : j + size] * kernels, axis=(1, 2))
    return np.sum(np.sqrt(1.0 + out**2))


def residual_block(image: Array, first: Array, second: Array) -> Scalar:
    def same(x: Array, kernel: Array) -> Array:
        padded = np.zeros((x.shape[0] + 2, x.shape[1] + 2))
        padded[1:-1, 1:-1] = x
        out = np.zeros_like(x)
        for i in range(3):
            for j in range(3):
                out += kernel[i, j] * padded[i : i + x.shape[0], j : j + x.shape[1]]
        return out

    def normal(x: Array) -> Array:
        scaled: Array = (x - np.mean(x)) / np.sqrt(np.var(x) + 1e-3)
        return scaled

    hidden = normal(same(image, first))
    hidden[hidden < 0] *= 0.1
    return np.sum(np.tanh(normal(same(hidden, second)) + image))


def wave_equation(start: Array, speed: Array) -> Scalar:
    steps = 5
    wave = np.zeros((steps, len(start)))
    wave[0] = start
    wave[1] = start
    for t in range(1, steps - 1):
        wave[t + 1, 1:-1] = 2 * wave[t, 1:-1] - wave[t - 1, 1:-1]
        wave[t + 1, 1:-1] += (0.3 * speed[1:-1]) ** 2 * (wave[t, 2:] - 2 * wave[t, 1:-1] + wave[t, :-2])
    return np.sum(wave[-1] ** 2)


def soft_life(board: Array) -> Scalar:
    world = board.copy()
    for _ in range(2):
        neighbours = np.zeros_like(world)
        for di in (-1, 0, 1):
            for dj in (-1, 0, 1):
                if (di, dj) != (0, 0):
                    neighbours += np.roll(np.roll(world, di, axis=0), dj, axis=1)
        born = np.exp(-((neighbours - 3.0) ** 2))
        world[:] = born + world * np.exp(-((neighbours - 2.0) ** 2)) * (1 - born)
    return world.sum()


def median_filter(series: Array) -> Scalar:
    out = np.array(series)
    for i in range(1, len(series) - 1):
        out[i] = np.median(series[i - 1 : i + 2])
    return np.sum(out**2 * np.arange(len(out)))


def bilinear_warp(image: Array, shift: Array) -> Scalar:
    height, width = image.shape
    out = np.zeros((height - 2, width - 2))
    low = np.floor(shift).astype(int)
    fraction = shift - low
    for di, wi in ((0, 1 - fraction[0]), (1, fraction[0])):
        for dj, wj in ((0, 1 - fraction[1]), (1, fraction[1])):
            i, j = low[0] + di, low[1] + dj
            out += wi * wj * image[i : i + height - 2, j : j + width - 2]
    return np.sum(out**2)


def box_blur(image: Array) -> Scalar:
    height, width = image.shape
    table = np.zeros((height + 1, width + 1))
    table[1:, 1:] = image.cumsum(axis=0).cumsum(axis=1)
    blurred = np.empty((height - 2, width - 2))
    blurred[...] = (table[3:, 3:] - table[:-3, 3:] - table[3:, :-3] + table[:-3, :-3]) / 9
    return np.sum(blurred**3)


def seam_energy(energy: Array) -> Scalar:
    cost = energy.copy()
    for row in range(1, cost.shape[0]):
        above = cost[row - 1].copy()
        best = above.copy()
        best[1:] = np.minimum(best[1:], above[:-1])
        best[:-1] = np.minimum(best[:-1], above[1:])
        cost[row] += best
    return np.min(cost[-1]) ** 2


def cell_deposit(positions: Array, charges: Array) -> Scalar:
    density = np.zeros(6)
    cells = np.floor(positions).astype(int)
    offset = positions - cells
    np.add.at(density, cells, charges * (1 - offset))
    np.add.at(density, cells + 1, charges * offset)
    return np.sum(density**2)


def collisions(height: float, speed: float) -> Scalar:
    track = np.zeros(12)
    for t in range(12):
        speed -= 0.1 * 9.81
        height += 0.1 * speed
        if height < 0:
            height, speed = -0.8 * height, -0.8 * speed
        track[t] = height
    return np.sum(track**2)


def flood_fill(terrain: Array, level: float) -> Scalar:
    water = np.zeros_like(terrain)
    wet = terrain < level
    water[wet] = level - terrain[wet]
    for _ in range(2):
        flux = 0.1 * np.diff(terrain + water)
        water[:-1] += flux
        water[1:] -= flux
        water[water < 0] = 0.0
    return np.sum(water**2)


def upwind_transport(profile: Array, speed: Array) -> Scalar:
    q = profile.copy()
    for _ in range(3):
        flux = np.zeros(len(q) + 1)
        flux[1:-1] = np.where(speed > 0, speed * q[:-1], speed * q[1:])
        q -= 0.1 * (flux[1:] - flux[:-1])
    return q @ q


PROGRAMS = (
    Program(jacobi, lambda r: (r.standard_normal((4, 3)),)),
    Program(heat_3d, lambda r: (r.random((4, 4, 3)), 0.1), argnums=(0, 1)),
    Program(fdtd, lambda r: (r.standard_normal(4), 1 + r.random(8)), argnums=(0, 1)),
    Program(cavity_flow, lambda r: (1.0, 0.1), argnums=(0, 1)),
    Program(alternating_directions, lambda r: (r.random((5, 5)), 0.4), argnums=(0, 1)),
    Program(
        vertical_advection, lambda r: (r.random((4, 3)), 0.3 * r.standard_normal((4, 3))), argnums=(0, 1)
    ),
    Program(
        n_body_steps,
        lambda r: (r.standard_normal((3, 3)), r.standard_normal((3, 3)), 1 + r.random(3)),
        argnums=(0, 1, 2),
    ),
    Program(convolution_loops, lambda r: (r.random((4, 5)), r.standard_normal((2, 3, 3))), argnums=(0, 1)),
    Program(
        residual_block,
        lambda r: (r.standard_normal((4, 4)), r.standard_normal((3, 3)), r.standard_normal((3, 3))),
        argnums=(0, 1, 2),
    ),
    Program(wave_equation, lambda r: (r.standard_normal(7), 1 + r.random(7)), argnums=(0, 1)),
    Program(soft_life, lambda r: (r.random((4, 5)),)),
    Program(median_filter, lambda r: (r.standard_normal(9),)),
    Program(bilinear_warp, lambda r: (r.random((5, 5)), np.array([0.3, 1.6])), argnums=(0, 1)),
    Program(box_blur, lambda r: (r.random((5, 6)),)),
    Program(seam_energy, lambda r: (1 + 2 * r.random((4, 5)),)),
    Program(cell_deposit, lambda r: (0.2 + 4.5 * r.random(5), r.standard_normal(5)), argnums=(0, 1)),
    Program(collisions, lambda r: (1.0, 0.5), argnums=(0, 1)),
    Program(flood_fill, lambda r: (np.array([0.1, 0.9, 0.35, 1.4, 0.2, 0.7]), 0.61), argnums=(0, 1)),
    Program(
        upwind_transport, lambda r: (r.random(6), np.array([1.0, -0.5, 0.7, 0.3, -0.9])), argnums=(0, 1)
    ),
)
