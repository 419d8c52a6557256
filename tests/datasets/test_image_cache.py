"""Images are decoded once; what is cached is whole, or made again."""

import os
import subprocess
import sys

import dataset_files
import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.datasets import _decoded_images, _image_cache, make, progress_to


@pytest.fixture
def stored(root):
    """A data set of Parquet files, and what its training part holds."""
    images, labels = dataset_files.draw_images(600, 3, 8, 8, 3, 0)
    dataset_files.write_parquet(root, {"train": (images, labels)}, "image", "label")
    return make(f"hf:root={root}"), images


def images_in(dataset):
    loaded = dataset.load("train")
    return loaded.images[np.arange(len(loaded))]


def never(*_):
    raise AssertionError("decoded again")


def test_the_second_load_decodes_nothing(stored, cache, monkeypatch):
    dataset, images = stored
    assert np.array_equal(images_in(dataset), images)
    assert [file.suffix for file in cache.iterdir()] == [".npy"]
    monkeypatch.setattr(_decoded_images, "decode_many", never)
    assert np.array_equal(images_in(dataset), images)
    assert isinstance(dataset.load("train").images, np.memmap)


@pytest.mark.parametrize("damage", ["half", "empty", "noise", "longer", "other rows", "other type", "pickle"])
def test_a_damaged_cache_is_made_again(stored, cache, damage):
    dataset, images = stored
    images_in(dataset)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    if damage in ("half", "empty", "noise", "longer"):
        noise = np.random.default_rng(0).bytes(100)
        changed = {"half": whole[: len(whole) // 2], "empty": b"", "noise": noise, "longer": whole + b"x"}[damage]
        file.write_bytes(changed)
    else:
        other = {"other rows": images[:5], "other type": images.astype(int), "pickle": np.array([None])}[damage]
        np.save(file, other)
    assert np.array_equal(images_in(dataset), images)
    assert file.read_bytes() == whole


def test_changed_files_are_decoded_again(stored, root, cache):
    dataset, images = stored
    images_in(dataset)
    dataset_files.write_parquet(root, {"train": (255 - images, np.arange(600) % 3)}, "image", "label")
    (file,) = root.iterdir()
    os.utime(file, ns=(1, 1))
    assert np.array_equal(images_in(dataset), 255 - images)
    assert len(list(cache.iterdir())) == 2


def test_other_options_have_a_cache_of_their_own(stored, root, cache):
    dataset, _ = stored
    assert dataset.load("train").images.shape == (600, 8, 8, 3)
    assert make(f"hf:root={root},size=4").load("train").images.shape == (600, 4, 4, 3)
    assert make(f"hf:root={root},size=4,fit=squash").load("train").images.shape == (600, 4, 4, 3)
    assert make(f"hf:root={root},colour=grey").load("train").images.shape == (600, 8, 8, 1)
    assert len(list(cache.iterdir())) == 4


def test_progress_is_told_while_decoding(stored):
    counts = []
    with progress_to(lambda done, total: counts.append((done, total))):
        images_in(stored[0])
        images_in(stored[0])
    assert counts == [(256, 600), (512, 600), (600, 600)]


def test_an_image_that_cannot_be_decoded_leaves_nothing_behind(root, cache):
    dataset_files.folder(root)
    (root / "test" / "c" / "zzz.png").write_bytes(b"no image")
    with pytest.raises(InputError, match=r"zzz.png: expected an image"):
        make(f"folder:root={root}").load("test")
    assert list(cache.iterdir()) == []


def test_no_space_is_said_before_anything_is_written(stored, cache, monkeypatch):
    monkeypatch.setattr(_image_cache.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(InputError, match=r"space for decoded images, got 0 MB free.*CALIBRANT_CACHE"):
        images_in(stored[0])
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_a_folder(stored, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set CALIBRANT_CACHE to another folder"):
        images_in(stored[0])


def test_processes_may_decode_at_the_same_time(stored, root, cache):
    _, images = stored
    program = (
        "import numpy as np; from calibrant.datasets import make;"
        f"p = make('hf:root={root}').load('train'); print(int(p.images[np.arange(600)].sum()))"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(3)]
    counts = [int(process.communicate(timeout=60)[0]) for process in running]
    assert counts == [int(images.sum())] * 3
    (file,) = cache.iterdir()
    assert np.array_equal(np.load(file), images)
