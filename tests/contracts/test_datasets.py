"""One list of promises, run over every data set in the catalogue, on small files in the published formats."""

import dataclasses
from typing import Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from dataset_files import EMBEDDED, WRITERS, write
from entry_docstrings import check_docstring

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.datasets import Dataset, find, make, names

NAMES = names()
ON_DISK = [name for name in NAMES if name not in EMBEDDED]
WRITTEN = list(WRITERS)  # those of which dataset_files.py has a small copy
OWN = ("folder", "hf")  # a user's own: there is no usual place, no published size
SHIFTED = {"cifar10_1": "cifar10", "cifar10_2": "cifar10", "cifar10_c": "cifar10", "imagenet_v2": "imagenet"}


@pytest.fixture(autouse=True)
def nothing_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)


def small(name, root):
    """The set in `root`, whatever its size."""
    options = [f"root={root}"] if name not in EMBEDDED else []
    if "complete" in {field.name for field in dataclasses.fields(find(name))}:
        options.append("complete=false")
    return make(f"{name}:{','.join(options)}" if options else name)


@pytest.fixture(params=[*EMBEDDED, *WRITTEN])
def some_set(request, tmp_path):
    """Each data set with files, and what they hold."""
    name, root = request.param, tmp_path / "files"
    expected = write(name, root) if name in WRITERS else {}
    return name, small(name, root), expected


# -- what it says about itself --------------------------------------------------------------------


def test_every_set_of_the_issue_is_there_and_has_files_to_test():
    asked = """fashion_mini fashion_mnist digits cifar10 cifar100 tiny_imagenet imagenet imagenet16_120 bloodmnist
    medmnist svhn cifar10_1 cifar10_2 imagenet_v2 cifar10_c hf folder"""
    assert set(asked.split()) <= {*EMBEDDED, *WRITTEN}


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    cls = find(name)
    assert cls.title
    assert cls.reference
    assert name in OWN or (cls.source.startswith("http") and cls.licence)
    assert set(cls.parts) <= {"train", "val", "test"}
    assert "test" in cls.parts
    assert len(cls.mean) == len(cls.std) in (1, 3)
    assert all(0 < value < 1 for value in (*cls.mean, *cls.std))


def test_titles_are_unique():
    titles = [find(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("name", "original"), SHIFTED.items())
def test_a_shifted_set_is_a_test_set_with_the_normalisation_of_its_original(name, original):
    assert find(name).parts == ("test",)
    assert (find(name).mean, find(name).std) == (find(original).mean, find(original).std)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_a_summary_and_a_caution(name):
    check_docstring(find(name), example=False)


@pytest.mark.parametrize("name", NAMES)
def test_is_a_frozen_dataclass_whose_default_spec_is_its_name(name):
    recipe = make(name)
    assert isinstance(recipe, Dataset)
    assert recipe == find(name)()
    assert hash(recipe) == hash(find(name)())
    assert spec_of(recipe) == name
    for field in dataclasses.fields(recipe):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(recipe, field.name, 1)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_options_are_refused(name):
    with pytest.raises(InputError, match="did you mean 'root'"):
        make(f"{name}:rot=1")
    hints = get_type_hints(find(name))
    for field in dataclasses.fields(find(name)):
        if hints[field.name] is str:
            continue
        wrong = ["abc", ""] + (
            ["-1", "999999" if field.name == "severity" else "-7"] if hints[field.name] is int else []
        )
        for text in wrong:
            with pytest.raises(InputError):
                make(f"{name}:{field.name}={text}")
        if get_origin(hints[field.name]) is Literal:
            for word in get_args(hints[field.name]):
                assert getattr(make(f"{name}:{field.name}={word}"), field.name) == word


def test_other_spellings_of_names():
    assert make("cifar-10.1") == make("cifar10.1") == make("cifar10_1")
    assert make("CIFAR-10-C:severity=5") == make("cifar10_c:severity=5")
    assert make("tiny-imagenet") == make("tiny_imagenet")


# -- what it reads --------------------------------------------------------------------------------


def test_reads_what_was_written(some_set):
    _, dataset, expected = some_set
    for part in expected or dataset.parts:
        loaded = dataset.load(part)
        n = len(loaded)
        everything = loaded.images[np.arange(n)]
        assert everything.dtype == np.uint8
        assert everything.shape == loaded.images.shape
        assert len(everything) == n
        assert everything.shape[3] in (1, 3)
        assert len(dataset.mean) in (1, everything.shape[3])
        assert loaded.labels.dtype == loaded.ids.dtype == np.int64
        assert len(set(loaded.ids.tolist())) == n
        assert len(set(loaded.classes)) == len(loaded.classes)
        if part in expected:
            images, labels = expected[part]
            assert np.array_equal(loaded.labels, labels)
            assert images is None or np.array_equal(everything, images)
        some = np.array([n - 1, 0, 1])
        assert np.array_equal(loaded.images[some], everything[some])
        subset = loaded.take(some).take(np.array([1, 0]))
        assert np.array_equal(subset.images[np.array([1])], everything[[n - 1]])
        assert np.array_equal(subset.ids, loaded.ids[[0, n - 1]])
        assert np.array_equal(subset.labels, loaded.labels[[0, n - 1]])


def test_a_second_load_is_the_same(some_set):
    _, dataset, expected = some_set
    for part in expected or dataset.parts:
        first, second = dataset.load(part), dataset.load(part)
        rows = np.arange(len(first))
        assert np.array_equal(first.images[rows], second.images[rows])
        assert np.array_equal(first.labels, second.labels)
        assert first.classes == second.classes


def test_all_parts_have_the_same_classes_and_shape(some_set):
    _, dataset, expected = some_set
    loaded = [dataset.load(part) for part in expected or dataset.parts]
    assert len({part.classes for part in loaded}) == 1
    assert len({part.images.shape[1:] for part in loaded}) == 1


def test_an_unknown_part_is_refused(some_set):
    _, dataset, _ = some_set
    with pytest.raises(InputError, match="expected one of"):
        dataset.load("validate")


# -- where it looks, and what it says -------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in OWN])
def test_looks_in_the_folder_for_data(name, tmp_path, monkeypatch):
    write(name, tmp_path / "all" / name)
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "all"))
    assert len(make(f"{name}:complete=false" if name != "medmnist" else name).load("test")) > 0


