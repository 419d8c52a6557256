"""Train the small overconfident network whose predictions ship with calibrant, and write them.

Usage: python tools/make_demo_predictions.py FOLDER   (the four idx .gz files of Fashion-MNIST, for instance
from Debian's package dataset-fashion-mnist). Needs scikit-learn. Writes src/calibrant/data/demo_{val,test}.npz.
"""

import gzip
import sys
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier

import calibrant as cal

ROWS = 4000


def read_idx(path: Path, header: int) -> np.ndarray:
    with gzip.open(path) as stream:
        return np.frombuffer(stream.read(), dtype=np.uint8, offset=header)


def main() -> None:
    folder = Path(sys.argv[1])
    train_x = read_idx(folder / "train-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:3000] / 255
    train_y = read_idx(folder / "train-labels-idx1-ubyte.gz", 8)[:3000]
    test_x = read_idx(folder / "t10k-images-idx3-ubyte.gz", 16).reshape(-1, 784) / 255
    test_y = read_idx(folder / "t10k-labels-idx1-ubyte.gz", 8)

    network = MLPClassifier((128,), alpha=0.0, max_iter=80, tol=0.0, n_iter_no_change=80, random_state=0)
    network.fit(train_x, train_y)
    hidden = np.maximum(test_x @ network.coefs_[0] + network.intercepts_[0], 0)
    logits = (hidden @ network.coefs_[1] + network.intercepts_[1]).astype(np.float32)

    out = Path(__file__).parent.parent / "src" / "calibrant" / "demo"
    for name, rows in {"val": slice(0, ROWS), "test": slice(ROWS, 2 * ROWS)}.items():
        p = cal.Predictions.from_logits(logits[rows], test_y[rows])
        p.save(out / f"{name}.npz")
        print(name, cal.measure(p, "accuracy"), cal.measure(p, "ece"), sep="\n  ")


if __name__ == "__main__":
    main()
