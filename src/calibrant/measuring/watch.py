"""Watching a stream: an alarm when confidence is no longer honest, which may be looked at after every row."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core import wording
from calibrant.core.arrays import Array, Ints, rows_of
from calibrant.core.checks import share_inside
from calibrant.core.errors import InputError, unknown_name, visible
from calibrant.core.extras import Shape
from calibrant.core.notebook import html_table
from calibrant.core.plain import plain
from calibrant.core.predictions import Predictions
from calibrant.core.shapes import shape_words
from calibrant.measuring.evidence import Mode
from calibrant.measuring.followed import Followed
from calibrant.measuring.track import Alarm, Track

ALPHA = {"ever": 0.05, "change": 1e-4}  # unless told otherwise


class Watch:
    """Is every score right up to a tolerance? Evidence against it, after every row, in a state of fixed size.

    In mode "ever" the chance that a watch of honest scores ever raises an alarm is at most alpha, however long it runs
    and however often one looks. In mode "change" it takes 1/alpha rows or more on average, and a change after a long
    good time is found sooner. With `segments` (True for every group of the predictions as it appears, or their names)
    each is watched too, and alpha is shared: named ones and all rows get alpha / (number + 1) each; otherwise all rows
    get alpha / 2 and the j-th segment to appear alpha / ((j + 1) (j + 2)).

    >>> watch = Watch(tolerance=0.02)
    >>> watch.update(Predictions.from_confidence([0.9, 0.8, 0.7, 0.95], correct=[1, 0, 1, 0]))
    >>> round(watch.evidence, 8), watch.alarm is None
    (0.99414501, True)
    """

    def __init__(
        self,
        *,
        tolerance: float = 0.02,
        alpha: float | None = None,
        mode: Mode = "ever",
        segments: bool | Sequence[str] = False,
    ) -> None:
        if mode not in ALPHA:
            raise unknown_name("mode", str(mode), ALPHA)
        if not 0 <= tolerance < 1:
            expected, fix = "a share from 0 to below 1", "use 0.02 for two points"
            raise InputError("tolerance", expected=expected, got=f"{tolerance:g}", fix=fix)
        self.tolerance, self.alpha = float(tolerance), float(ALPHA[mode] if alpha is None else alpha)
        share_inside("alpha", self.alpha)
        self.mode: Mode = mode
        self.shape: Shape | None = None  # of the predictions, once there are any
        self.named = _names(segments) if not isinstance(segments, bool) else None
        self.by = self.named is not None or bool(segments)
        self.tracks: dict[str | None, Track] = {}
        for name in (None, *(self.named or ())):
            self._new_track(name)
        self.files: dict[str, Followed] = {}  # what a command has read of each file

    # -- what it says ---------------------------------------------------------------------------

    @property
    def n(self) -> int:
        return self.tracks[None].n

    @property
    def evidence(self) -> float:
        """Of all rows, whatever their segment."""
        return self.tracks[None].evidence

    @property
    def alarms(self) -> list[Alarm]:
        """The first of each segment, in the order in which they were raised."""
        found = [track.alarm for track in self.tracks.values() if track.alarm is not None]
        return sorted(found, key=lambda alarm: alarm.row)

    @property
    def alarm(self) -> Alarm | None:
        return next(iter(self.alarms), None)

    def limit(self, segment: str | None = None) -> float:
        """The evidence at which a segment (or all rows) raises an alarm."""
        if self.named is not None:
            return (len(self.named) + 1) / self.alpha
        if not self.by:
            return 1 / self.alpha
        place = self.tracks[segment].place
        return place * (place + 1) / self.alpha

    def history(self, segment: str | None = None) -> list[dict[str, float]]:
        """The evidence over time, at most 256 points: rows of the segment, evidence after them, limit."""
        limit = self.limit(segment)
        return [{"row": row, "evidence": 10.0**log, "limit": limit} for row, log in self.tracks[segment].points]

    def __str__(self) -> str:
        if self.alarms:
            return "\n".join(map(str, self.alarms))
        segment, track = max(self.tracks.items(), key=lambda item: item[1].evidence / self.limit(item[0]))
        where = "" if segment is None else f" in segment {visible(segment)}"
        among = f" and {wording.count(len(self.tracks) - 1, 'segment')}" if self.by else ""
        return (
            f"No alarm after {wording.count(self.n, 'row')}{among}: evidence {wording.significant(track.evidence)}"
            f"{where}, an alarm needs {wording.significant(self.limit(segment))}."
        )

    def _repr_html_(self) -> str:
        head = ("segment", "rows", "evidence", "limit", "alarm at row")
        rows = []
        for name, track in self.tracks.items():
            numbers = f"{track.n:,}", wording.significant(track.evidence), wording.significant(self.limit(name))
            alarm = "" if track.alarm is None else f"{track.alarm.row:,}"
            rows.append(("all rows" if name is None else visible(name), *numbers, alarm))
        return html_table(str(self), head, rows)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the verdict, the alarms, and where every segment stands."""
        rows = [
            {"segment": name, "n": t.n, "evidence": t.evidence, "limit": self.limit(name)}
            for name, t in self.tracks.items()
        ]
        head = {"alarm": bool(self.alarms), "sentence": str(self), "n": self.n, "mode": self.mode}
        options = {"tolerance": self.tolerance, "alpha": self.alpha}
        made: dict[str, Any] = plain({**head, **options, "alarms": [a.to_dict() for a in self.alarms], "tracks": rows})
        return made

    # -- what it takes --------------------------------------------------------------------------

    def update(self, p: Predictions | None) -> None:
        """Add rows, one or many; None adds nothing."""
        if p is None:
            return
        self._check(p)
        first, score, hit = self.n, p.score, p.hit.astype(np.float64)
        self._follow(None, score, hit, np.arange(first, first + p.n))
        if self.by and p.groups is not None:
            for name, rows in rows_of(p.groups).items():
                self._follow(name, score[rows], hit[rows], first + rows)

    def merge(self, other: "Watch") -> "Watch":
        """The watch of both streams; neither is changed.

        It goes by the evidence of both together: alarms that one of them raised alone stay there.
        """
        if self.mode == "change" or other.mode == "change":
            fix = "watch the rows in their order, in one place"
            raise InputError("merge", expected='watches with mode="ever"', got="one that looks for a change", fix=fix)
        mine, theirs = ((w.tolerance, w.alpha, w.by, w.named) for w in (self, other))
        if mine != theirs:
            fix = "make both with the same tolerance, alpha and segments"
            raise InputError("merge", expected=f"the same options ({mine})", got=str(theirs), fix=fix)
        both = Watch(tolerance=self.tolerance, alpha=self.alpha, segments=self.named or self.by)
        both.shape = self.shape or other.shape
        for part in (self, other):
            both._same_shape(part.shape)
            for name, track in part.tracks.items():
                if name not in both.tracks:
                    both._new_track(name)
                both.tracks[name] = both.tracks[name].merge(track)
        for name, track in both.tracks.items():
            if track.n and track.evidence >= both.limit(name):
                track.alarm = track.raised(name, both.n, both.limit(name), both.shape or "")
        both.files = dict(self.files)
        for name, one in other.files.items():
            both.files[name] = max(one, both.files.get(name, one), key=lambda read: read.rows)
        return both

    # -- on disk --------------------------------------------------------------------------------

    def to_json(self) -> str:
        from calibrant.measuring.watch_state import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "Watch":
        from calibrant.measuring.watch_state import from_json

        return from_json(text)

    def save(self, path: str | Path) -> None:
        from calibrant.core.disk import write_whole

        write_whole(path, lambda stream: stream.write(self.to_json().encode()))

    @classmethod
    def load(cls, path: str | Path) -> "Watch":
        file = Path(path)
        if not file.is_file():
            raise InputError(str(path), expected="a saved watch", got="no such file", fix="check the path")
        try:
            return cls.from_json(file.read_text(encoding="utf-8", errors="replace"))
        except InputError as error:
            raise InputError.inside(str(path), error) from None

    # -- how it works ---------------------------------------------------------------------------

    def _follow(self, segment: str | None, score: Array, hit: Array, rows: Ints) -> None:
        if segment not in self.tracks:
            if self.named is not None:
                return  # its rows count for all rows alone
            self._new_track(segment)
        track, limit = self.tracks[segment], self.limit(segment)
        before = replace(track, points=[])
        at = track.follow(score, hit, self.tolerance, self.mode, limit)
        if at is not None:
            then = before.until(score[: at + 1], hit[: at + 1], self.tolerance, self.mode)
            track.alarm = then.raised(segment, int(rows[at]) + 1, limit, self.shape or "")

    def _new_track(self, segment: str | None) -> None:
        self.tracks[segment] = Track(place=1 + len(self.tracks))

    def _check(self, p: Predictions) -> None:
        if p.weights is not None or p.extras.clusters is not None:  # which may go on in the next batch
            got = "weights" if p.weights is not None else "clusters"
            fix = "watch rows that come one by one: without weights, and one row of each cluster"
            raise InputError("watch", expected="rows that each count once", got=got, fix=fix)
        if self.by and p.groups is None:
            fix = "give groups with the predictions, or watch without segments"
            raise InputError("watch", expected="the group of every row", got="predictions without groups", fix=fix)
        self._same_shape(p.shape)

    def _same_shape(self, shape: Shape | None) -> None:
        if shape and self.shape and self.shape != shape:
            expected, fix = f"{shape_words(self.shape)} as before", "use one watch for each kind of predictions"
            raise InputError("watch", expected=expected, got=shape_words(shape), fix=fix)
        self.shape = shape or self.shape


def watch(
    p: Predictions,
    *,
    tolerance: float = 0.02,
    alpha: float | None = None,
    mode: Mode = "ever",
    segments: bool | Sequence[str] = False,
) -> Watch:
    """A watch of these predictions in their order; `update` it with what comes later.

    >>> print(watch(Predictions.from_confidence([0.9, 0.8, 0.7, 0.95], correct=[1, 0, 1, 0])))
    No alarm after 4 rows: evidence 0.9941, an alarm needs 20.
    """
    made = Watch(tolerance=tolerance, alpha=alpha, mode=mode, segments=segments)
    made.update(p)
    return made


def _names(segments: Sequence[str]) -> tuple[str, ...]:
    names = tuple(map(str, segments))
    if not names or len(set(names)) != len(names):
        got = "none" if not names else "a name twice"
        raise InputError("segments", expected="different names", got=got, fix="name each once, or say True")
    return names
