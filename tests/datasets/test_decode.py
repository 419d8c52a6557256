"""From the bytes of an image file to pixels."""

import io
import os
import sys

import numpy as np
import pytest
from dataset_files import encoded, photograph

pytest.importorskip("PIL")
from PIL import Image

from calibrant.core.errors import InputError
from calibrant.datasets._decode import Picture, decode, decode_many, picture_of
from calibrant.datasets._folders import listing


def of(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return "an image", stream.getvalue


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"])
def test_every_mode_becomes_grey_or_rgb(mode, channels):
    picture = Picture(6, 5, channels)
    image = Image.new(mode, (5, 6))
    pixels = decode(of(image, "TIFF" if mode == "CMYK" else "PNG"), picture)
    assert pixels.shape == (6, 5, channels)
    assert pixels.dtype == np.uint8


def test_sixteen_bits_are_scaled_not_clipped():
    image = Image.fromarray(np.array([[0, 257, 65535]], dtype=np.uint16))
    assert decode(of(image), Picture(1, 3, 1))[0, :, 0].tolist() == [0, 1, 255]


def test_a_palette_with_transparency_is_no_trouble():
    image = Image.new("P", (4, 4))
    image.putpalette([10, 20, 30] * 256)
    pixels = decode(of(image, transparency=b"\x00" * 4), Picture(4, 4, 3))
    assert pixels[0, 0].tolist() == [10, 20, 30]


def test_an_image_of_the_right_size_is_left_alone():
    image = photograph(7, 7)
    for fit in ("exact", "crop", "squash"):
        assert np.array_equal(decode(("x", lambda: encoded(image)), Picture(7, 7, 3, fit)), image)


@pytest.mark.parametrize(("height", "width"), [(40, 80), (80, 40), (33, 37), (5, 50), (300, 301)])
def test_a_crop_is_the_centre_of_the_image(height, width):
    """A ramp along the longer side: its middle value stays in the middle."""
    ramp = np.linspace(0, 255, max(height, width)).astype(np.uint8)
    image = np.broadcast_to(ramp if width > height else ramp[:, None], (height, width))[..., None].repeat(3, axis=2)
    pixels = decode(("x", lambda: encoded(image)), Picture(32, 32, 3, "crop", 8 / 7)).astype(float)
    along = pixels.mean(axis=(0, 2) if width > height else (1, 2))
    assert along.mean() == pytest.approx(127.5, abs=255 / 32)
    share = 32 / (32 * 8 / 7 * max(height, width) / min(height, width))
    assert along[-1] - along[0] == pytest.approx(255 * share, abs=255 / 16)


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n", encoded(photograph(30, 30), "JPEG")[:400]])
def test_a_damaged_image_is_named(content):
    with pytest.raises(InputError, match=r"cat.jpg: expected an image.*, got a damaged"):
        decode(("cat.jpg", lambda: content), Picture(30, 30, 3))


def test_a_file_that_vanished_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone.png"):
        decode(("gone.png", (tmp_path / "gone.png").read_bytes), Picture(3, 3, 3))


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"


def test_an_eps_file_is_refused_before_ghostscript_runs(monkeypatch):
    """Pillow decodes EPS by a program that interprets PostScript."""
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("Ghostscript was started"))
    for read in (lambda image: decode(image, Picture(10, 10, 3)), lambda image: picture_of([image], 0, "auto", "crop")):
        with pytest.raises(InputError, match=r"cat.png: expected an image \(PNG, .*\), got a damaged file or another"):
            read(("cat.png", lambda: EPS))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "BMP", "TIFF", "GIF"])
def test_the_six_formats_are_decoded(form):
    assert decode(of(Image.new("RGB", (4, 3)), form), Picture(3, 4, 3)).shape == (3, 4, 3)


def test_a_decompression_bomb_is_refused_with_its_limit(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    bomb = of(Image.new("L", (30, 30)))
    for read in (lambda: decode(bomb, Picture(30, 30, 1)), lambda: picture_of([bomb], 0, "auto", "crop")):
        with pytest.raises(InputError, match="expected an image of at most 20 pixels, got a larger one"):
            read()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_among_the_images_does_not_hang(tmp_path):
    (tmp_path / "cat").mkdir()
    os.mkfifo(tmp_path / "cat" / "a.png")
    with pytest.raises(InputError, match=r"a.png: expected a regular file, got a pipe or device"):
        decode_many(listing(tmp_path, ["cat"]).read_encoded(), Picture(3, 3, 3))


def test_many_keep_their_order():
    images = [np.full((4, 4, 3), i, dtype=np.uint8) for i in range(40)]
    pixels = decode_many([("x", lambda i=i: encoded(i)) for i in images], Picture(4, 4, 3))
    assert pixels[:, 0, 0, 0].tolist() == list(range(40))


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
