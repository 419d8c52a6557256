"""Small copies of data sets in the format of the published files: one function each, by the name of the data set.

`write(name, folder)` returns what a reader must find: for each part, images (n, h, w, c) and labels; None for the
images where decoding is lossy.
"""

import gzip
import io
import json
import pickle
import struct

import numpy as np
import polars as pl
import pytest

pytest.importorskip("PIL")
from PIL import Image
from scipy.io import savemat

from calibrant import datasets

WNIDS = ("n01443537", "n01629819", "n01641577")


def draw_images(n, k, height, width, channels, seed):
    """Random images, and labels in which every class occurs."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % k)
    return rng.integers(0, 256, (n, height, width, channels), dtype=np.uint8), labels


def encoded(image, kind="PNG"):
    stream = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(stream, kind)
    return stream.getvalue()


def photograph(height, width, channels=3, seed=0):
    """A smooth image, which JPEG keeps nearly as it is."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(y / rng.uniform(5, 20) + x / rng.uniform(5, 20) + c) for c in range(channels)]
    return (127 + 100 * np.stack(waves, axis=-1)).astype(np.uint8)


def planes(images):
    """Rows of red, green and blue planes, as CIFAR has them."""
    return images.transpose(0, 3, 1, 2).reshape(len(images), -1)


# -- arrays ---------------------------------------------------------------------------------------


