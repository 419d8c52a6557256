"""Data sets in the layout of the Hugging Face hub, from disk and, pretended, from the hub."""

import sys

import dataset_files
import numpy as np
import polars as pl
import pytest
from dataset_files import draw_images, encoded, write_parquet

from calibrant.core.errors import InputError
from calibrant.datasets import make


def small(part="train"):
    return {part: draw_images(6, 3, 5, 5, 3, 0)}


def test_class_names_come_from_the_note_in_the_file(root):
    dataset_files.hf(root)
    assert make(f"hf:root={root}").load("test").classes == ("cat", "dog", "fox")


def test_without_names_classes_are_numbers_and_training_counts_them(root):
    write_parquet(root, small() | {"test": draw_images(4, 2, 5, 5, 3, 1)}, "image", "label")
    test = make(f"hf:root={root}").load("test")
    assert test.classes == ("0", "1", "2")
    assert set(test.labels) == {0, 1}


def test_more_classes_than_in_training_are_refused(root):
    write_parquet(root, small() | {"test": draw_images(4, 4, 5, 5, 3, 1)}, "image", "label")
    with pytest.raises(InputError, match=r"labels in 0..2, got 3"):
        make(f"hf:root={root}").load("test")


def test_plain_bytes_and_grey_images(root):
    expected = write_parquet(root, {"train": draw_images(6, 3, 5, 7, 1, 0)}, "picture", "digit", plain=True)
    loaded = make(f"hf:root={root}").load("train")
    assert np.array_equal(loaded.images[np.arange(6)], expected["train"][0])
    assert loaded.images.shape == (6, 5, 7, 1)


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("train.parquet", "train"),
        ("validation-00000-of-00001.parquet", "val"),
        ("data/valid-00000-of-00001-abc123.parquet", "val"),
        ("default/test/0000.parquet", "test"),
        ("plain_text/train/0000.parquet", "train"),
        ("my_test.parquet", "test"),
    ],
)
def test_parts_are_told_by_names(root, file, part):
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    write_parquet(root, small(), "image", "label")
    next(root.glob("train-*")).rename(root / file)
    assert len(make(f"hf:root={root}").load(part)) == 6
    assert len(make(f"hf:root={root / file}").load(part)) == 6


def test_an_absent_part_says_which_are_there(root):
    dataset_files.hf(root)
    with pytest.raises(InputError, match=r"expected val\*\.parquet beside train, test in"):
        make(f"hf:root={root}").load("val")


def test_several_variants_need_a_choice(root):
    for name in ("small", "large"):
        (root / name / "train").mkdir(parents=True)
        write_parquet(root / name / "train", small(), "image", "label")
    with pytest.raises(InputError, match=r"files in large, small.*config=large"):
        make(f"hf:root={root}").load("train")
    assert len(make(f"hf:root={root},config=small").load("train")) == 6


def test_columns_are_found_by_their_types(root):
    write_parquet(root, small(), "img", "fine", coarse=1, name="x")
    with pytest.raises(InputError, match=r"one column of whole numbers, got coarse, fine.*label=NAME"):
        make(f"hf:root={root}").load("train")
    assert len(make(f"hf:root={root},label=fine").load("train")) == 6
    with pytest.raises(InputError, match="no column 'fin'"):
        make(f"hf:root={root},label=fin").load("train")
    with pytest.raises(InputError, match="other values in 'name'"):
        make(f"hf:root={root},label=name").load("train")
    with pytest.raises(InputError, match=r"one column of encoded images, got no column 'image'.*of img"):
        make(f"hf:root={root},label=fine,image=image").load("train")


def test_a_column_named_label_is_the_label(root):
    write_parquet(root, small(), "img", "label", other=1)
    assert len(make(f"hf:root={root}").load("train")) == 6


def test_no_images_at_all(root):
    pl.DataFrame({"label": [0, 1]}).write_parquet(root / "train.parquet")
    with pytest.raises(InputError, match="one column of encoded images, got none"):
        make(f"hf:root={root}").load("train")


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (
            [None, encoded(np.zeros((4, 4, 3), dtype=np.uint8))],
            [0, 1],
            "row 0: expected the bytes of an image, got none",
        ),
        ([b"x", b"y"], [0, 1], "row 0: expected an image \\(PNG, .*\\), got a damaged"),
        ([encoded(np.zeros((4, s, 3), dtype=np.uint8)) for s in (4, 5)], [0, 1], r"4 x 4 pixels, got 4 x 5.*size=4"),
        ([b"x", b"y"], [0, None], "a label in every row of column label, got 1 empty ones"),
        ([encoded(np.zeros((4, 4, 3), dtype=np.uint8))] * 2, [0, -1], "labels in 0..0, got -1"),
        ([], [], "at least one image"),
    ],
)
def test_wrong_rows(root, images, labels, message):
    columns = {"image": pl.Series(images, dtype=pl.Binary), "label": pl.Series(labels, dtype=pl.Int64)}
    pl.DataFrame(columns).write_parquet(root / "train.parquet")
    with pytest.raises(InputError, match=message):
        make(f"hf:root={root}").load("train")


@pytest.mark.parametrize("name", ["", "a b", "/no/such/folder", "one", "a/b/c"])
def test_what_is_neither_a_folder_nor_a_hub_name(name):
    with pytest.raises(InputError, match="owner/name on the hub"):
        make(f"hf:root={name}").load("train")


def test_the_hub_is_asked_for_parquet_files(root, monkeypatch):
    import huggingface_hub

    asked = []

    def pretended(name, **options):
        asked.append((name, options))
        return str(root)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", pretended)
    dataset_files.hf(root)
    assert len(make("hf:root=some-one/some.set,revision=abc").load("train")) == 24
    options = {"repo_type": "dataset", "allow_patterns": ["*.parquet"]}
    assert asked == [("some-one/some.set", {"revision": "abc", **options})]


def test_the_hub_converts_what_has_no_parquet_files(root, tmp_path, monkeypatch):
    import huggingface_hub

    dataset_files.hf(root)
    (tmp_path / "empty").mkdir()
    folders = {"main": tmp_path / "empty", "refs/convert/parquet": root}
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda _, revision, **options: str(folders[revision]))
    assert len(make("hf:root=some/set").load("train")) == 24


def test_no_network_is_an_error_to_act_on(monkeypatch):
    import huggingface_hub

    def fails(*_, **__):
        raise ConnectionError("the cable is out")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fails)
    with pytest.raises(InputError, match=r"no such folder, and no download \(the cable is out\)"):
        make("hf:root=some/set").load("train")


def test_without_the_hub_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"calibrant\[hub\]"):
        make("hf:root=some/set").load("train")
