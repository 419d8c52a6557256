"""Files that come with the package.

- demo_val.npz, demo_test.npz: predictions of a small network trained too long on 3,000 Fashion-MNIST images, 4,000 rows
  to calibrate on and 4,000 others to measure on (made by tools/make_demo_predictions.py; logits and labels only).
- fashion_mini.npz: 10,000 images of Fashion-MNIST, by Zalando SE, under the MIT licence (fashion_mini.LICENSE).
- nas.parquet: networks of both NATS-Bench spaces, small, trained and measured (docs/nas.md).
"""

from pathlib import Path

FOLDER = Path(__file__).parent
DEMO_VAL, DEMO_TEST = FOLDER / "demo_val.npz", FOLDER / "demo_test.npz"
FASHION_MINI = FOLDER / "fashion_mini.npz"
NAS = FOLDER / "nas.parquet"
