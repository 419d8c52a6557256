"""Does choosing the weight of the penalty on rows left out help Neural Clamping? Ten small networks: docs/clamping.md.

    python examples/clamping_lambda.py

Each network has one hidden layer and was trained for too long on 5,000 images of `fashion_mini`, with its own seed.
Everything is fitted on 1,000 other images and measured on the 4,000 test images. Some ten minutes on one core.
"""

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from scipy.stats import t
from torch import nn
from torch.nn import functional as F

import calibrant as cal
from calibrant.datasets import make, split

NETWORKS, EPOCHS, BATCH = 10, 40, 64
MEASURES = {"accuracy %": "accuracy", "NLL": "nll", "ECE %": "ece"}
METHODS = {
    "TS": {"gamma": 0.0, "what": "T"},
    "NC (CE), lam a tenth of the loss": {"gamma": 0.0},
    "NC (CE), lam by cv": {"gamma": 0.0, "lambda_rule": "cv"},
    "TS (FL)": {"what": "T"},
    "NC (FL), lam a tenth of the loss": {},
    "NC (FL), lam by cv": {"lambda_rule": "cv"},
    "NC (FL), efficient": {"by": "efficient"},
    "NC (FL), SGD": {"by": "sgd"},
}
PAIRS = [
    ("NC (CE), lam a tenth of the loss", "TS"),
    ("NC (CE), lam by cv", "TS"),
    ("NC (CE), lam by cv", "NC (CE), lam a tenth of the loss"),
    ("NC (FL), lam a tenth of the loss", "TS (FL)"),
    ("NC (FL), lam by cv", "TS (FL)"),
    ("NC (FL), efficient", "TS (FL)"),
    ("NC (FL), efficient", "TS"),
]

Rows = tuple[torch.Tensor, torch.Tensor]


def main() -> None:
    data = make("fashion_mini")
    splits = split(data, "5:1", 0)
    inputs = [rows_of(part, data.mean[0], data.std[0]) for part in (splits.train, splits.val, splits.test)]
    low, high = (0 - data.mean[0]) / data.std[0], (1 - data.mean[0]) / data.std[0]
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(NETWORKS):
        network = trained(inputs[0], seed)
        for name, options in {"uncalibrated": None, **METHODS}.items():
            p, row = judged(network, inputs[1], inputs[2], options, low, high)
            found.setdefault(name, []).append({**measured(p), **row})
        print(f"network {seed + 1} of {NETWORKS}", file=sys.stderr, flush=True)
    print(tables(found))


def rows_of(part: object, mean: float, std: float) -> Rows:
    images = torch.from_numpy(np.ascontiguousarray(part.images[np.arange(len(part))])).float()
    return ((images / 255 - mean) / std).permute(0, 3, 1, 2), torch.from_numpy(part.labels)


def trained(rows: Rows, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for some in torch.randperm(len(rows[0])).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(network(rows[0][some]), rows[1][some]).backward()
            optimizer.step()
    return network.eval()


def judged(
    network: nn.Module, val: Rows, test: Rows, options: dict | None, low: float, high: float
) -> tuple[cal.Predictions, dict[str, float]]:
    if options is None:
        with torch.no_grad():
            return cal.Predictions.from_logits(network(test[0]).numpy(), test[1].numpy()), {}
    clamped = cal.NeuralClamping(low=low, high=high, **options).fit(network, [val])
    norm, lam = clamped.report.delta_norm, clamped.report.lam
    return clamped.predict([test]), {"norm": norm, "none": float(lam is None)}


def measured(p: cal.Predictions) -> dict[str, float]:
    return {name: (1 if name == "NLL" else 100) * cal.measures.make(spec)(p) for name, spec in MEASURES.items()}


def tables(found: dict[str, list[dict[str, float]]]) -> str:
    lines = [f"| method | {' | '.join(MEASURES)} | norm of delta |", "| --- |" + " --: |" * (len(MEASURES) + 1)]
    for name, rows in found.items():
        cells = [interval([row[m] for row in rows], 3 if m == "NLL" else 2) for m in MEASURES]
        norms = [row.get("norm", 0.0) for row in rows]
        lines.append(f"| {name} | {' | '.join(cells)} | {np.mean(norms):.2f} |")
    lines += ["", "| | minus | NLL | ECE % |", "| --- | --- | --: | --: |"]
    for one, other in PAIRS:
        both = list(zip(found[one], found[other], strict=True))
        cells = [interval([a[m] - b[m] for a, b in both], 4 if m == "NLL" else 2) for m in ("NLL", "ECE %")]
        lines.append(f"| {one} | {other} | {' | '.join(cells)} |")
    none = {name: sum(row.get("none", 0.0) for row in rows) for name, rows in found.items() if "cv" in name}
    said = ", ".join(f"{name}: {count:.0f} of {NETWORKS}" for name, count in none.items())
    return "\n".join([*lines, "", f"No perturbation was kept by {said}."])


def interval(values: list[float], digits: int) -> str:
    half = t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {half:.{digits}f}"


if __name__ == "__main__":
    main()
