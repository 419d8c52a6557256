"""Predictions that come with the package: a small network trained too long on 3,000 Fashion-MNIST images.

Made by examples/make_demo_predictions.py. Fashion-MNIST is by Zalando SE, under the MIT licence; these files
hold logits and labels, no images.
"""

from pathlib import Path

PATH = Path(__file__).parent / "test.npz"  # 4,000 rows to measure on
VAL_PATH = Path(__file__).parent / "val.npz"  # 4,000 other rows to calibrate on
