"""A decision: a policy with its map, what it was decided by, and what it does on rows; JSON on disk."""

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.files import write_text
from calibrant.core.json import load_json, plain, read_typed, whole
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.maps.map import Map
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import ScoreType
from calibrant.core.text.number_format import whole_percent
from calibrant.deciding.policy import Policy
from calibrant.deciding.results import AnsweredShare, AnsweredSummary, CostLine

VERSION = 1
Aim = Literal["cost", "max_error", "min_precision"]
AIMS: tuple[Aim, ...] = ("cost", "max_error", "min_precision")


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """Scores in, decisions out: a class for every row, or -1 for handing it over. Labels are not needed.

    `map` calibrates the scores first; a map without steps leaves them as they are, and says what they must be. Nothing
    in it can run code.
    """

    aim: Aim
    policy: Policy
    map: Map
    settings: dict[str, Any]  # what was asked for: costs, or the bound and its confidence
    words: str  # what is done, and what is known about it
    n: int  # rows that it was decided on
    costs: tuple[CostLine, ...] = ()  # of a decision by cost: its own, and of other decisions, per row
    answered: AnsweredSummary | None = None  # of a decision with a guarantee
    rows_needed: int | None = None  # about so many in all, where the guarantee is not possible with these
    shares: tuple[AnsweredShare, ...] = ()  # what could be answered with other error rates, before and after the map
    notes: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = field(default=None, repr=False)

    @property
    def possible(self) -> bool:
        """Whether some rows can be answered or called positive as asked."""
        return self.policy.acts == "least_cost" or self.policy.threshold is not None

    @property
    def threshold(self) -> float | None:
        """The score from which on it acts; None where it acts on none, or goes by a matrix of costs."""
        return self.policy.threshold

    def __call__(self, p: Predictions | npt.ArrayLike, *, scores: ScoreType | None = None) -> Ints:
        """The class of every row, or -1: of predictions, or of an array of scores as the map takes them."""
        return self.policy(self.calibrate(p, scores=scores))

    def calibrate(self, p: Predictions | npt.ArrayLike, *, scores: ScoreType | None = None) -> Predictions:
        """The calibrated scores that the decision uses."""
        return self.map.apply(p if isinstance(p, Predictions) else self.map.without_labels(p, scores))

    def warn_of_leak(self, p: Predictions) -> None:
        """Warn where these rows are among those that it was decided on."""
        seen = self.fingerprint.share_seen(p) if self.fingerprint and p.labelled else 0.0
        if seen:
            warnings.warn(
                f"about {whole_percent(seen)} of these rows are among those this was decided on: they prove nothing.",
                LeakWarning,
                stacklevel=3,
            )

    # -- on disk --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "calibrant_decision": VERSION,
            "aim": self.aim,
            "words": self.words,
            "policy": self.policy.to_dict(),
            "settings": plain(self.settings),
            "n": self.n,
            "possible": self.possible,
            "rows_needed": self.rows_needed,
            "costs": plain(self.costs),
            "answered": plain(self.answered),
            "shares": plain(self.shares),
            "notes": list(self.notes),
            "map": self.map.to_dict(),
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_dict(),
        }

    @classmethod
    def from_dict(cls, state: Any) -> "Decision":
        """Read what `to_dict` wrote, every field that matters checked; anything else is an InputError."""
        if not _is_decision(state):
            raise InputError(
                "decision", expected="JSON written by calibrant decide", got="something else", fix="decide again"
            )
        if type(state["calibrant_decision"]) is not int or state["calibrant_decision"] != VERSION:
            got = f"{state['calibrant_decision']!r:.40}"
            raise InputError("decision", expected=f"version {VERSION}", got=got, fix="update calibrant")
        with whole("decision", fix="decide again"):
            m = Map.from_dict(state["map"])
            aim: Aim | None = next((known for known in AIMS if known == state["aim"]), None)
            if aim is None:
                raise ValueError(f"aim is {state['aim']!r:.40}")
            answered = state["answered"]
            return cls(
                aim=aim,
                policy=_check_policy(Policy.from_dict(read_typed(state, "policy", dict), m.k), m),
                map=m,
                settings=read_typed(state, "settings", dict),
                words=read_typed(state, "words", str),
                n=read_typed(state, "n", int),
                costs=tuple(CostLine.from_dict(line) for line in read_typed(state, "costs", list)),
                answered=None if answered is None else AnsweredSummary.from_dict(answered),
                rows_needed=None if state["rows_needed"] is None else read_typed(state, "rows_needed", int),
                shares=tuple(AnsweredShare.from_dict(share) for share in read_typed(state, "shares", list)),
                notes=tuple(str(note) for note in read_typed(state, "notes", list)),
                fingerprint=Fingerprint.from_dict(state["fingerprint"]),
            )

    def save(self, path: str | Path) -> None:
        write_text(path, json.dumps(self.to_dict(), allow_nan=False))

    def __repr__(self) -> str:
        return f"Decision({self.aim}: {self.words})"


def _check_policy(policy: Policy, m: Map) -> Policy:
    """The policy, if scores of the map can follow it."""
    if policy.acts == "positive" and m.task != "binary":
        raise ValueError(f"it acts on positives, the task is {m.task}")
    if policy.acts == "least_cost" and m.task not in ("binary", "multiclass"):
        raise ValueError(f"it chooses classes, the task is {m.task}")
    return policy


def _is_decision(state: Any) -> bool:
    return isinstance(state, dict) and "calibrant_decision" in state


def load_decision(path: str | Path) -> Decision:
    """A decision from the JSON file that `Decision.save` or `calibrant decide` wrote."""
    return load_json(path, Decision.from_dict, expected="a decision written by calibrant decide", fix="decide again")


def load_map_or_decision(path: str | Path) -> Map | Decision:
    """Load a map, or a decision with its map, from a JSON file."""

    def build(state: Any) -> Map | Decision:
        return Decision.from_dict(state) if _is_decision(state) else Map.from_dict(state)

    return load_json(path, build, expected="a map written by calibrant fit", fix="fit it again")
