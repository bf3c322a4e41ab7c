"""Bundle adjustment: cameras and points that explain where points were seen in photographs."""

from typing import Any

import numpy

from ..workload import Library, Workload
from .learning import DATA

OBSERVATIONS = 10_000


def bundle_adjustment(
    library: Library, cameras: Any, points: Any, weights: Any, seen_by: Any, seen: Any, features: Any
) -> Any:
    """Return ADBench's squared residuals, summed.

    Shapes: `cameras` (n, 11): rotation, centre, focal length, principal point, two numbers of lens distortion; `points`
    (m, 3); `weights`, `seen_by` and `seen` (p,); `features` (p, 2).
    """
    np = library.np
    camera = cameras[seen_by]
    moved = points[seen] - camera[:, 3:6]
    turned = _rotate(np, camera[:, :3], moved)
    plane = turned[:, :2] / turned[:, 2:]
    square = np.sum(plane**2, axis=1)
    bend = 1.0 + camera[:, 9] * square + camera[:, 10] * square**2
    image = camera[:, 6:7] * plane * bend[:, None] + camera[:, 7:9]
    residual = weights[:, None] * (image - features)
    return np.sum(residual**2) + np.sum((1.0 - weights**2) ** 2)


def _rotate(np: Any, rotation: Any, vector: Any) -> Any:
    """Turn vectors by Rodrigues' formula; the direction of `rotation` is the axis, its length the angle."""
    angle = np.sqrt(np.sum(rotation**2, axis=1, keepdims=True))
    axis = rotation / angle
    x, y, z = axis[:, 0], axis[:, 1], axis[:, 2]
    u, v, w = vector[:, 0], vector[:, 1], vector[:, 2]
    cross = np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=1)
    along = np.sum(axis * vector, axis=1, keepdims=True)
    cosine = np.cos(angle)
    return vector * cosine + cross * np.sin(angle) + axis * along * (1.0 - cosine)


def read_bundle(name: str) -> tuple[Any, ...]:
    """Read one of ADBench's files, whose one camera, point, weight and observation stand for all."""
    numbers = [float(text) for text in (DATA / name).read_text().split()]
    n, m = int(numbers[0]), int(numbers[1])
    camera, point, weight, feature = numbers[3:14], numbers[14:17], numbers[17], numbers[18:20]
    each = numpy.arange(OBSERVATIONS)
    return (
        numpy.tile(camera, (n, 1)),
        numpy.tile(point, (m, 1)),
        numpy.full(OBSERVATIONS, weight),
        each % n,
        each % m,
        numpy.tile(feature, (OBSERVATIONS, 1)),
    )


WORKLOADS = (
    Workload(
        "bundle-10000",
        "vision",
        bundle_adjustment,
        lambda rng: read_bundle("ba1_n49_m7776_p31843.txt"),
        argnums=(0, 1, 2),
    ),
)
