"""A fingerprint of rows: enough to notice that a map is measured on the rows it was fitted on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.predictions import Predictions

COLUMNS = 8  # probabilities of a row that are looked at, besides its confidence and that of its label
KEPT = 256  # smallest hashes kept: they stand for a random sample of the rows

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The smallest hashes of the rows (scores and label): the same rows have them, whatever their order."""

    n: int
    hashes: Hashes

    @classmethod
    def of(cls, p: Predictions) -> "Fingerprint":
        return cls(p.n, np.unique(_hash(p))[:KEPT])

    def seen(self, p: Predictions) -> float:
        """Share of the fingerprinted rows that are among these, about; 0 for none."""
        return float(np.isin(self.hashes, _hash(p)).mean()) if len(self.hashes) else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {"n": self.n, "hashes": [f"{h:016x}" for h in self.hashes]}

    @classmethod
    def from_dict(cls, state: Any) -> "Fingerprint | None":
        if state is None:
            return None
        return cls(int(state["n"]), np.array([int(h, 16) for h in state["hashes"]], dtype=np.uint64))


def _hash(p: Predictions) -> Hashes:
    """One 64-bit number per row, from its label, its confidence and the bits of a few of its probabilities."""
    some = np.unique(np.linspace(0, p.k - 1, COLUMNS).astype(np.int64))
    scores = np.concatenate([p.probs_of(some), p.confidence[:, None], p.true_prob[:, None]], axis=1)
    bits = scores.astype(np.float32).view(np.uint32).astype(np.uint64)  # rounded: logits and their softmax agree
    weights = np.arange(1, 2 * bits.shape[1], 2, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = np.uint64(0x9E3779B97F4A7C15) * (p.labels.astype(np.uint64) + np.uint64(1))
    mixed += (bits * weights).sum(axis=1)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))
