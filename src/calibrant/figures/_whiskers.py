"""Whiskers of reliability diagrams: Wilson intervals of the outcomes in each bin; rows in clusters count less."""

from collections.abc import Callable, Sequence

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.curves.binning import Binning, Scheme
from calibrant.core.curves.curve import Bins, Curve
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.clustered_shares import cluster_obstacle, rows_of_clusters
from calibrant.core.statistics.fewest_rows import too_few_rows
from calibrant.core.statistics.shares import wilson
from calibrant.core.text.number_format import join_clauses, level
from calibrant.figures._base import Row
from calibrant.figures._layers import names_in

Ends = list[float | None]


def bin_whiskers(
    p: Predictions, curve: Callable[[], Curve], b: Bins, scheme: Scheme, share: float
) -> tuple[Ends, Ends]:
    """Both ends of the interval of each bin of the curve; None where rows come in too few clusters for one."""
    if cluster_obstacle(p):
        none: Ends = [None] * len(b.count)
        return none, none
    rows = b.count * b.weight_unit
    if p.clusters is not None:
        rows = np.minimum(rows, bin_worth(p, curve(), len(b.count), scheme))
    low, high = wilson(np.clip(b.accuracy, 0, 1), np.maximum(rows, 1e-9), share)
    return low.tolist(), high.tolist()


def bin_worth(p: Predictions, curve: Curve, bins: int, scheme: Scheme) -> Array:
    """The number of independent rows that each bin is worth, by the clusters of its rows, (bins,)."""
    assert p.clusters is not None
    bin_of = curve.bin_of(Binning(bins, scheme))
    inside = bin_of >= 0
    return rows_of_clusters(
        np.asarray(curve.outcomes, dtype=np.float64)[inside],
        None if p.weights is None else curve.weights[inside],
        p.clusters[curve.order][inside],
        bin_of[inside],
        bins,
    )


def known_clusters(p: Predictions) -> Row:
    """The number of clusters, where rows come in any."""
    return {} if p.clusters is None else {"clusters": int(p.clusters.max()) + 1}


def whisker_words(rows: Sequence[Row], share: float) -> str:
    """What the whiskers are, and why a model has none."""
    clusters = {row["model"]: row["clusters"] for row in rows if "clusters" in row}
    reasons = {name: reason for name, count in clusters.items() if (reason := too_few_rows(count, clusters=True))}
    words = []
    if len(reasons) < len(names_in(rows)):
        by_clusters = ", in which rows of one cluster share their noise" if len(clusters) > len(reasons) else ""
        words = [f"whiskers are Wilson {level(share)} intervals{by_clusters}"]
    return join_clauses([*words, *(f"{name} has no whiskers: {reason}" for name, reason in reasons.items())])
