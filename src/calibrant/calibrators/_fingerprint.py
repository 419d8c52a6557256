"""A fingerprint of rows: enough to notice that a map is measured on the rows it was fitted on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.predictions import Predictions

COLUMNS = 9  # logits of a row that are looked at
ROUNDING = 1e5  # differences of logits count to five decimals
KEPT = 256  # smallest hashes kept: they stand for a random sample of the rows

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The smallest hashes of the rows (scores and label): the same rows have them, whatever their order."""

    n: int
    hashes: Hashes

    @classmethod
    def of(cls, p: Predictions) -> "Fingerprint":
        hashes = _hash(p)
        if p.n > 4 * KEPT:  # room for rows that occur several times
            hashes = np.partition(hashes, 4 * KEPT)[: 4 * KEPT]
        return cls(p.n, np.unique(hashes)[:KEPT])

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
    """One 64-bit number per row, from its label and a few differences of its logits.

    Differences are the same for logits, shifted logits and probabilities; rounding hides their last digits.
    """
    some = np.unique(np.linspace(0, p.k - 1, COLUMNS).astype(np.int64))
    z = p.logits_of(np.append(some, some[0]))
    steps = np.round(np.diff(z, axis=1) * ROUNDING)
    bits = np.clip(steps, -(2.0**62), 2.0**62).astype(np.int64).view(np.uint64)
    weights = np.cumprod(np.full(bits.shape[1], 0xBF58476D1CE4E5B9, dtype=np.uint64))  # powers, modulo 2^64
    mixed = np.uint64(0x9E3779B97F4A7C15) * (p.labels.astype(np.uint64) + np.uint64(1))
    mixed += (bits * weights).sum(axis=1)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))
