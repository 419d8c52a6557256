"""Print, as a Markdown table, the ECE of every dialect beside the number of the peer itself.

Usage: python tools/dialect_table.py [FOLDER] [--bins 15] [--decimals 2]   (a folder of .npz predictions).
With --decimals, confidences are rounded first, as in many a CSV file: then they lie on bin edges, and peers
differ. Peers that are not installed show a dash. Needs the `bench` extra.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.predictions import Predictions
from calibrant.measures import make

Peer = Callable[[Predictions, int], float]


def tensors(p: Predictions) -> tuple[Any, Any]:
    """Probabilities in the precision of the file, as a user of torch has them, and labels."""
    import torch

    values = torch.tensor(p.values)
    return (values.softmax(dim=1) if p.score_type == "logits" else values), torch.tensor(p.labels)


def torchmetrics(p: Predictions, bins: int) -> float:
    from torchmetrics.functional.classification import multiclass_calibration_error

    return float(multiclass_calibration_error(*tensors(p), num_classes=p.k, n_bins=bins))


def torch_uncertainty(p: Predictions, bins: int) -> float:
    from torch_uncertainty.metrics.classification import CalibrationError

    measure = CalibrationError(task="multiclass", num_classes=p.k, num_bins=bins)
    measure.update(*tensors(p))
    return float(measure.compute())


def probmetrics(p: Predictions, bins: int) -> float:
    from probmetrics.metrics import CalibrationError

    probs, labels = tensors(p)
    return float(CalibrationError(n_bins=bins).compute_from_labels_probs(labels, probs))


def netcal(p: Predictions, bins: int) -> float:
    from netcal.metrics import ECE

    return float(ECE(bins=bins).measure(p.probs, p.labels))


def uncertainty_calibration(p: Predictions, bins: int) -> float:
    from calibration import get_ece

    return float(get_ece(p.probs, p.labels, num_bins=bins))


def relplot(p: Predictions, bins: int) -> float:
    from relplot.metrics import binnedECE

    return float(binnedECE(p.confidence, p.correct.astype(float), nbins=bins))


def relplot_smooth(p: Predictions, bins: int = 0) -> float:
    from relplot import smECE

    return float(smECE(p.confidence, p.correct.astype(float)))


def focal_calibration(p: Predictions, bins: int) -> float:
    """Not a package: its rule in torch, where > and <= compare float32 with float32."""
    import torch

    probs, labels = tensors(p)
    confidence, predicted = probs.float().max(dim=1)
    residual = confidence.double() - (predicted == labels).double()
    edges = torch.linspace(0, 1, bins + 1)
    inside = (confidence > edges[:-1, None]) & (confidence <= edges[1:, None])  # (bins, n)
    return float((inside.double() @ residual).abs().sum() / p.n)


def onmixup(p: Predictions, bins: int) -> float:
    """Not a package: its rule in torch, with the bin above the last one left out of the sum."""
    import torch

    probs, labels = tensors(p)
    confidence, predicted = probs.float().max(dim=1)
    residual = confidence.double() - (predicted == labels).double()
    index = (confidence * 100 // (100 / bins)).long()
    sums = torch.zeros(bins + 1, dtype=torch.float64).index_add(0, index, residual)
    return float(sums[:bins].abs().sum() / p.n)


PEERS: dict[str, Peer | None] = {  # None: our own definition
    "ece": None,
    "ece:dialect=torchmetrics": torchmetrics,
    "ece:dialect=torch_uncertainty": torch_uncertainty,
    "ece:dialect=probmetrics": probmetrics,
    "ece:dialect=netcal": netcal,
    "ece:dialect=uncertainty_calibration": uncertainty_calibration,
    "ece:dialect=relplot": relplot,
    "ece:dialect=focal_calibration": focal_calibration,
    "ece:dialect=onmixup": onmixup,
    "smooth": None,
    "smooth:dialect=relplot": relplot_smooth,
}


def rounded(p: Predictions, decimals: int) -> Predictions:
    """The same answers with rounded confidence; what is left is spread over the other classes."""
    confidence = p.confidence.round(decimals)
    probs = np.repeat((1 - confidence)[:, None] / (p.k - 1), p.k, axis=1)  # (n, k)
    probs[np.arange(p.n), p.predicted] = confidence
    return Predictions.from_probs(probs, p.labels)


def own_number(peer: Peer | None, p: Predictions, bins: int) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the peers
            return f"{peer(p, bins):.7f}" if peer else ""
    except ModuleNotFoundError:
        return "-"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data/logits"))
    parser.add_argument("--bins", type=int, default=15)
    parser.add_argument("--decimals", type=int)
    options = parser.parse_args()

    data = {file.stem: Predictions.load(file) for file in sorted(options.folder.glob("*.npz"))}
    if options.decimals is not None:
        data = {name: rounded(p, options.decimals) for name, p in data.items()}
    print("| measure |", " | ".join(f"{name} | peer" for name in data), "|")
    print("|---|" + "---|" * 2 * len(data))
    for spec, peer in PEERS.items():
        measure = make(spec)
        if spec.startswith("ece"):
            measure = replace(measure, bins=options.bins)
        cells = [f"{measure(p):.7f} | {own_number(peer, p, options.bins)}" for p in data.values()]
        print(f"| `{spec}` |", " | ".join(cells), "|")


if __name__ == "__main__":
    main()
