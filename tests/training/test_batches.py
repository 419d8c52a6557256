"""Batches: every image once an epoch, the same for the same seed, and augmentations that do what they say."""

import math

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from calibrant.datasets import Part, make
from calibrant.training.batches import (
    TRIES,
    Batches,
    Pixels,
    random_crop,
    random_flip,
    random_resized_crop,
    random_windows,
)
from calibrant.training.recipe import Data

PLAIN = Data(augment="none")


def part(n=10, size=6, channels=1):
    images = np.random.default_rng(0).integers(0, 256, (n, size, size, channels)).astype(np.uint8)
    return Part(images, np.arange(n) % 2, ("a", "b"))


def pixels(**options):
    return Pixels((0.5,), (0.25,), torch.device("cpu"), **options)


def test_pixels_are_normalised_channels_first():
    images = torch.tensor([[[[0, 255, 51]]]], dtype=torch.uint8)  # one pixel
    x = Pixels((0.0, 0.5, 0.2), (1.0, 0.5, 0.1), torch.device("cpu"))(images)
    assert x.shape == (1, 3, 1, 1)
    assert x.flatten().tolist() == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)
    grey = pixels(channels_last=True)(torch.zeros(2, 4, 4, 3, dtype=torch.uint8))
    assert grey.is_contiguous(memory_format=torch.channels_last)


def test_an_epoch_shows_every_image_once():
    batches = Batches(part=part(), size=4, pixels=pixels(), seed=3)
    seen = [ids for _, _, ids in batches.shuffle(0, PLAIN)]
    assert [len(ids) for ids in seen] == [4, 4, 2]
    assert sorted(torch.cat(seen).tolist()) == list(range(10))
    assert batches.steps() == 3
    again, other = ([i.tolist() for _, _, i in batches.shuffle(e, PLAIN)] for e in (0, 1))
    assert again == [ids.tolist() for ids in seen]
    assert other != again


def test_labels_and_images_belong_to_the_rows():
    p = part()
    for x, labels, ids in Batches(part=p, size=4, pixels=pixels()).shuffle(0, PLAIN):
        torch.testing.assert_close(x, pixels()(torch.from_numpy(p.images[ids.numpy()])))
        assert labels.tolist() == p.labels[ids.numpy()].tolist()


def test_any_step_can_be_made_again():
    batches = Batches(part=part(20, 8, 3), size=4, pixels=pixels(), seed=1)
    whole = list(batches.shuffle(2, Data()))
    rest = list(batches.shuffle(2, Data(), start=3))
    assert len(rest) == 2
    for a, b in zip(whole[3:], rest, strict=True):
        for one, two in zip(a, b, strict=True):
            assert torch.equal(one, two)


def test_a_last_batch_of_one_is_left_out():
    assert Batches(part=part(9), size=4, pixels=pixels()).steps() == 2
    assert len(list(Batches(part=part(9), size=4, pixels=pixels()).shuffle(0, PLAIN))) == 2


def test_processes_share_every_batch():
    ids = [
        [i.tolist() for *_, i in Batches(part=part(11), size=4, pixels=pixels(), rank=r, processes=2).shuffle(0, PLAIN)]
        for r in (0, 1)
    ]
    assert [len(a) for a in ids[0]] == [len(a) for a in ids[1]] == [2, 2]  # 3 left over: fewer than two for each
    assert not {i for a in ids[0] for i in a} & {i for a in ids[1] for i in a}


def test_in_order_yields_every_row_once():
    ids = torch.cat([i for *_, i in Batches(part=part(9), size=4, pixels=pixels()).in_order()])
    assert ids.tolist() == list(range(9))


def test_an_error_while_reading_is_raised_here():
    class Broken:
        shape = (10, 6, 6, 1)

        def __getitem__(self, rows):
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(Batches(part=Part(Broken(), np.zeros(10, dtype=np.int64), ("a",)), size=4, pixels=pixels()).in_order())


def test_random_crop_moves_by_at_most_the_padding():
    images = torch.zeros(200, 5, 5, 1, dtype=torch.uint8)
    images[:, 2, 2] = 255
    cut = random_crop(images, 2, torch.Generator().manual_seed(0))
    assert cut.shape == images.shape
    places = cut[..., 0].flatten(1).argmax(1)
    assert cut.flatten(1).amax(1).eq(255).all()  # the middle never leaves
    assert len(places.unique()) == 25  # every move occurs


def test_random_flip_flips_half():
    images = torch.arange(3, dtype=torch.uint8).view(1, 1, 3, 1).repeat(400, 1, 1, 1)
    flipped = random_flip(images, torch.Generator().manual_seed(0))[:, 0, 0, 0] == 2
    assert 150 < int(flipped.sum()) < 250


