"""One list of promises, run over every corruption in the catalogue."""

import inspect
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from real_data import FOLDER, needs_real_data

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.corruptions import Corruption, find, make, names
from calibrant.datasets import make as make_dataset

NAMES = names()
CIFAR10 = FOLDER / "cifar10-jpeg"
DRAW_NOTHING = {
    *(
        "brightness",
        "contrast",
        "defocus_blur",
        "gaussian_blur",
        "jpeg_compression",
        "pixelate",
        "saturate",
        "zoom_blur",
    )
}
NOT_BY_SIZE = {  # CIFAR-10-C's own severities: another kind of damage, or one that a difference of pixels does not see
    *("elastic_transform", "glass_blur", "saturate")
}
TASKS = [(28, 28, 1), (28, 28, 3), (32, 32, 3), (64, 64, 1), (20, 45, 3), (45, 20, 1), (8, 8, 1)]


def rng():
    return np.random.default_rng(7)


@cache
def fashion():
    return make_dataset("fashion_mini").load("test").images


def clothes(n, channels, height=32, width=32):
    """Photographs of clothes on a dark background, in false colours, stretched to any size."""
    images = fashion()[: n * channels]
    padded = np.pad(images[..., 0], ((0, 0), (2, 2), (2, 2)))
    rows, columns = np.arange(height) * 32 // height, np.arange(width) * 32 // width
    channelled = padded[:, rows][:, :, columns].reshape(n, channels, height, width)
    return np.ascontiguousarray(channelled.transpose(0, 2, 3, 1))


def change(spec, images):
    return np.abs(make(spec)(images, rng()).astype(float) - images).mean()


# -- what it says about itself --------------------------------------------------------------------


def test_the_nineteen_are_there():
    usual = """gaussian_noise shot_noise impulse_noise defocus_blur glass_blur motion_blur zoom_blur snow frost fog
    brightness contrast elastic_transform pixelate jpeg_compression"""
    extra = "speckle_noise gaussian_blur spatter saturate"
    assert {name for name in NAMES if find(name).usual} == set(usual.split())
    assert set(NAMES) >= {*usual.split(), *extra.split()}


def test_every_published_file_has_the_name_of_its_corruption():
    from calibrant.datasets.cifar10_c import CorruptionName

    assert set(CorruptionName.__args__) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    cls = find(name)
    assert cls.title
    assert cls.reference
    summary, caution, example = inspect.cleandoc(cls.__dict__["__doc__"]).split("\n\n", 2)
    assert summary.endswith(".")
    assert caution.startswith("CIFAR-10-C style")
    assert caution.endswith(".")
    assert example.startswith(">>>")
    assert isinstance(make(name), Corruption)
    assert spec_of(make(name)) == name
    assert spec_of(make(f"{name}:severity=5")) == f"{name}:severity=5"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("severity", ["0", "6", "-1", "3.5", "high", ""])
def test_there_are_five_severities(name, severity):
    with pytest.raises(InputError):
        make(f"{name}:severity={severity}")


# -- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", TASKS, ids=str)
def test_keeps_shape_and_type_and_its_input(name, shape):
    height, width, channels = shape
    images = clothes(4, channels, height, width)
    before = images.copy()
    for severity in (1, 5):
        corrupted = make(f"{name}:severity={severity}")(images, rng())
        assert corrupted.shape == images.shape
        assert corrupted.dtype == np.uint8
        assert np.array_equal(images, before)
        assert not np.shares_memory(corrupted, images)
        assert (corrupted != images).any() or (name == "saturate" and channels == 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides(name):
    images = clothes(6, 3)
    one, again = (make(name)(images, np.random.default_rng(1)) for _ in range(2))
    other = make(name)(images, np.random.default_rng(2))
    assert np.array_equal(one, again)
    assert np.array_equal(one, other) == (name in DRAW_NOTHING)


@pytest.mark.parametrize("name", sorted(set(NAMES) - DRAW_NOTHING))
def test_images_are_corrupted_one_by_one(name):
    """Two copies of an image do not get the same noise, flakes or direction."""
    twice = np.repeat(clothes(1, 3), 2, axis=0)
    corrupted = make(name)(twice, rng())
    assert not np.array_equal(corrupted[0], corrupted[1])


@pytest.mark.parametrize("name", sorted(DRAW_NOTHING))
def test_what_draws_nothing_sees_one_image_at_a_time(name):
    images = clothes(5, 3)
    together = make(name)(images, rng())
    single = np.concatenate([make(name)(images[i : i + 1], rng()) for i in range(5)])
    assert np.abs(together.astype(int) - single).max() <= 1


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_BY_SIZE))
@pytest.mark.parametrize("channels", [1, 3])
def test_damage_grows_with_severity(name, channels):
    changes = [change(f"{name}:severity={severity}", clothes(100, channels)) for severity in range(1, 6)]
    assert all(b >= 0.995 * a for a, b in pairwise(changes)), changes
    assert changes[4] > 1.15 * changes[0]


