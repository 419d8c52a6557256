"""How each peer computes what we compute, through its public functions.

Every peer that wants probabilities gets them from torch's softmax, the fastest one at hand. probmetrics is imported
where it is used: it wants numba but does not install it, and without numba the others can still run.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import calibration
import numpy as np
import numpy.typing as npt
import relplot
import torch
from netcal.metrics import ECE, MCE, MMCE
from netcal.scaling import TemperatureScaling
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from torchmetrics.functional.classification import (
    binary_auroc,
    binary_calibration_error,
    multiclass_calibration_error,
)

from benchmarks._data import Data

BINS = 15


@dataclass(frozen=True)
class Input:
    """Logits and labels as numpy arrays and as torch tensors that share their memory."""

    logits: torch.Tensor  # (n, k)
    labels: torch.Tensor  # (n,)

    @classmethod
    def of(cls, data: Data) -> "Input":
        return cls(torch.from_numpy(data.logits), torch.from_numpy(data.labels))

    @property
    def y(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.labels.numpy())

    def softmax(self) -> "Probs":
        return Probs(torch.softmax(self.logits, dim=1), self.labels)

    def take(self, rows: npt.NDArray[np.int64]) -> "Input":
        index = torch.from_numpy(rows)
        return Input(self.logits[index], self.labels[index])


@dataclass(frozen=True)
class Probs:
    """Probabilities and labels, with views that several calls may share."""

    probs: torch.Tensor  # (n, k)
    labels: torch.Tensor  # (n,)

    @property
    def p(self) -> npt.NDArray[Any]:
        return np.asarray(self.probs.numpy())

    @property
    def y(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.labels.numpy())

    @cached_property
    def top(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Confidence and correctness."""
        confidence, predicted = self.probs.max(dim=1)
        return confidence, predicted == self.labels

    @cached_property
    def columns(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Each class's probability and presence, for peers that know two classes only."""
        return [(column, (self.labels == c).long()) for c, column in enumerate(self.probs.T.contiguous())]


Binned = Callable[[Probs, int], float]  # with a number of bins
Single = Callable[[Input], float]


def thread_turn(number: int) -> None:
    """Torch with all its threads and with one in turn: on a busy machine one is often the faster."""
    torch.set_num_threads(1 if number % 2 else os.cpu_count() or 1)


# -- bin-based measures, by the columns of the benchmark study ---------------------------------------------------


def _torchmetrics(norm: str) -> Binned:
    return lambda q, bins: float(
        multiclass_calibration_error(q.probs, q.labels, num_classes=q.probs.shape[1], n_bins=bins, norm=norm)
    )


def _torchmetrics_classwise(q: Probs, bins: int) -> float:
    return float(np.mean([float(binary_calibration_error(*column, n_bins=bins)) for column in q.columns]))


def _netcal_classwise(q: Probs, bins: int) -> float:
    return float(np.mean([ECE(bins).measure(p.numpy(), y.numpy()) for p, y in q.columns]))


def _netcal_classwise_mass(q: Probs, bins: int) -> float:
    return float(np.mean([ECE(bins, equal_intervals=False).measure(p.numpy(), y.numpy()) for p, y in q.columns]))


def _relplot_ece(q: Probs, bins: int) -> float:
    confidence, correct = q.top
    return float(relplot.metrics.binnedECE(confidence.numpy(), correct.numpy().astype(float), nbins=bins))


BINNED: Mapping[str, Mapping[str, Binned]] = {
    "ECE": {
        "torchmetrics": _torchmetrics("l1"),
        "netcal": lambda q, bins: ECE(bins).measure(q.p, q.y),
        "uncertainty-calibration": lambda q, bins: calibration.get_ece(q.p, q.y, num_bins=bins),
        "relplot": _relplot_ece,
    },
    "ECE_em": {
        "netcal": lambda q, bins: ECE(bins, equal_intervals=False).measure(q.p, q.y),
        "uncertainty-calibration": lambda q, bins: calibration.get_ece_em(q.p, q.y, num_bins=bins),
    },
    "cwCE": {
        "torchmetrics, a call a class": _torchmetrics_classwise,
        "netcal, a call a class": _netcal_classwise,
        "uncertainty-calibration": lambda q, bins: calibration.get_ece(q.p, q.y, num_bins=bins, mode="marginal"),
    },
    "cwCE_em": {
        "netcal, a call a class": _netcal_classwise_mass,
        "uncertainty-calibration": lambda q, bins: calibration.get_ece_em(q.p, q.y, num_bins=bins, mode="marginal"),
    },
    "MCE": {
        "torchmetrics": _torchmetrics("max"),
        "netcal": lambda q, bins: MCE(bins).measure(q.p, q.y),
    },
}


# -- the temperature ---------------------------------------------------------------------------------------------


def _netcal_temperature(x: Input) -> float:
    probs = x.softmax().p.astype(np.float64)  # with float32 its numerical gradient is 0 and T stays 1
    return float(1 / TemperatureScaling().fit(probs, x.y).temperature.item())


def _probmetrics_temperature(x: Input) -> float:
    from probmetrics.calibrators.temperature_scaling import TemperatureScalingCalibrator
    from probmetrics.distributions import CategoricalLogits

    return float(1 / TemperatureScalingCalibrator().fit_torch(CategoricalLogits(x.logits), x.labels).invtemp_)


class _Logits(ClassifierMixin, BaseEstimator):
    """A trained classifier as scikit-learn sees one, whose features are its logits."""

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, logits: npt.NDArray[Any], labels: npt.NDArray[np.int64]) -> "_Logits":
        return self

    def predict(self, logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(logits.argmax(axis=1))

    def decision_function(self, logits: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return logits


def _sklearn_temperature(x: Input) -> float:
    scaling = CalibratedClassifierCV(FrozenEstimator(_Logits(x.logits.shape[1])), method="temperature")
    fitted = scaling.fit(x.logits.numpy(), x.y)
    return float(1 / fitted.calibrated_classifiers_[0].calibrators[0].beta_)


TEMPERATURE: Mapping[str, Single] = {
    "netcal": _netcal_temperature,
    "probmetrics": _probmetrics_temperature,
    "scikit-learn": _sklearn_temperature,
}


# -- single measures, by our names -------------------------------------------------------------------------------


def _single(family: str) -> dict[str, Single]:
    def one(measure: Binned) -> Single:
        return lambda x: measure(x.softmax(), BINS)

    return {name: one(measure) for name, measure in BINNED[family].items()}


def _probmetrics(metric: str) -> Single:
    def one(x: Input) -> float:
        from probmetrics.metrics import Metrics

        return float(Metrics.from_names([metric]).compute_all_from_labels_logits(x.labels, x.logits)[metric])

    return one


def _netcal_mmce(x: Input) -> float:
    return float(MMCE().measure(x.softmax().p, x.y))


def _relplot_smooth(x: Input) -> float:
    confidence, correct = x.softmax().top
    return float(relplot.smECE(confidence.numpy(), correct.numpy().astype(float)))


def _torchmetrics_auroc(x: Input) -> float:
    confidence, correct = x.softmax().top
    return float(binary_auroc(confidence, correct.long()))


def _sklearn_auroc(x: Input) -> float:
    confidence, correct = x.softmax().top
    return float(roc_auc_score(correct.numpy(), confidence.numpy()))


def _torch_nll(x: Input) -> float:
    return float(torch.nn.functional.cross_entropy(x.logits, x.labels))


def _torch_brier(x: Input) -> float:
    probs = torch.softmax(x.logits, dim=1)
    of_label = probs.gather(1, x.labels[:, None])[:, 0]
    return float((torch.linalg.vecdot(probs, probs) - 2 * of_label).mean() + 1)


def _sklearn_nll(x: Input) -> float:
    return float(log_loss(x.y, x.softmax().p, labels=np.arange(x.logits.shape[1])))


def _sklearn_brier(x: Input) -> float:
    return float(brier_score_loss(x.y, x.softmax().p, labels=np.arange(x.logits.shape[1])))


SINGLE: Mapping[str, Mapping[str, Single]] = {
    "ece": _single("ECE") | {"probmetrics": _probmetrics("ece-15")},
    "classwise": _single("cwCE"),
    "ece:scheme=mass": _single("ECE_em"),
    "mmce": {"netcal": _netcal_mmce},
    "kde": {},
    "smooth": {"relplot": _relplot_smooth, "probmetrics": _probmetrics("smece")},
    "auroc_correct": {"torchmetrics": _torchmetrics_auroc, "scikit-learn": _sklearn_auroc},
    "nll": {"torch": _torch_nll, "probmetrics": _probmetrics("logloss"), "scikit-learn": _sklearn_nll},
    "brier": {"torch": _torch_brier, "probmetrics": _probmetrics("brier"), "scikit-learn": _sklearn_brier},
}


def steps(measure: str, n: int, k: int) -> int:
    """What a peer's time grows with."""
    return n * n if measure == "mmce" else n * k


def bytes_needed(measure: str, n: int) -> int:
    """What a peer's n x n matrices of float32 take: residual pairs, differences, their size, the kernel."""
    return 4 * 4 * n * n if measure == "mmce" else 0
