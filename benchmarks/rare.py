"""Rare positives: the log loss that `auto` leaves on other rows, beside scikit-learn's two calibrators."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from benchmarks._clock import OURS
from benchmarks._page import Section, Target, table

MODELS = {
    "a random forest": lambda: RandomForestClassifier(100, random_state=0),
    "naive Bayes": GaussianNB,
    "logistic regression": lambda: LogisticRegression(max_iter=500),
}
TRAIN, ROWS, FRESH, SEEDS = 3000, (500, 2000), 20_000, range(400, 410)
PEERS = ("sigmoid", "isotonic")
SLACK = 0.002  # of a mean over ten sets of a few dozen positives each
WORDS = (
    "One row in twenty is positive. A model of scikit-learn is trained on 3,000 rows, `cal.fit(p, 'auto')` and "
    "`CalibratedClassifierCV` (sigmoid, isotonic) calibrate it on the same 500 or 2,000 others, and 20,000 fresh rows "
    "judge: mean log loss over ten made-up sets, probabilities kept 1e-12 from 0 and 1. *Off* is the distance of "
    "the mean of `auto` from the share of positives, on average over the sets and the largest; with 25 positives no "
    "one knows that share to a point."
)


def run(*, smoke: bool) -> Section:
    rows, seeds, fresh = (ROWS[:1], SEEDS[:1], 1000) if smoke else (ROWS, SEEDS, FRESH)
    section, lines = Section("Rare positives", WORDS), []
    for model in MODELS:
        for n in rows:
            results = [_losses(model, n, seed, fresh) for seed in seeds]
            loss = {name: float(np.mean([one[name] for one in results])) for name in ("uncalibrated", OURS, *PEERS)}
            off = [100 * one["off"] for one in results]
            lines.append(
                [
                    f"{model}, {n:,} rows",
                    *(f"{value:.4f}" for value in loss.values()),
                    f"{np.mean(off):.1f}, {max(off):.1f}",
                ]
            )
            ahead, best = loss[OURS] - min(loss[name] for name in PEERS), min(PEERS, key=loss.__getitem__)
            name = f"log loss of auto above scikit-learn's best, {model}, {n:,} rows"
            section.targets.append(Target(name, ahead, "most", SLACK, " nats", note=best))
            if n == max(ROWS):
                name = f"mean of auto off the share of positives, {model}, {n:,} rows"
                section.targets.append(Target(name, float(np.mean(off)), "most", 1.0, " points"))
    section.tables.append(table(["", "uncalibrated", OURS, *PEERS, "off, points"], lines))
    return section


def _losses(model: str, n: int, seed: int, fresh: int) -> dict[str, float]:
    x, y = make_classification(TRAIN + n + fresh, 20, n_informative=6, weights=[0.95], flip_y=0.02, random_state=seed)
    held, rest = slice(TRAIN, TRAIN + n), slice(TRAIN + n, None)
    trained = MODELS[model]().fit(x[:TRAIN], y[:TRAIN])
    scores = trained.predict_proba(x)[:, 1]
    said = {
        "uncalibrated": scores[rest],
        OURS: cal.fit(cal.Predictions.binary(scores[held], y[held]), "auto")(
            cal.Predictions.binary(scores[rest], y[rest])
        ).score,
    }
    for method in PEERS:
        peer = CalibratedClassifierCV(FrozenEstimator(trained), method=method).fit(x[held], y[held])
        said[method] = peer.predict_proba(x[rest])[:, 1]
    losses = {name: float(log_loss(y[rest], np.clip(s, 1e-12, 1 - 1e-12))) for name, s in said.items()}
    return losses | {"off": abs(float(said[OURS].mean() - y[rest].mean()))}
