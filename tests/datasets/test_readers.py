"""What is special about each reader; what they share is in contracts/test_datasets.py."""

import gzip
import pickle
import struct

import dataset_files
import numpy as np
import pytest
from dataset_files import draw_images, encoded, photograph, planes
from real_data import FOLDER, needs_real_data

from calibrant.core.errors import InputError
from calibrant.datasets import fashion_mini, make
from calibrant.datasets._files import read_idx
from calibrant.datasets.fashion_mnist import DEBIAN

CIFAR10 = FOLDER / "cifar10-jpeg"


def everything(part):
    return part.images[np.arange(len(part))]


def same(a, b):
    return np.array_equal(everything(a), everything(b)) and np.array_equal(a.labels, b.labels)


# -- fashion_mini and fashion_mnist ---------------------------------------------------------------


def test_fashion_mini_is_balanced_and_in_the_published_order():
    for part, n in (("train", 6000), ("test", 4000)):
        loaded = make("fashion_mini").load(part)
        assert loaded.images.shape == (n, 28, 28, 1)
        assert np.bincount(loaded.labels).tolist() == [n // 10] * 10
        assert (np.diff(loaded.ids) > 0).all()


@pytest.mark.skipif(not DEBIAN.exists(), reason="Debian's package dataset-fashion-mnist is not here")
def test_fashion_mini_is_a_part_of_fashion_mnist():
    for part in ("train", "test"):
        mini, full = make("fashion_mini").load(part), make("fashion_mnist").load(part)
        assert same(mini, full.take(mini.ids))
    images = make("fashion_mnist").load("train").images / np.float32(255)
    assert make("fashion_mini").mean == make("fashion_mnist").mean == pytest.approx([images.mean()], abs=5e-5)
    assert make("fashion_mini").std == make("fashion_mnist").std == pytest.approx([images.std()], abs=5e-5)


def test_a_changed_archive_is_refused(tmp_path, monkeypatch):
    changed = tmp_path / "changed.npz"
    changed.write_bytes(fashion_mini.ARCHIVE.read_bytes()[:-1])
    monkeypatch.setattr(fashion_mini, "ARCHIVE", changed)
    with pytest.raises(InputError, match=r"SHA-256.*another file"):
        make("fashion_mini").load("train")
    changed.unlink()
    with pytest.raises(InputError, match="no file"):
        make("fashion_mini").load("train")


@pytest.mark.parametrize("content", [b"", b"\0\0\x08\x03", struct.pack(">II", 0x803, 3), struct.pack(">II", 0x801, 3)])
def test_an_idx_file_with_a_wrong_start_or_size_is_refused(tmp_path, content):
    file = tmp_path / "labels.gz"
    file.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match=str(file)):
        read_idx(file, 1)


# -- digits ---------------------------------------------------------------------------------------


def test_digits_are_scaled_to_bytes():
    train, test = make("digits").load("train"), make("digits").load("test")
    assert (len(train), len(test)) == (1500, 297)
    assert set(np.unique(train.images)) == {round(v * 255 / 16) for v in range(17)}
    assert train.images.mean() / 255 == pytest.approx(make("digits").mean[0], abs=1e-4)
    assert train.images.std() / 255 == pytest.approx(make("digits").std[0], abs=1e-4)
    assert test.ids[0] == 1500


def test_digits_without_scikit_learn_say_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=r"calibrant\[sklearn\]"):
        make("digits").load("train")


# -- CIFAR ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("form", ["binary", "python", "parquet"])
def test_cifar_in_each_of_its_forms(root, name, form):
    expected = getattr(dataset_files, name)(root, form)
    for part, (images, labels) in expected.items():
        loaded = make(f"{name}:root={root},complete=false").load(part)
        assert np.array_equal(everything(loaded), images)
        assert np.array_equal(loaded.labels, labels)


def test_cifar_names():
    dataset = make("cifar100")
    from calibrant.datasets.cifar100 import CLASSES

    assert len(set(CLASSES)) == 100
    assert (CLASSES[0], CLASSES[41], CLASSES[99]) == ("apple", "lawn_mower", "worm")
    assert dataset.parts == ("train", "test")


