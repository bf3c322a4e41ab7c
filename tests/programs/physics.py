"""Programs of physics, geometry and numerical methods, nothing written in place."""

import numpy as np

from tests.programs.program import Array, Indices, Program, Scalar


def rosenbrock(x: Array) -> Scalar:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def kepler_orbit(position: Array, velocity: Array) -> Scalar:
    for _ in range(5):
        velocity = velocity - 0.05 * position / np.sum(position**2) ** 1.5
        position = position + 0.05 * velocity
    return 0.5 * np.dot(velocity, velocity) - 1.0 / np.sqrt(np.dot(position, position))


def n_body_energy(positions: Array, velocities: Array, masses: Array) -> Scalar:
    first, second = np.triu_indices(len(masses), k=1)
    separation = positions[first] - positions[second]
    distance = np.sqrt(np.sum(separation**2, axis=1))
    kinetic = 0.5 * np.sum(masses * np.sum(velocities**2, axis=1))
    return kinetic - np.sum(masses[first] * masses[second] / distance)


def heat_stencil(temperature: Array, conductivity: float) -> Scalar:
    for _ in range(4):
        inner = temperature[1:-1] + conductivity * (temperature[2:] - 2 * temperature[1:-1] + temperature[:-2])
        temperature = np.concatenate([temperature[:1], inner, temperature[-1:]])
    return np.sum(temperature**2)


def lotka_volterra(rates: Array, start: Array) -> Scalar:
    prey, hunters = start
    for _ in range(10):
        prey, hunters = (
            prey + 0.05 * prey * (rates[0] - rates[1] * hunters),
            hunters + 0.05 * hunters * (rates[2] * prey - rates[3]),
        )
    return np.log(prey) ** 2 + np.log(hunters) ** 2


def pendulum(angle: float, speed: float, length: float) -> Scalar:
    for _ in range(8):
        speed = speed - 0.1 * 9.81 / length * np.sin(angle)
        angle = angle + 0.1 * speed
    return 0.5 * (length * speed) ** 2 - 9.81 * length * np.cos(angle)


def van_der_pol(stiffness: float, start: Array) -> Scalar:
    def slope(y: Array) -> Array:
        return np.array([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])

    y, step = start, 0.1
    for _ in range(3):
        k1 = slope(y)
        k2 = slope(y + step / 2 * k1)
        k3 = slope(y + step / 2 * k2)
        k4 = slope(y + step * k3)
        y = y + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y @ y


def robot_arm(angles: Array, lengths: Array, target: Array) -> Scalar:
    absolute = np.cumsum(angles)
    hand = np.array([np.sum(lengths * np.cos(absolute)), np.sum(lengths * np.sin(absolute))])
    return np.sum((hand - target) ** 2) + 0.01 * np.sum(angles**2)


def spring_network(positions: Array, stiffness: Array, edges: Indices, rest: Array) -> Scalar:
    stretched = np.linalg.norm(positions[edges[:, 0]] - positions[edges[:, 1]], axis=1)
    return 0.5 * np.sum(stiffness * (stretched - rest) ** 2) + 9.81 * np.sum(positions[:, 1])


def lennard_jones(positions: Array) -> Scalar:
    difference = positions[:, None] - positions[None]
    squares = np.sum(difference**2, axis=-1) + np.eye(len(positions))
    sixth = 1.0 / squares**3
    pairs = np.where(np.eye(len(positions), dtype=bool), 0.0, 4.0 * (sixth**2 - sixth))
    return 0.5 * np.sum(pairs)


def lens_tracing(curvatures: Array, gaps: Array, heights: Array) -> Scalar:
    index = (1.0, 1.5, 1.0, 1.6, 1.0)
    height, slope = heights, np.zeros_like(heights)
    for surface in range(4):
        incidence = np.arcsin(height * curvatures[surface])
        refracted = np.arcsin(index[surface] / index[surface + 1] * np.sin(incidence + np.arctan(slope)))
        slope = np.tan(refracted - incidence)
        height = height + gaps[surface] * slope
    return np.sum((height - height.mean()) ** 2)


