"""From the bytes of an image file to pixels."""

import io
import sys

import numpy as np
import pytest
from dataset_files import encoded, photograph

pytest.importorskip("PIL")
from PIL import Image

from calibrant.core.errors import InputError
from calibrant.datasets._decode import Picture, decode, decode_many, picture_of


def of(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return "an image", stream.getvalue


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_every_mode_becomes_grey_or_rgb(mode, channels):
    picture = Picture(6, 5, channels)
    image = Image.new(mode, (5, 6))
    made = decode(of(image, "TIFF" if mode == "CMYK" else "PNG"), picture)
    assert made.shape == (6, 5, channels)
    assert made.dtype == np.uint8


def test_sixteen_bits_are_scaled_not_clipped():
    image = Image.fromarray(np.array([[0, 257, 65535]], dtype=np.uint16))
    assert decode(of(image), Picture(1, 3, 1))[0, :, 0].tolist() == [0, 1, 255]


def test_a_palette_with_transparency_is_no_trouble():
    image = Image.new("P", (4, 4))
    image.putpalette([10, 20, 30] * 256)
    made = decode(of(image, transparency=b"\x00" * 4), Picture(4, 4, 3))
    assert made[0, 0].tolist() == [10, 20, 30]


def test_an_image_of_the_right_size_is_left_alone():
    image = photograph(7, 7)
    for fit in ("exact", "crop", "squash"):
        assert np.array_equal(decode(("x", lambda: encoded(image)), Picture(7, 7, 3, fit)), image)


@pytest.mark.parametrize(("height", "width"), [(40, 80), (80, 40), (33, 37), (5, 50), (300, 301)])
def test_a_crop_is_the_centre_of_the_image(height, width):
    """A ramp along the longer side: its middle value stays in the middle."""
    ramp = np.linspace(0, 255, max(height, width)).astype(np.uint8)
    image = np.broadcast_to(ramp if width > height else ramp[:, None], (height, width))[..., None].repeat(3, axis=2)
    made = decode(("x", lambda: encoded(image)), Picture(32, 32, 3, "crop", 8 / 7)).astype(float)
    along = made.mean(axis=(0, 2) if width > height else (1, 2))
    assert along.mean() == pytest.approx(127.5, abs=255 / 32)
    share = 32 / (32 * 8 / 7 * max(height, width) / min(height, width))
    assert along[-1] - along[0] == pytest.approx(255 * share, abs=255 / 16)


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", encoded(photograph(30, 30), "JPEG")[:400]])
def test_a_damaged_image_is_named(content):
    with pytest.raises(InputError, match=r"cat.jpg: expected an image, got a damaged one"):
        decode(("cat.jpg", lambda: content), Picture(30, 30, 3))


def test_a_file_that_vanished_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone.png"):
        decode(("gone.png", (tmp_path / "gone.png").read_bytes), Picture(3, 3, 3))


def test_many_keep_their_order():
    images = [np.full((4, 4, 3), i, dtype=np.uint8) for i in range(40)]
    made = decode_many([("x", lambda i=i: encoded(i)) for i in images], Picture(4, 4, 3))
    assert made[:, 0, 0, 0].tolist() == list(range(40))


def test_colour_anywhere_makes_a_set_rgb():
    grey, colour = (("x", lambda c=c: encoded(photograph(4, 6, c))) for c in (1, 3))
    assert picture_of([grey] * 5, 0, "auto", "crop") == Picture(4, 6, 1)
    assert picture_of([*[grey] * 5, colour], 0, "auto", "crop") == Picture(4, 6, 3)
    assert picture_of([grey], 0, "rgb", "crop") == Picture(4, 6, 3)
    assert picture_of([colour], 8, "grey", "squash") == Picture(8, 8, 1, "squash")


def test_without_pillow(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(InputError, match=r"calibrant\[train\]"):
        decode(("x", lambda: b""), Picture(3, 3, 3))
