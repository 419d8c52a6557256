"""A small table for every figure of a table: what the contract draws."""

import numpy as np
import polars as pl


def training():
    epoch = np.arange(1, 13)
    return pl.DataFrame(
        {
            "epoch": epoch,
            "train_loss": 2.0 / epoch,
            "val_ece": 0.02 + 0.004 * epoch,
            "val_nll": 0.5 + 0.9 / epoch,
            "val_error": 0.1 + 0.4 / epoch,
            "val_auroc_correct": 0.9 - 0.1 / epoch,
            "gamma_mean": 1 + 0.05 * epoch,
            "gamma_std": 0.02 * epoch,
            "seconds": 3.0 + 0 * epoch,
        }
    )


def runs():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        [
            {"group": group, "measure": measure, "value": rng.normal(0.1, 0.01)}
            for measure in ("ece", "nll")
            for group in ("random", "data-driven")
            for _ in range(5)
        ]
    )


def sweep():
    gamma = np.round(np.arange(0, 1.01, 0.1), 2)
    return pl.DataFrame({"gamma": gamma, "ece": 0.03 + 0.04 * (gamma - 0.4) ** 2, "entropy": 0.5 + 0.7 * gamma})


def study(n=60):
    rng = np.random.default_rng(1)
    accuracy = rng.uniform(0.7, 0.95, n)
    ece = np.abs(0.15 - 0.1 * accuracy + rng.normal(0, 0.01, n))
    kind = rng.choice(["cifar10", "cifar100"], n)
    return pl.DataFrame({"accuracy": accuracy, "ece": ece, "nll": 1 - accuracy + ece, "data": kind})


def measured():
    return pl.DataFrame(
        {
            "model": ["before", "after"] * 2,
            "measure": ["ece", "ece", "auroc_correct", "auroc_correct"],
            "better": ["lower", "lower", "higher", "higher"],
            "value": [0.07, 0.02, 0.83, 0.83],
            "low": [0.06, 0.01, 0.81, None],
            "high": [0.08, 0.03, 0.85, None],
        }
    )


def parts():
    return pl.DataFrame(
        {
            "model": ["before"] * 3 + ["after"] * 3,
            "part": ["calibration", "refinement", "uncertainty"] * 2,
            "value": [0.03, 0.11, 0.14, -0.001, 0.11, 0.14],
        }
    )


def watched():
    return pl.DataFrame({"row": [1, 2, 3, 4], "evidence": [1.0, 0.8, 5.0, 1e200], "limit": [20.0] * 4})


TABLES = {
    "watch_evidence": watched,
    "training_curves": training,
    "run_boxes": runs,
    "gamma_sweep": sweep,
    "rank_heatmap": study,
    "study_scatter": study,
    "study_boxes": study,
    "before_after": measured,
    "decomposition": parts,
}
