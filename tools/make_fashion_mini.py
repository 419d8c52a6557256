"""Choose the 10,000 images of the data set fashion_mini from Fashion-MNIST's own files.

    python tools/make_fashion_mini.py [FOLDER WITH THE IDX FILES]

By default it reads the files of Debian's package dataset-fashion-mnist. It writes the archive that comes with the
package and prints its SHA-256, which src/calibrant/datasets/fashion_mini.py checks.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

from calibrant.core.files import write_whole
from calibrant.datasets import make

SEED = 2017
SIZES = {"train": 6000, "test": 4000}
ARCHIVE = Path(__file__).parents[1] / "src" / "calibrant" / "data" / "fashion_mini.npz"


def main(root: str = "") -> None:
    whole = make(f"fashion_mnist:root={root}" if root else "fashion_mnist")
    rng = np.random.default_rng(SEED)
    arrays = {}
    for part, size in SIZES.items():
        full = whole.load(part)
        each = size // len(full.classes)
        rows = np.concatenate(
            [rng.choice(np.flatnonzero(full.labels == c), each, replace=False) for c in range(len(full.classes))]
        )
        rows.sort()  # in the published order, so that neighbours are not all of one class
        arrays[f"{part}_images"] = full.images[rows][..., 0]
        arrays[f"{part}_labels"] = full.labels[rows].astype(np.uint8)
        arrays[f"{part}_ids"] = full.ids[rows].astype(np.uint16)
    write_whole(ARCHIVE, lambda file: np.savez_compressed(file, **arrays))
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes, SHA-256 {hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