def test_a_missing_batch_is_named(root):
    dataset_files.cifar10(root)
    (root / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(InputError, match=r"expected data_batch_3.bin in .*cifar-10-batches-bin"):
        make(f"cifar10:root={root}").load("train")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"data": np.zeros((10, 3071), dtype=np.uint8)}, r"shape \(n, 3072\)"),
        ({"data": np.zeros((10, 3072))}, "type uint8"),
        ({"data": [1, 2, 3]}, "type uint8"),
        ({"labels": [0] * 9}, "10 whole numbers in labels"),
        ({"labels": [0.5] * 10}, "10 whole numbers in labels"),
        ({"labels": [0] * 9 + [10]}, r"labels in 0..9, got 10"),
        ({"labels": [0] * 9 + [-1]}, r"labels in 0..9, got -1"),
        ({"labels": [0] * 10}, "images of every class"),
    ],
)
def test_a_pickled_batch_with_wrong_contents(root, change, message):
    images, labels = draw_images(10, 10, 32, 32, 3, 0)
    batch = {"data": planes(images), "labels": labels.tolist()} | change
    (root / "test_batch").write_bytes(pickle.dumps(batch))
    with pytest.raises(InputError, match=message):
        make(f"cifar10:root={root},complete=false").load("test")


def test_a_pickled_batch_without_labels(root):
    (root / "test_batch").write_bytes(pickle.dumps({"data": np.zeros((1, 3072), dtype=np.uint8), "y": [1]}))
    with pytest.raises(InputError, match=r"an entry labels, got only data, y"):
        make(f"cifar10:root={root}").load("test")


@needs_real_data("cifar10-jpeg")
@pytest.mark.parametrize("spec", ["cifar10", "hf"])
def test_real_cifar10_from_parquet(spec, cache):
    dataset = make(f"{spec}:root={CIFAR10}")
    loaded = dataset.load("test")
    assert loaded.images.shape == (10_000, 32, 32, 3)
    assert np.bincount(loaded.labels).tolist() == [1000] * 10
    assert everything(loaded).mean() / 255 == pytest.approx(np.mean(make("cifar10").mean), abs=0.01)
    (cache_file,) = cache.iterdir()
    before = cache_file.stat().st_mtime_ns
    assert same(loaded, dataset.load("test"))
    assert cache_file.stat().st_mtime_ns == before


# -- sets shifted from CIFAR ----------------------------------------------------------------------


def test_cifar10_1_versions_have_different_sizes(root):
    dataset_files.cifar10_1(root)
    for name in ("data", "labels"):
        (root / f"cifar10.1_v6_{name}.npy").rename(root / f"cifar10.1_v4_{name}.npy")
    assert len(make(f"cifar10.1:root={root},version=v4,complete=false").load("test")) == 20
    with pytest.raises(InputError, match="expected 2,021 images"):
        make(f"cifar10.1:root={root},version=v4").load("test")
    with pytest.raises(InputError, match=r"cifar10.1_v6_data.npy and cifar10.1_v6_labels.npy"):
        make(f"cifar10.1:root={root}").load("test")


@pytest.mark.parametrize(
    ("images", "labels"),
    [((20, 3, 32, 32), (20,)), ((20, 32, 32, 3), (20, 1)), ((20, 32, 32, 3), (19,))],
)
def test_cifar10_1_with_other_shapes(root, images, labels):
    np.save(root / "cifar10.1_v6_data.npy", np.zeros(images, dtype=np.uint8))
    np.save(root / "cifar10.1_v6_labels.npy", (np.arange(np.prod(labels)) % 10).reshape(labels))
    with pytest.raises(InputError):
        make(f"cifar10_1:root={root}").load("test")


def test_float_images_are_refused(root):
    np.save(root / "cifar10.1_v6_data.npy", np.zeros((10, 32, 32, 3)))
    np.save(root / "cifar10.1_v6_labels.npy", np.arange(10))
    with pytest.raises(InputError, match="expected uint8 images"):
        make(f"cifar10_1:root={root}").load("test")


def test_cifar10_c_severities_are_fifths_of_the_file(root):
    dataset_files.cifar10_c(root)
    images, labels = np.load(root / "gaussian_noise.npy"), np.load(root / "labels.npy")
    for severity in range(1, 6):
        loaded = make(f"cifar10_c:root={root},severity={severity},complete=false").load("test")
        rows = np.arange(10 * (severity - 1), 10 * severity)
        assert np.array_equal(everything(loaded), images[rows])
        assert np.array_equal(loaded.labels, labels[rows])
        assert np.array_equal(loaded.ids, rows)
    with pytest.raises(InputError, match=r"fog.npy and labels.npy"):
        make(f"cifar10_c:root={root},corruption=fog").load("test")


@pytest.mark.parametrize("severity", [0, 6])
def test_cifar10_c_has_five_severities(severity):
    with pytest.raises(InputError, match="1 to 5"):
        make(f"cifar10_c:severity={severity}")


