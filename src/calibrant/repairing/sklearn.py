"""A scikit-learn classifier whose probabilities are calibrated by any calibrator of the catalogue."""

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.constants import PROBABILITY_FLOOR
from calibrant.repairing.chain import parse_chain
from calibrant.repairing.fit import fit

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.utils import _safe_indexing, assert_all_finite, indexable
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, has_fit_parameter
except ImportError as error:
    raise ImportError('calibrant.repairing.sklearn needs scikit-learn: pip install "calibrant[sklearn]"') from error


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fits the estimator on all rows, and a map on predictions for rows that the estimator had not seen.

    `method` is a calibrator, or "auto" for the one that `choose` finds best by cross-fitting: a temperature alone
    cannot move the mean of rare events. The map learns from `cv` cross-fitted models: a number of folds (fewer where
    a class is smaller), a splitter, or splits. With "prefit" the estimator is not fitted again, and all rows of `fit`
    must be new to it. Scores are `predict_proba`, or `decision_function` where there is none. `predict` is the class of
    the largest calibrated probability, as in scikit-learn: maps that reorder classes can change it. Of two classes the
    probability of the second, the positive one, is calibrated. Sample weights reach the estimator, if it takes any, and
    the map.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = np.array([[-3.0], [-1.0], [1.0], [3.0]] * 10), np.array(["no", "no", "yes", "yes"] * 10)
    >>> CalibratedClassifier(GaussianNB(), method="temperature", cv=4).fit(X, y).predict([[2.0]])
    array(['yes'], dtype='<U3')
    """

    map_: Map
    classes_: npt.NDArray[Any]

    def __init__(self, estimator: Any = None, *, method: str = "auto", cv: Any = 5) -> None:
        self.estimator = estimator  # None: logistic regression
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> "CalibratedClassifier":
        X, labels = indexable(X, y)  # X is Any: also data frames and sparse matrices, which are no ArrayLike
        if labels is None:
            raise ValueError("requires y to be passed, but the target y is None")
        targets = column_or_1d(labels, warn=True)
        assert_all_finite(targets, input_name="y")
        check_classification_targets(targets)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weights is not None and ((weights < 0).any() or not weights.any()):
            raise InputError("sample_weight", expected="some above 0, none below", got="others", fix="check them")
        if not self.__sklearn_tags__().classifier_tags.multi_class and len(np.unique(targets)) > 2:
            text = f"The type of the target is {type_of_target(targets)}: use vector or matrix instead of {self.method}"
            raise ValueError(f"Only binary classification is supported. {text}")
        if isinstance(self.cv, str) and self.cv == "prefit":
            check_is_fitted(self.estimator)
            self.estimator_, self.classes_ = self.estimator, self.estimator.classes_
            labels = _code_labels(targets, self.classes_)
            scores, rows = _scores(self.estimator_, X, len(self.classes_)), np.arange(len(labels))
        else:
            self.classes_, labels = np.unique(targets, return_inverse=True)
            if len(np.unique(labels if weights is None else labels[weights > 0])) < 2:
                raise ValueError("CalibratedClassifier needs samples of at least 2 classes, and got one class")
            scores, rows = self._cross_fitted(X, targets, labels, weights)
            self.estimator_ = _require_fitted(self._base(), X, targets, weights)
        few = None if weights is None else weights[rows]
        self.map_ = fit(_predictions(scores.values[rows], labels[rows], scores.score_type, few), self.method)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities (n, k), columns in the order of `classes_`."""
        check_is_fitted(self, "map_")
        probs = self.map_.apply(_scores(self.estimator_, X, len(self.classes_))).probs
        return np.asarray(probs / probs.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Array:
        return np.log(np.maximum(self.predict_proba(X), PROBABILITY_FLOOR))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        check_is_fitted(self, "map_")
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self._base())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.string = inner.input_tags.string
        tags.input_tags.categorical = inner.input_tags.categorical
        if self.method != "auto":
            with suppress(InputError):  # a name that does not exist is told by `fit`
                tags.classifier_tags.multi_class = not any(c.binary for c in parse_chain(self.method))
        return tags

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def _cross_fitted(
        self, X: Any, y: npt.NDArray[Any], labels: Ints, weights: Array | None
    ) -> tuple[Predictions, Ints]:
        """Scores of every row by a model that was fitted without it, and the rows that were ever held out."""
        from sklearn.model_selection import check_cv

        k = len(self.classes_)
        cv = self.cv
        if isinstance(cv, int):
            fewest = int(np.bincount(labels).min())
            if fewest < 2:
                name = self.classes_[np.bincount(labels).argmin()]
                raise InputError(
                    "y", expected="at least 2 samples of every class", got=f"1 of class {name}", fix="use cv='prefit'"
                )
            cv = min(cv, fewest)
        values, held_out, kind = np.zeros((len(labels), k)), np.zeros(len(labels), dtype=bool), "probs"
        for train, test in check_cv(cv, y, classifier=True).split(X, y):
            part = None if weights is None else weights[train]
            model = _require_fitted(clone(self._base()), _safe_indexing(X, train), y[train], part)
            if len(model.classes_) < k:
                raise InputError(
                    "cv", expected="every class in every fold", got="a fold without one", fix="use stratified folds"
                )
            scores = _scores(model, _safe_indexing(X, test), k)
            values[test], kind = scores.values, scores.score_type
            held_out[test] = True
        return _predictions(values, labels, kind), np.flatnonzero(held_out)


def _require_fitted(model: Any, X: Any, y: npt.NDArray[Any], weights: Array | None) -> Any:
    model = clone(model)
    if weights is not None and has_fit_parameter(model, "sample_weight"):
        return model.fit(X, y, sample_weight=weights)
    return model.fit(X, y)


def _scores(model: Any, X: Any, k: int) -> Predictions:
    """The scores of a model, without labels."""
    if hasattr(model, "predict_proba"):
        values = np.asarray(model.predict_proba(X), dtype=np.float64)
        kind = "probs"
    else:
        values, kind = np.asarray(model.decision_function(X), dtype=np.float64), "logits"
        if values.ndim == 1:  # the margin of the second of two classes: sigmoid(margin) is its probability
            values = np.stack([np.zeros_like(values), values], axis=1)
    if values.ndim != 2 or values.shape[1] != k:
        raise InputError(
            type(model).__name__,
            expected=f"scores of {k} classes",
            got=f"shape {values.shape}",
            fix="use one column each",
        )
    return _predictions(values, None, kind)


def _predictions(values: Floats, labels: Ints | None, kind: str, weights: Array | None = None) -> Predictions:
    """Predictions from scores; two classes are binary, and the second is positive, as in scikit-learn."""
    if values.shape[1] == 2:
        scores = values[:, 1] if kind == "probs" else values[:, 1] - values[:, 0]
        return Predictions.binary(scores, labels, logits=kind == "logits", weights=weights)
    make = Predictions.from_probs if kind == "probs" else Predictions.from_logits
    return make(values, labels, weights=weights)


def _code_labels(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Ints:
    """Labels as indices into `classes`."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise InputError("y", expected="classes the estimator knows", got=f"{unknown[0]!r}", fix="check the labels")
    order = np.argsort(classes)
    return np.asarray(order[np.searchsorted(classes, y, sorter=order)], dtype=np.int64)