@pytest.mark.parametrize("name", sorted(NOT_BY_SIZE))
def test_the_others_do_damage_at_every_severity(name):
    assert min(change(f"{name}:severity={severity}", clothes(50, 3)) for severity in range(1, 6)) > 2


@needs_real_data("cifar10-jpeg")
def test_damage_grows_on_photographs(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path))
    photographs = make_dataset(f"cifar10:root={CIFAR10}").load("test").images[np.arange(100)]
    for name in sorted(set(NAMES) - NOT_BY_SIZE):
        changes = [change(f"{name}:severity={severity}", photographs) for severity in range(1, 6)]
        assert all(b >= 0.995 * a for a, b in pairwise(changes)), (name, changes)


@pytest.mark.parametrize("name", ["gaussian_blur", "defocus_blur", "motion_blur", "zoom_blur", "glass_blur"])
def test_a_blur_is_as_strong_on_larger_images(name):
    """The same images with twice the pixels lose about as much of their detail."""
    small = clothes(60, 1)
    large = small.repeat(2, axis=1).repeat(2, axis=2)
    assert change(f"{name}:severity=5", large) == pytest.approx(change(f"{name}:severity=5", small), rel=0.35)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [0, 255])
@pytest.mark.parametrize("channels", [1, 3])
def test_black_and_white_images_are_no_trouble(name, level, channels):
    images = np.full((2, 32, 32, channels), level, dtype=np.uint8)
    assert make(f"{name}:severity=5")(images, rng()).shape == images.shape


@pytest.mark.parametrize("name", NAMES)
def test_no_images_are_no_trouble(name):
    assert make(name)(np.zeros((0, 32, 32, 3), dtype=np.uint8), rng()).shape == (0, 32, 32, 3)


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 8, 8, 3)),
        np.zeros((8, 8, 3), dtype=np.uint8),
        np.zeros((2, 3, 8, 8), dtype=np.uint8),
        np.zeros((2, 0, 8, 3), dtype=np.uint8),
    ],
)
def test_other_arrays_are_refused(images):
    with pytest.raises(InputError, match=r"uint8 \(n, height, width, 1 or 3\)"):
        make("fog")(images, rng())


def test_many_images_are_done_in_pieces(monkeypatch):
    from calibrant.corruptions import _base

    images = clothes(20, 1)
    whole = make("contrast")(images, rng())
    monkeypatch.setattr(_base, "AT_ONCE", 3000)
    assert np.array_equal(make("contrast")(images, rng()), whole)


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"calibrant\[train\]"):
        make("jpeg_compression")(clothes(1, 1), rng())


def test_noise_has_the_published_spread():
    grey = np.full((4, 64, 64, 3), 128, dtype=np.uint8)
    for severity, spread in enumerate((0.04, 0.06, 0.08, 0.09, 0.10), start=1):
        noisy = make(f"gaussian_noise:severity={severity}")(grey, rng())
        assert noisy.std() / 255 == pytest.approx(spread, rel=0.03)


def test_pixelate_is_what_pillow_does():
    from PIL import Image

    images = clothes(20, 1)
    for severity, kept in enumerate((0.95, 0.9, 0.85, 0.75, 0.65), start=1):
        side = int(32 * kept)
        ours = make(f"pixelate:severity={severity}")(images, rng())
        for image, one in zip(images, ours, strict=True):
            theirs = Image.fromarray(image[..., 0]).resize((side, side), Image.Resampling.BOX)
            theirs = np.asarray(theirs.resize((32, 32), Image.Resampling.BOX)).astype(int)
            assert np.abs(theirs - one[..., 0]).max() <= 1


def test_brightness_and_saturation_are_those_of_hsv():
    from colorsys import hsv_to_rgb, rgb_to_hsv

    images = np.random.default_rng(0).integers(1, 256, (1, 6, 6, 3), dtype=np.uint8)
    bright = make("brightness:severity=5")(images, rng())
    vivid = make("saturate:severity=5")(images, rng())
    for pixel, ours, other in zip(*(a.reshape(-1, 3) for a in (images, bright, vivid)), strict=True):
        h, s, v = rgb_to_hsv(*(pixel / 255))
        assert ours / 255 == pytest.approx(hsv_to_rgb(h, s, min(v + 0.3, 1)), abs=0.003)
        assert other / 255 == pytest.approx(hsv_to_rgb(h, min(2.5 * s + 0.2, 1), v), abs=0.003)