def test_svhn_wants_labels_from_1_to_10(root):
    from scipy.io import savemat

    X = np.zeros((32, 32, 3, 10), dtype=np.uint8)
    savemat(root / "test_32x32.mat", {"X": X, "y": np.arange(10)[:, None]})
    with pytest.raises(InputError, match=r"labels in 1..10"):
        make(f"svhn:root={root}").load("test")
    savemat(root / "test_32x32.mat", {"X": X.transpose(3, 0, 1, 2), "y": np.arange(1, 11)[:, None]})
    with pytest.raises(InputError, match=r"shape \(32, 32, 3, n\)"):
        make(f"svhn:root={root}").load("test")
    savemat(root / "test_32x32.mat", {"X": X})
    with pytest.raises(InputError, match="a Matlab file with X and y"):
        make(f"svhn:root={root}").load("test")


def test_a_root_may_be_the_file_itself(root):
    dataset_files.svhn(root)
    moved = (root / "test_32x32.mat").rename(root / "mine.mat")
    assert len(make(f"svhn:root={moved},complete=false").load("test")) == 20


# -- MedMNIST and ImageNet16-120 ------------------------------------------------------------------


def test_grey_medmnist(root):
    expected = dataset_files.medmnist(root, "octmnist", 4, channels=1)
    loaded = make(f"medmnist:name=octmnist,root={root}").load("val")
    assert np.array_equal(everything(loaded), expected["val"][0])
    assert loaded.classes == ("choroidal neovascularization", "diabetic macular edema", "drusen", "normal")


def test_larger_medmnist_is_another_file(root):
    dataset_files.medmnist(root)
    with pytest.raises(InputError, match=r"expected pathmnist_64.npz"):
        make(f"medmnist:root={root},size=64").load("train")
    (root / "pathmnist.npz").rename(root / "pathmnist_64.npz")
    with pytest.raises(InputError, match="uint8 images of 64 x 64 pixels"):
        make(f"medmnist:root={root},size=64").load("train")
    with pytest.raises(InputError, match="one of 28, 64, 128, 224"):
        make("bloodmnist:size=32")


def test_medmnist_with_several_labels_an_image_is_refused(root):
    arrays = {"test_images": np.zeros((5, 28, 28), dtype=np.uint8), "test_labels": np.zeros((5, 14), dtype=np.uint8)}
    np.savez(root / "pathmnist.npz", **arrays)
    with pytest.raises(InputError, match="one label an image"):
        make(f"medmnist:root={root}").load("test")
    with pytest.raises(InputError, match="an array named train_images"):
        make(f"medmnist:root={root}").load("train")


def test_objects_in_an_npz_are_not_unpickled(root):
    np.savez(root / "cifar102_test.npz", images=np.array([{}], dtype=object), labels=np.zeros(1, dtype=int))
    with pytest.raises(InputError, match="pickled Python objects, which could run code"):
        make(f"cifar10.2:root={root}").load("test")


def test_medmnist_is_found_where_its_own_package_puts_it(tmp_path):
    (tmp_path / "home" / ".medmnist").mkdir(parents=True)
    dataset_files.bloodmnist(tmp_path / "home" / ".medmnist")
    assert len(make("bloodmnist:complete=false").load("val")) == 16


def test_imagenet16_120_keeps_its_first_classes_and_their_positions(root):
    dataset_files.imagenet16_120(root)
    train = make(f"imagenet16_120:root={root},complete=false").load("train")
    assert len(train) == 1200
    assert train.ids.max() > 1350
    assert train.labels.max() == 119
    whole = np.concatenate(
        [pickle.loads((root / f"train_data_batch_{i}").read_bytes())["data"] for i in range(1, 11)]  # our own file
    )
    assert np.array_equal(planes(everything(train)), whole[train.ids])


# -- images in files ------------------------------------------------------------------------------


def test_grey_images_of_tiny_imagenet_become_rgb(root):
    dataset_files.tiny_imagenet(root)
    first = make(f"tiny_imagenet:root={root},complete=false").load("train").images[np.array([0])]
    assert np.array_equal(first[..., 0], first[..., 1])
    assert np.abs(first[0, ..., :1].astype(int) - photograph(64, 64, 1, seed=0)).mean() < 3


def test_tiny_imagenet_below_its_zip_folder(root):
    (root / "tiny-imagenet-200").mkdir()
    dataset_files.tiny_imagenet(root / "tiny-imagenet-200")
    assert make(f"tiny-imagenet:root={root},complete=false").load("test").labels.tolist() == [2, 0, 1]