def test_looks_at_home_when_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBRANT_CACHE")
    write("cifar10", tmp_path / "home" / ".cache" / "calibrant" / "data" / "cifar10")
    assert len(make("cifar10:complete=false").load("test")) == 10


@pytest.mark.parametrize("name", ON_DISK)
def test_a_missing_set_says_what_is_missing_where_and_where_to_get_it(name, tmp_path):
    root = tmp_path / "nothing" / "here"
    with pytest.raises(InputError) as caught:
        make(f"{name}:root={root}").load("test")
    message = str(caught.value)
    assert str(root) in message
    assert "root=" in message
    assert find(name).source in message or name == "hf"
    root.mkdir(parents=True)
    with pytest.raises(InputError, match="an empty folder"):
        make(f"{name}:root={root}").load("test")


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in (*OWN, "medmnist")])
def test_half_a_set_is_refused_unless_allowed(name, tmp_path):
    write(name, tmp_path)
    with pytest.raises(InputError, match=r"expected [\d,]+ images.*complete=false"):
        make(f"{name}:root={tmp_path}").load("test")


@pytest.mark.parametrize("name", EMBEDDED)
def test_what_comes_with_a_package_has_no_root(name):
    with pytest.raises(InputError, match="leave root out"):
        make(f"{name}:root=somewhere").load("train")


@pytest.mark.parametrize("damage", ["half", "empty", "noise", "one byte short"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_damaged_file_is_said_to_be_damaged(name, damage, tmp_path):
    write(name, tmp_path)
    files = sorted(file for file in tmp_path.rglob("*") if file.is_file())
    quiet, messages = 0, []
    for file in files[:: max(1, len(files) // 8)]:
        whole = file.read_bytes()
        rng = np.random.default_rng(len(whole))
        file.write_bytes(
            {
                "half": whole[: len(whole) // 2 - 7],
                "empty": b"",
                "noise": rng.bytes(len(whole)),
                "one byte short": whole[:-1],
            }[damage]
        )
        part = next((part for part in ("train", "val") if part in str(file.relative_to(tmp_path))), "test")
        dataset = small(name, tmp_path)
        part = part if part in dataset.parts else "test"
        if "data_batch" in file.name:
            part = "train"
        try:
            loaded = dataset.load(part)
            loaded.images[np.arange(len(loaded))]
            quiet += 1
        except InputError as error:
            messages.append(str(error))
        file.write_bytes(whole)
    assert all("expected" in text for text in messages)
    # an image or a note without its last byte can still be read whole
    of_images = ("tiny_imagenet", "imagenet", "imagenet_v2", "folder")
    assert quiet == 0 or (damage == "one byte short" and name in of_images)