def periodic_burgers(speed: Array, viscosity: float) -> Scalar:
    for _ in range(3):
        left, right = np.roll(speed, 1), np.roll(speed, -1)
        speed = speed - 0.05 * speed * (right - left) + viscosity * (right - 2 * speed + left)
    return np.sum(speed**2)


def fourier_fit(cosines: Array, sines: Array, period: float, x: Array, y: Array) -> Scalar:
    phase = 2 * np.pi * np.outer(x, np.arange(1, len(cosines) + 1)) / period
    return np.sum((np.cos(phase) @ cosines + np.sin(phase) @ sines - y) ** 2)


def spline_fit(values: Array, x: Array, y: Array) -> Scalar:
    knots = np.linspace(0.0, 1.0, len(values) - 2)
    cubes = np.maximum(x[:, None] - knots[None, :], 0.0) ** 3
    basis = np.concatenate([np.ones((len(x), 1)), x[:, None], cubes], axis=1)
    return np.mean((basis @ values - y) ** 2)


def bundle_adjustment(cameras: Array, points: Array, seen_by: Indices, seen: Indices, features: Array) -> Scalar:
    camera, point = cameras[seen_by], points[seen]
    rotation, centre, focal = camera[:, :3], camera[:, 3:6], camera[:, 6]
    angle = np.sqrt(np.sum(rotation**2, axis=1, keepdims=True))
    axis = rotation / angle
    moved = point - centre
    turned = (
        moved * np.cos(angle)
        + np.cross(axis, moved) * np.sin(angle)
        + axis * np.sum(axis * moved, axis=1, keepdims=True) * (1 - np.cos(angle))
    )
    plane = turned[:, :2] / turned[:, 2:]
    radius = np.sum(plane**2, axis=1)
    image = focal[:, None] * plane * (1 + 0.1 * radius + 0.01 * radius**2)[:, None]
    return np.sum((image - features) ** 2)


def quaternion_rotation(quaternion: Array, vectors: Array, targets: Array) -> Scalar:
    w, x, y, z = quaternion / np.linalg.norm(quaternion)
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.mean((vectors @ rotation.T - targets) ** 2)


def polygon(corners: Array) -> Scalar:
    following = np.roll(corners, -1, axis=0)
    area = 0.5 * np.sum(corners[:, 0] * following[:, 1] - following[:, 0] * corners[:, 1])
    perimeter = np.sum(np.hypot(*(following - corners).T))
    return 4 * np.pi * area / perimeter**2


def mesh_area(vertices: Array, triangles: Indices) -> Scalar:
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    return 0.5 * np.sum(np.sqrt(np.einsum("ij,ij->i", normal, normal)))


def orbit_anomaly(eccentricity: float, anomaly: Array) -> Scalar:
    eccentric = anomaly
    for _ in range(5):
        error = eccentric - eccentricity * np.sin(eccentric) - anomaly
        eccentric = eccentric - error / (1 - eccentricity * np.cos(eccentric))
    true = 2 * np.arctan2(
        np.sqrt(1 + eccentricity) * np.sin(eccentric / 2), np.sqrt(1 - eccentricity) * np.cos(eccentric / 2)
    )
    return np.sum(true * np.cos(anomaly))


def truss(angles: Array, loads: Array) -> Scalar:
    length = 1.0 / np.cos(angles)
    force = loads / (2 * np.sin(angles))
    return np.sum(np.abs(force) * length) + np.prod(length) + np.max(force)


def total_variation(image: Array, noisy: Array) -> Scalar:
    down, right = np.diff(image, axis=0)[:, :-1], np.diff(image, axis=1)[:-1, :]
    return 0.5 * np.sum((image - noisy) ** 2) + 0.2 * np.sum(np.sqrt(down**2 + right**2 + 1e-3))


def interpolated_path(heights: Array, start: float) -> Scalar:
    grid = np.arange(float(len(heights)))
    hat = np.maximum(0.0, 1.0 - np.abs(start + np.linspace(0.0, 2.0, 5)[:, None] - grid))
    profile = hat @ heights
    return np.sum(np.sqrt(1.0 + np.diff(profile) ** 2))