def fashion_mnist(folder):
    expected = {}
    for part, stem, n in (("train", "train", 20), ("test", "t10k", 10)):
        images, labels = expected[part] = draw_images(n, 10, 28, 28, 1, n)
        content = struct.pack(">IIII", 0x803, n, 28, 28) + images.tobytes()
        (folder / f"{stem}-images-idx3-ubyte.gz").write_bytes(gzip.compress(content))
        (folder / f"{stem}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, n) + bytes(labels.tolist()))
    return expected


def cifar10(folder, form="binary"):
    expected = {"train": draw_images(50, 10, 32, 32, 3, 1), "test": draw_images(10, 10, 32, 32, 3, 2)}
    if form == "parquet":
        return write_parquet(folder, expected, "img", "label")
    inside = folder / {"binary": "cifar-10-batches-bin", "python": "cifar-10-batches-py"}[form]
    inside.mkdir()
    names = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
    for part, (images, labels) in expected.items():
        for name, rows in zip(names[part], np.split(np.arange(len(labels)), len(names[part])), strict=True):
            data, some = planes(images[rows]), labels[rows]
            if form == "binary":
                records = np.concatenate([some[:, None].astype(np.uint8), data], axis=1)
                (inside / f"{name}.bin").write_bytes(records.tobytes())
            else:
                batch = {b"data": data, b"labels": some.tolist(), b"filenames": [b"a.png"] * len(some)}
                (inside / name).write_bytes(pickle.dumps(batch, protocol=2))
    return expected


def cifar100(folder, form="python"):
    expected = {"train": draw_images(200, 100, 32, 32, 3, 1), "test": draw_images(100, 100, 32, 32, 3, 2)}
    if form == "parquet":
        return write_parquet(folder, expected, "img", "fine_label", coarse_label=3)
    for part, (images, labels) in expected.items():
        if form == "binary":
            both = np.stack([labels // 5, labels], axis=1).astype(np.uint8)
            (folder / f"{part}.bin").write_bytes(np.concatenate([both, planes(images)], axis=1).tobytes())
        else:
            batch = {
                "data": planes(images),
                "fine_labels": labels.tolist(),
                "coarse_labels": (labels // 5).tolist(),
            }
            (folder / part).write_bytes(pickle.dumps(batch))
    return expected


def cifar10_1(folder):
    images, labels = draw_images(20, 10, 32, 32, 3, 4)
    np.save(folder / "cifar10.1_v6_data.npy", images)
    np.save(folder / "cifar10.1_v6_labels.npy", labels.astype(np.int32))
    return {"test": (images, labels)}


def cifar10_2(folder):
    images, labels = draw_images(20, 10, 32, 32, 3, 5)
    np.savez(folder / "cifar102_test.npz", images=images, labels=labels)
    return {"test": (images, labels)}


def cifar10_c(folder):
    images, labels = draw_images(50, 10, 32, 32, 3, 6)
    labels[:] = np.tile(np.arange(10), 5)
    np.save(folder / "gaussian_noise.npy", images)
    np.save(folder / "labels.npy", labels.astype(np.uint8))
    return {"test": (images[20:30], labels[20:30])}  # severity 3


def svhn(folder):
    images, labels = draw_images(20, 10, 32, 32, 3, 7)
    y = np.where(labels == 0, 10, labels).astype(np.uint8)[:, None]
    savemat(folder / "test_32x32.mat", {"X": images.transpose(1, 2, 3, 0), "y": y}, do_compression=True)
    return {"test": (images, labels)}


def medmnist(folder, name="pathmnist", k=9, channels=3):
    expected = {part: draw_images(2 * k, k, 28, 28, channels, i) for i, part in enumerate(("train", "val", "test"))}
    arrays = {}
    for part, (images, labels) in expected.items():
        arrays[f"{part}_images"] = images[..., 0] if channels == 1 else images
        arrays[f"{part}_labels"] = labels.astype(np.uint8)[:, None]
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    return expected


def bloodmnist(folder):
    return medmnist(folder, "bloodmnist", 8)


def imagenet16_120(folder):
    expected = {}
    for part, names in (("train", [f"train_data_batch_{i}" for i in range(1, 11)]), ("test", ["val_data"])):
        kept = []
        for i, name in enumerate(names):
            images, labels = draw_images(150, 150, 16, 16, 3, i)
            batch = {"data": planes(images), "labels": (labels + 1).tolist(), "mean": np.ones(768)}
            (folder / name).write_bytes(pickle.dumps(batch, protocol=2 if i % 2 else 4))
            kept.append((images[labels < 120], labels[labels < 120]))
        expected[part] = tuple(np.concatenate(arrays) for arrays in zip(*kept, strict=True))
    return expected


# -- images in files ------------------------------------------------------------------------------


def tiny_imagenet(folder):
    expected, notes = {"train": (None, np.repeat([0, 1, 2], 2)), "test": (None, np.array([2, 0, 1]))}, []
    for c, wnid in enumerate(WNIDS):
        inside = folder / "train" / wnid / "images"
        inside.mkdir(parents=True)
        for i in range(2):
            grey = c == 0 and i == 0
            (inside / f"{wnid}_{i}.JPEG").write_bytes(encoded(photograph(64, 64, 1 if grey else 3, seed=c), "JPEG"))
    (folder / "val" / "images").mkdir(parents=True)
    for i, c in enumerate(expected["test"][1]):
        (folder / "val" / "images" / f"val_{i}.JPEG").write_bytes(encoded(photograph(64, 64, seed=c), "JPEG"))
        notes.append(f"val_{i}.JPEG\t{WNIDS[c]}\t0\t32\t44\t62\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(notes))
    return expected


def imagenet(folder):
    for part, each in (("train", 2), ("val", 1)):
        for c, wnid in enumerate(WNIDS):
            (folder / part / wnid).mkdir(parents=True)
            for i in range(each):
                image = photograph(240 + 40 * i, 300 - 30 * c, seed=c)
                (folder / part / wnid / f"{wnid}_{i}.JPEG").write_bytes(encoded(image, "JPEG"))
    return {"train": (None, np.repeat([0, 1, 2], 2)), "test": (None, np.arange(3))}


def imagenet_v2(folder):
    inside = folder / "imagenetv2-matched-frequency-format-val"
    for c in range(12):
        (inside / str(c)).mkdir(parents=True)
        (inside / str(c) / "a.jpeg").write_bytes(encoded(np.full((230, 250, 3), 20 * c, dtype=np.uint8), "JPEG"))
    return {"test": (None, np.arange(12))}


def folder(root):
    expected = {
        "train": draw_images(12, 3, 20, 30, 3, 1),
        "val": draw_images(6, 3, 20, 30, 3, 2),
        "test": draw_images(6, 3, 20, 30, 3, 3),
    }
    for part, (images, labels) in list(expected.items()):
        order = np.argsort(labels, kind="stable")
        expected[part] = images[order], labels[order]
        for i, (image, label) in enumerate(zip(*expected[part], strict=True)):
            inside = root / part / "abc"[label]
            inside.mkdir(parents=True, exist_ok=True)
            (inside / f"{i:03}.png").write_bytes(encoded(image))
    return expected


def hf(root):
    (root / "data").mkdir()
    expected = {"train": draw_images(24, 3, 12, 14, 3, 1), "test": draw_images(9, 3, 12, 14, 3, 2)}
    return write_parquet(root / "data", expected, "image", "label", classes=("cat", "dog", "fox"), shards=2)


def write_parquet(folder, expected, image, label, *, classes=(), shards=1, plain=False, **others):
    """Files as the hub writes them: a struct of bytes and path, and the names of the classes in a note."""
    feature = {"names": list(classes), "_type": "ClassLabel"}
    features = {image: {"_type": "Image"}, label: feature}
    note = {"huggingface": json.dumps({"info": {"features": features}})} if classes else None
    for part, (images, labels) in expected.items():
        for i, rows in enumerate(np.array_split(np.arange(len(labels)), shards)):
            pngs = [encoded(one) for one in images[rows]]
            column = pngs if plain else [{"bytes": png, "path": f"{r}.png"} for r, png in zip(rows, pngs, strict=True)]
            columns = {image: column, **{name: [value] * len(rows) for name, value in others.items()}}
            frame = pl.DataFrame(columns | {label: labels[rows]})
            frame.write_parquet(folder / f"{part}-{i:05}-of-{shards:05}.parquet", metadata=note)
    return expected


NAMES = datasets.names()
EMBEDDED = [name for name in NAMES if ">>> " in datasets.find(name).__doc__]  # an example needs files at hand
WRITERS = {name: globals()[name] for name in NAMES if name in globals() and name not in EMBEDDED}


def write(name, root):
    root.mkdir(parents=True, exist_ok=True)
    return WRITERS[name](root)