def slow_window(draws, height, width):
    """The usual random resized crop, spelled out."""
    for share, shape, down, right in draws:
        target = height * width * (0.08 + share * (1 - 0.08))
        ratio = math.exp(math.log(3 / 4) + shape * (math.log(4 / 3) - math.log(3 / 4)))
        w, h = round(math.sqrt(target * ratio)), round(math.sqrt(target / ratio))
        if 0 < w <= width and 0 < h <= height:
            return math.floor(down * (height - h + 1)), math.floor(right * (width - w + 1)), h, w
    if width / height < 3 / 4:
        w, h = width, round(width / (3 / 4))
    elif width / height > 4 / 3:
        w, h = round(height * (4 / 3)), height
    else:
        w, h = width, height
    return (height - h) // 2, (width - w) // 2, h, w


@pytest.mark.parametrize(
    ("height", "width"), [(224, 224), (300, 500), (500, 300), (50, 900), (900, 50), (1, 1), (3, 2)]
)
def test_windows_are_those_of_the_usual_random_resized_crop(height, width):
    draws = torch.rand(500, TRIES, 4, generator=torch.Generator().manual_seed(5)).tolist()
    windows = random_windows(500, torch.Generator().manual_seed(5))
    assert [w(height, width) for w in windows] == [slow_window(d, height, width) for d in draws]


def test_windows_of_a_square_image_are_redrawn_and_not_squeezed():
    values = np.array([w(224, 224) for w in random_windows(20_000, torch.Generator().manual_seed(0))])
    top, left, tall, wide = values.T
    assert (top + tall).max() <= 224
    assert (left + wide).max() <= 224
    ratios = wide / tall
    assert 0.73 < ratios.min() < ratios.max() < 1.36
    share = ((tall == 224) | (wide == 224)).mean()
    assert share < 0.02  # clamping the sides to the image made 14 % of them touch both borders


def test_a_training_cuts_windows_out_of_the_original(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for part in ("train", "val"):
        for wnid in ("n1", "n2"):
            (tmp_path / part / wnid).mkdir(parents=True)
            pixels_of = np.zeros((40, 160, 3), dtype=np.uint8)
            pixels_of[:, :40, 0] = pixels_of[:, 120:, 1] = 255  # red left and green right of the centre
            image.fromarray(pixels_of).save(tmp_path / part / wnid / "a.png")
    data = make(f"imagenet:root={tmp_path},size=32,complete=false").load("train").take(np.array([1, 0]))
    batches = Batches(part=data, size=2, pixels=Pixels((0.0,), (1.0,), torch.device("cpu")), seed=1)
    plain, resized = (
        torch.cat([x for epoch in range(30) for x, _, _ in batches.shuffle(epoch, Data(augment=augment))])
        for augment in ("none", "resized")
    )
    assert plain.amax() == 0  # the centre is black
    assert (resized.amax((0, 2, 3))[:2] > 0.9).all()
    assert resized.shape == (60, 3, 32, 32)
    again = torch.cat([x for x, _, _ in batches.shuffle(7, Data(augment="resized"))])
    assert torch.equal(again, resized[14:16])


def test_random_resized_crop_keeps_a_flat_image_flat_and_its_range():
    flat = torch.full((8, 16, 16, 3), 77, dtype=torch.uint8)
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(random_resized_crop(flat, generator), flat)
    ramp = torch.arange(16, dtype=torch.uint8).view(1, 1, 16, 1).repeat(64, 16, 1, 1)
    cut = random_resized_crop(ramp, generator)
    assert cut.dtype == torch.uint8
    assert cut.shape == ramp.shape
    assert (cut[:, 0, -1] >= cut[:, 0, 0]).all()
    assert (cut[:, :, -1, 0].float() - cut[:, :, 0, 0].float()).mean() < 12  # cuts are smaller than the whole


def test_a_crop_needs_no_memory_for_its_padding():
    """512 black pixels around 2,000 images of 8 x 8 would be 6 GB."""
    images = torch.randint(0, 256, (2000, 8, 8, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    cut = random_crop(images, 512, torch.Generator().manual_seed(1))
    assert cut.shape == images.shape
    padded = torch.nn.functional.pad(images[:5], (0, 0, 3, 3, 3, 3))
    for image, window in zip(padded, random_crop(images[:5], 3, torch.Generator().manual_seed(2)), strict=True):
        places = [(r, c) for r in range(7) for c in range(7) if torch.equal(image[r : r + 8, c : c + 8], window)]
        assert len(places) == 1
