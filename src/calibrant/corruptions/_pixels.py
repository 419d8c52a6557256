"""Moving, blurring and stretching pixels, for many images at once."""

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter
from scipy.signal import fftconvolve

from calibrant.corruptions._base import Pixels, floats

Coordinates = npt.NDArray[np.float32]


def gaussian(x: Pixels, sigma: float) -> Pixels:
    """Images (n, h, w, ...) under a Gaussian blur; edges are continued."""
    sigmas = (0.0, sigma, sigma, *(0.0 for _ in x.shape[3:]))
    return floats(gaussian_filter(x, sigmas, mode="nearest"))


def convolve(x: Pixels, kernel: Pixels) -> Pixels:
    """Images (n, h, w, c) with every pixel spread like the kernel (odd, odd); edges are mirrored."""
    up, left = (size // 2 for size in kernel.shape)
    padded = np.pad(x, ((0, 0), (up, up), (left, left), (0, 0)), mode="reflect")
    return floats(fftconvolve(padded, kernel[None, :, :, None], mode="valid", axes=(1, 2)))


def stretch(x: Pixels, rows: Pixels, columns: Pixels) -> Pixels:
    """Images (n, h, w, c) with their rows and columns mixed: matrices (new h, h) and (new w, w)."""
    return floats(np.einsum("ah,nhwc,bw->nabc", rows, x, columns, optimize=True))


def between(positions: npt.ArrayLike, size: int) -> Pixels:
    """The matrix that reads a line of `size` values at these positions, by linear interpolation."""
    where = np.clip(np.asarray(positions, dtype=float), 0, size - 1)
    left = np.minimum(where.astype(int), max(size - 2, 0))
    matrix = np.zeros((len(where), size), dtype=np.float32)
    rows = np.arange(len(where))
    np.add.at(matrix, (rows, left), 1 - (where - left))
    np.add.at(matrix, (rows, np.minimum(left + 1, size - 1)), where - left)
    return matrix


def zooms(x: Pixels, factor: float) -> tuple[Pixels, Pixels]:
    """The matrices, of rows and of columns, that enlarge the centre of the images to their size."""
    height, width = x.shape[1:3]
    rows, columns = ((np.arange(size) - (size - 1) / 2) / factor + (size - 1) / 2 for size in (height, width))
    return between(rows, height), between(columns, width)


def streak(x: Pixels, radius: float, sigma: float, angles: npt.NDArray[np.float64]) -> Pixels:
    """Images (n, h, w, c) moved while they were taken: each in the direction of its angle, in degrees."""
    n, height, width = x.shape[:3]
    steps = np.arange(2 * round(radius) + 1)
    weights = np.exp(-0.5 * (steps / sigma) ** 2)
    weights /= weights.sum()
    image_numbers = np.arange(n)[:, None, None]
    y, x_ = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
    down, right = np.sin(np.radians(angles))[:, None, None], np.cos(np.radians(angles))[:, None, None]
    blurred = np.zeros_like(x)
    for step, weight in zip(steps, floats(weights), strict=True):
        rows = np.clip(y + np.rint(step * down).astype(int), 0, height - 1)
        columns = np.clip(x_ + np.rint(step * right).astype(int), 0, width - 1)
        blurred += weight * x[image_numbers, rows, columns]
    return blurred


def sample(x: Pixels, rows: Coordinates, columns: Coordinates) -> Pixels:
    """Images (n, h, w, c) read at other places, (n, h, w) each, by linear interpolation; edges are mirrored."""
    n, height, width = x.shape[:3]
    y, x_ = _mirror(rows, height), _mirror(columns, width)
    top, left = np.floor(y).astype(int), np.floor(x_).astype(int)
    low, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    dy, dx = (y - top)[..., None], (x_ - left)[..., None]
    image_numbers = np.arange(n)[:, None, None]
    above = x[image_numbers, top, left] * (1 - dx) + x[image_numbers, top, right] * dx
    below = x[image_numbers, low, left] * (1 - dx) + x[image_numbers, low, right] * dx
    return floats(above * (1 - dy) + below * dy)


def plasma(shape: tuple[int, int, int], decay: float, rng: np.random.Generator) -> Pixels:
    """Clouds from 0 to 1, (n, h, w): noise on finer and finer grids, each `decay` times weaker than the one before."""
    n, height, width = shape
    clouds = np.zeros(shape, dtype=np.float32)
    cells, strength = 1, 1.0
    while cells <= max(height, width):
        grid = floats(rng.uniform(-strength, strength, (n, cells + 1, cells + 1)))
        rows, columns = (between(np.linspace(0, cells, size), cells + 1) for size in (height, width))
        clouds += stretch(grid[..., None], rows, columns)[..., 0]
        cells, strength = 2 * cells, strength / decay
    clouds -= clouds.min(axis=(1, 2), keepdims=True)
    return floats(clouds / np.maximum(clouds.max(axis=(1, 2), keepdims=True), 1e-6))


def grey(x: Pixels) -> Pixels:
    """The lightness of images, (n, h, w, 1)."""
    weights = floats([0.299, 0.587, 0.114]) if x.shape[3] == 3 else floats([1.0])
    return floats(x @ weights)[..., None]


def _mirror(positions: Coordinates, size: int) -> Coordinates:
    folded = np.abs((positions + 0.5) % (2 * size))
    return floats(np.clip(np.where(folded > size, 2 * size - folded, folded) - 0.5, 0, size - 1))