EDGES = np.array([[0, 1], [1, 2], [2, 3], [0, 2], [1, 3]])
TRIANGLES = np.array([[0, 1, 2], [0, 2, 3], [1, 2, 3]])
CAMERA = np.array([0.1, -0.2, 0.15, 0.0, 0.1, -5.0, 2.0])

PROGRAMS = (
    Program(rosenbrock, lambda r: (r.standard_normal(6),), analytic=True),
    Program(
        kepler_orbit, lambda r: (np.array([1.0, 0.2, 0.1]), np.array([0.1, 0.9, 0.2])), argnums=(0, 1), analytic=True
    ),
    Program(
        n_body_energy,
        lambda r: (r.standard_normal((4, 3)), r.standard_normal((4, 3)), 1 + r.random(4)),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(heat_stencil, lambda r: (r.random(8), 0.2), argnums=(0, 1), analytic=True),
    Program(
        lotka_volterra,
        lambda r: (np.array([1.1, 0.4, 0.3, 0.6]), np.array([2.0, 1.5])),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(pendulum, lambda r: (0.5, 0.1, 1.3), argnums=(0, 1, 2), analytic=True),
    Program(van_der_pol, lambda r: (1.5, np.array([1.0, -0.4])), argnums=(0, 1), analytic=True),
    Program(
        robot_arm,
        lambda r: (r.standard_normal(4), 0.5 + r.random(4), np.array([1.0, 0.7])),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(
        spring_network,
        lambda r: (2 * r.standard_normal((4, 2)), 1 + r.random(5), EDGES, 1 + 0.1 * r.random(5)),
        argnums=(0, 1, 3),
    ),
    Program(
        lennard_jones,
        lambda r: (1.2 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]) + 0.1 * r.random((4, 3)),),
        analytic=True,
    ),
    Program(
        lens_tracing,
        lambda r: (np.array([0.2, -0.1, 0.15, -0.2]), np.array([0.3, 0.2, 0.3, 1.0]), np.linspace(0.2, 1.0, 5)),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(periodic_burgers, lambda r: (r.standard_normal(7), 0.1), argnums=(0, 1), analytic=True),
    Program(
        fourier_fit,
        lambda r: (r.random(3), r.random(3), 2.2, np.linspace(0.0, 2.0, 8), r.random(8)),
        argnums=(0, 1, 2),
        analytic=True,
    ),
    Program(spline_fit, lambda r: (r.standard_normal(6), 0.02 + 0.95 * r.random(9), r.random(9)), argnums=(0, 1)),
    Program(
        bundle_adjustment,
        lambda r: (
            CAMERA + 0.05 * r.standard_normal((2, 7)),
            r.standard_normal((4, 3)),
            np.array([0, 1, 0, 1, 0]),
            np.array([0, 1, 2, 3, 3]),
            r.standard_normal((5, 2)),
        ),
        argnums=(0, 1),
        analytic=True,
    ),
    Program(
        quaternion_rotation,
        lambda r: (r.standard_normal(4), r.standard_normal((4, 3)), r.standard_normal((4, 3))),
        argnums=(0, 1),
    ),
    Program(
        polygon,
        lambda r: (np.array([[0.0, 0.0], [2.0, 0.2], [2.5, 1.5], [1.0, 2.2], [-0.4, 1.1]]) + 0.1 * r.random((5, 2)),),
    ),
    Program(mesh_area, lambda r: (r.standard_normal((4, 3)), TRIANGLES), analytic=True),
    Program(orbit_anomaly, lambda r: (0.3, 0.3 + 2.0 * r.random(4)), argnums=(0, 1)),
    Program(truss, lambda r: (0.4 + 0.5 * r.random(4), 1 + r.random(4)), argnums=(0, 1)),
    Program(total_variation, lambda r: (r.random((4, 5)), r.random((4, 5))), analytic=True),
    Program(interpolated_path, lambda r: (r.standard_normal(6), 1.13), argnums=(0, 1)),
)