@pytest.mark.parametrize("line", ["val_0.JPEG\tn99999999\t0\n", "val_7.JPEG\tn01443537\t0\n", "val_0.JPEG\n"])
def test_wrong_notes_of_tiny_imagenet(root, line):
    dataset_files.tiny_imagenet(root)
    with (root / "val" / "val_annotations.txt").open("a") as notes:
        notes.write(line)
    with pytest.raises(InputError, match="one of the training classes"):
        make(f"tiny_imagenet:root={root}").load("test")


def test_imagenet_without_training_images_can_be_tested(root):
    import shutil

    dataset_files.imagenet(root)
    shutil.rmtree(root / "train")
    assert make(f"imagenet:root={root},complete=false").load("test").classes == dataset_files.WNIDS
    with pytest.raises(InputError, match="expected train/<wnid>"):
        make(f"imagenet:root={root}").load("train")


def test_imagenet_crops_or_squashes(root):
    for part in ("train", "val"):
        (root / part / "n1").mkdir(parents=True)
    image = np.zeros((256, 512, 3), dtype=np.uint8)
    image[:, 128:384] = 255
    (root / "val" / "n1" / "a.png").write_bytes(encoded(image))
    crop = make(f"imagenet:root={root},complete=false").load("test").images[np.array([0])]
    assert crop.shape == (1, 224, 224, 3)
    assert (crop == 255).all()  # the centre of the image, 144 to 368, is white
    squash = make(f"imagenet:root={root},fit=squash,size=64,complete=false").load("test").images[np.array([0])]
    assert squash.shape == (1, 64, 64, 3)
    assert (squash[0, :, 0] == 0).all()
    assert squash.mean() == pytest.approx(127.5, abs=2)


def test_classes_must_be_the_same_in_every_part(root):
    dataset_files.imagenet(root)
    (root / "val" / "n00000001").mkdir()
    with pytest.raises(InputError, match="got the folder n00000001"):
        make(f"imagenet:root={root}").load("test")


def test_imagenet_v2_folders_are_sorted_as_numbers(root):
    dataset_files.imagenet_v2(root)
    loaded = make(f"imagenet_v2:root={root},complete=false").load("test")
    assert loaded.classes == tuple(str(c) for c in range(12))
    levels = everything(loaded).mean(axis=(1, 2, 3))
    assert levels == pytest.approx(20 * loaded.labels, abs=2)
    inside = root / "imagenetv2-matched-frequency-format-val"
    assert same(loaded, make(f"imagenet_v2:root={inside},complete=false").load("test"))
    (inside / "other").mkdir()
    with pytest.raises(InputError, match="folders 0 to 12"):
        make(f"imagenet_v2:root={root}").load("test")


def test_folder_wants_one_size_or_an_option(root):
    dataset_files.folder(root)
    (root / "test" / "a" / "big.png").write_bytes(encoded(photograph(40, 50)))
    with pytest.raises(InputError, match=r"big.png: expected an image of 20 x 30 pixels, got 40 x 50.*size=20"):
        make(f"folder:root={root}").load("test")
    loaded = make(f"folder:root={root},size=16").load("test")
    assert loaded.images.shape == (7, 16, 16, 3)
    assert make(f"folder:root={root},size=16,colour=grey").load("test").images.shape == (7, 16, 16, 1)


def test_grey_folder(root):
    for c in "ab":
        (root / "train" / c).mkdir(parents=True)
        (root / "train" / c / "x.png").write_bytes(encoded(photograph(9, 9, 1)))
    assert make(f"folder:root={root}").load("train").images.shape == (2, 9, 9, 1)
    assert make(f"folder:root={root},colour=rgb").load("train").images.shape == (2, 9, 9, 3)
    with pytest.raises(InputError, match="expected test/<class>/"):
        make(f"folder:root={root}").load("test")


def test_a_test_folder_may_miss_a_class_but_training_may_not(root):
    import shutil

    dataset_files.folder(root)
    shutil.rmtree(root / "test" / "b")
    assert set(make(f"folder:root={root}").load("test").labels) == {0, 2}
    for file in (root / "train" / "b").iterdir():
        file.unlink()
    with pytest.raises(InputError, match="none of b"):
        make(f"folder:root={root}").load("train")


def test_a_large_folder_is_decoded_when_asked_for(root, cache, monkeypatch):
    from calibrant.datasets import folder

    dataset_files.folder(root)
    kept = make(f"folder:root={root}").load("test")
    monkeypatch.setattr(folder, "KEPT_BYTES", 100)
    before = set(cache.iterdir())
    assert same(kept, make(f"folder:root={root}").load("test"))
    assert set(cache.iterdir()) == before


def test_folder_needs_a_root():
    with pytest.raises(InputError, match="write folder:root=FOLDER"):
        make("folder").load("train")
