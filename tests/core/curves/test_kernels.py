"""Fast kernel sums against the sums written out."""

import numpy as np
import pytest

from calibrant.core.curves.kernels import cosine_sums, gauss_sums, heat

POINTS = {
    "spread": np.random.default_rng(0).random(200),
    "piled at one": 1 - 1e-3 * np.random.default_rng(1).random(200) ** 3,
    "ends": np.array([0.0, 0.0, 1.0, 1.0, 0.5]),
    "all equal": np.full(50, 1 / 3),
    "on cell borders": np.arange(11) / 10,
    "one": np.array([0.25]),
}


@pytest.fixture(params=POINTS)
def points(request):
    return POINTS[request.param]


def signed_weights(n, rows):
    return np.random.default_rng(2).normal(size=(rows, n))


@pytest.mark.parametrize("h", [1e-4, 1e-3, 0.01, 0.03, 0.1, 0.7, 1.0, 5.0])
def test_gauss_sums_are_the_sums(points, h):
    """The error is at most 1e-12 of the total weight within reach."""
    weights = signed_weights(len(points), 2)
    distance = np.abs(points[:, None] - points[None, :]) / h
    kernel = np.exp(-0.5 * distance**2)
    allowed = 1e-12 * np.abs(weights) @ (distance < 10)
    assert (np.abs(gauss_sums(points, weights, h) - weights @ kernel) <= allowed).all()


def test_gauss_sums_of_ones_count_the_point_itself(points):
    assert (gauss_sums(points, np.ones((1, len(points))), 0.01) >= 1 - 1e-12).all()


@pytest.mark.parametrize("modes", [1, 2, 16, 256, 2750])
def test_cosine_sums_are_the_sums(points, modes):
    weights = signed_weights(len(points), 1)[0]
    direct = np.array([weights @ np.cos(np.pi * m * points) for m in range(modes)])
    assert cosine_sums(points, weights, modes) == pytest.approx(direct, abs=1e-12 * np.abs(weights).sum())


@pytest.mark.parametrize("sigma", [0.011, 0.05, 0.2, 1.0])
def test_heat_is_the_sum_of_reflected_gaussians(points, sigma):
    weights = signed_weights(len(points), 1)[0]
    t = (np.arange(512) + 0.5) / 512
    field = np.zeros(512)
    for w, x in zip(weights, points, strict=True):
        for around in range(-6, 7):
            for image in (2 * around + x, 2 * around - x):
                field += w * np.exp(-0.5 * ((t - image) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    smoothed = heat(cosine_sums(points, weights, 256), sigma, 512)
    assert smoothed == pytest.approx(field, abs=1e-10 * np.abs(weights).sum() / sigma)


def test_heat_keeps_the_mass(points):
    weights = signed_weights(len(points), 1)[0]
    for sigma in (0.011, 0.1, 1.0):
        smoothed = heat(cosine_sums(points, weights, 256), sigma, 4096)
        assert smoothed.mean() == pytest.approx(weights.sum(), abs=1e-12 * np.abs(weights).sum())
