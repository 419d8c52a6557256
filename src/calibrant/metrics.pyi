from typing import Literal

from numpy.typing import ArrayLike

def accuracy(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Accuracy."""

def ace_nixon(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "mass",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Adaptive calibration error (Nixon)."""

def atb(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Averaged two-bin calibration error."""

def aupr_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """AUPR-error."""

def aupr_success(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """AUPR-success."""

def aurc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Area under the risk-coverage curve."""

def auroc_correct(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """AUROC of correctness."""

def average_precision(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Average precision."""

def avgce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Average calibration error."""

def brier(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    form: Literal["sum", "mean_k", "half", "top"] = "sum",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Brier score."""

def calibration(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    loss: Literal["nll", "brier"] = "nll",
    by: Literal["temperature", "isotonic"] = "temperature",
    folds: int = 5,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Calibration loss."""

def classwise(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    norm: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Class-wise calibration error."""

def cutoff(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Cutoff calibration error."""

def debiased(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "mass",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Debiased calibration error."""

def e50(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    span: float = 0.75,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Median calibration error (E50)."""

def e90(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    span: float = 0.75,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Calibration error of nine rows in ten (E90)."""

def eaurc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Excess AURC."""

def ece(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    norm: float = 1.0,
    dialect: Literal[
        "torchmetrics",
        "torch_uncertainty",
        "probmetrics",
        "netcal",
        "uncertainty_calibration",
        "relplot",
        "focal_calibration",
        "onmixup",
    ]
    | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Expected calibration error."""

def emax(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    span: float = 0.75,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Largest calibration error of a smooth curve (Emax)."""

def entropy(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Entropy."""

def error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Error rate."""

def fpr95(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    tpr: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """FPR at 95 % TPR."""

def gap(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Signed gap."""

def ici(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    span: float = 0.75,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Integrated calibration index (ICI)."""

def in_the_large(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Calibration in the large."""

def intercept(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Calibration intercept."""

def kde(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    norm: float = 1.0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """KDE calibration error."""

def ks(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    rank: int = 1,
    within: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """KS calibration error."""

def mce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    min_count: int = 1,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Maximum calibration error."""

def mmce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    width: float = 0.4,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Maximum mean calibration error."""

def nll(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    floor: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Negative log-likelihood."""

def oe_ratio(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Observed/expected ratio."""

def overconfidence(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Overconfidence error."""

def refinement(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    loss: Literal["nll", "brier"] = "nll",
    by: Literal["temperature", "isotonic"] = "temperature",
    folds: int = 5,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Refinement loss."""

def reliability(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Reliability."""

def resolution(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Resolution."""

def rmsce(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "width",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """RMS calibration error."""

def roc_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """ROC AUC."""

def sece(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    h: float = 0.01,
    form: Literal["normalised", "eq5"] = "normalised",
    leave_one_out: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Smooth expected calibration error (SECE)."""

def slope(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Calibration slope."""

def smooth(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    dialect: Literal["relplot"] | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Smooth calibration error."""

def tace(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    scheme: Literal["width", "mass"] = "mass",
    closed: Literal["right", "left"] = "right",
    mass_rule: Literal["sort", "midpoint", "interp", "stride"] = "sort",
    threshold: float = 0.01,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Thresholded adaptive calibration error."""

def uncertainty(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scope: Literal["event", "top"] = "event",
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
    logits: bool = False,
) -> float:
    """Uncertainty."""
