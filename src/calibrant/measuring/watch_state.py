"""The state of a watch on disk: JSON that is read field by field, and numbers that must fit together."""

import json
from typing import Any, cast, get_args

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.extras import Shape
from calibrant.core.plain import plain
from calibrant.core.schema import checked, parse_json, typed, whole
from calibrant.measuring.evidence import SHAPE, Mode
from calibrant.measuring.followed import read_followed
from calibrant.measuring.state import MOST_ROWS, SLACK
from calibrant.measuring.track import MOST_LOG, Alarm, Track
from calibrant.measuring.watch import Watch

VERSION = 1
FIX = "start a new watch"


def to_json(watch: Watch) -> str:
    head = {
        "calibrant_watch": VERSION,
        "mode": watch.mode,
        "tolerance": watch.tolerance,
        "alpha": watch.alpha,
        "segments": watch.by if watch.named is None else list(watch.named),
        "shape": watch.shape,
        "files": {name: plain(read) for name, read in watch.files.items()},
    }
    tracks = [{"segment": name, **_written(track)} for name, track in watch.tracks.items()]
    return json.dumps({**head, "tracks": tracks}, allow_nan=False)


def from_json(text: str) -> Watch:
    try:
        state = parse_json(text)
        version = state["calibrant_watch"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("watch", expected="JSON written by Watch.save", got="something else", fix=FIX) from error
    if type(version) is not int or version != VERSION:
        fix = "use the version of calibrant that wrote it, or start a new watch"
        raise InputError("watch", expected=f"version {VERSION}", got=f"{version!r:.40}", fix=fix)
    with whole("watch", fix=FIX):
        segments = state["segments"]
        if type(segments) is not bool and not (type(segments) is list and all(type(s) is str for s in segments)):
            raise ValueError(f"segments are {segments!r:.40}")
        tolerance, alpha = (_number(state, name) for name in ("tolerance", "alpha"))
        mode = cast(Mode, typed(state, "mode", str))
        watch = Watch(tolerance=tolerance, alpha=alpha, mode=mode, segments=segments)
        watch.shape, watch.files = state["shape"], read_followed(typed(state, "files", dict))
        if watch.shape not in (None, *get_args(Shape)):
            raise ValueError(f"shape is {watch.shape!r:.40}")
        _read_tracks(watch, typed(state, "tracks", list))
        return watch


def _written(track: Track) -> dict[str, Any]:
    made = {name: plain(getattr(track, name)) for name in ("n", "score_sum", "hit_sum", "step", "points", "alarm")}
    return {**made, "logs": track.logs.tolist()}


def _read_tracks(watch: Watch, tracks: list[Any]) -> None:
    expected = [None, *(watch.named or ())]
    names = [one["segment"] for one in tracks]
    if names[: len(expected)] != expected or len(set(names)) != len(names):
        raise ValueError("segments of the tracks are not those of the watch")
    if len(names) > len(expected) and (not watch.by or watch.named is not None):
        raise ValueError("more tracks than segments")
    for place, (name, one) in enumerate(zip(names, tracks, strict=True), 1):
        if name is not None and type(name) is not str:
            raise ValueError(f"segment is {name!r:.40}")
        watch.tracks[name] = _read_track(one, place, watch.mode == "ever")
    parts = sum(track.n for track in watch.tracks.values()) - watch.n
    if parts > watch.n or (watch.by and watch.named is None and parts != watch.n) or (watch.n > 0) != bool(watch.shape):
        raise ValueError(f"segments of {parts} rows do not add up to {watch.n}")


def _read_track(one: Any, place: int, additive: bool) -> Track:
    n, step = typed(one, "n", int), typed(one, "step", int)
    score_sum, hit_sum = _number(one, "score_sum"), _number(one, "hit_sum")
    logs = np.array(typed(one, "logs", list), dtype=np.float64)
    slack = SLACK * (1 + n)
    if not (0 <= n <= MOST_ROWS and -slack <= score_sum <= n + slack and 0 <= hit_sum <= n and step >= 1):
        raise ValueError(f"{hit_sum:g} hits and scores of {score_sum:g} in {n} rows")
    if logs.shape != SHAPE or not np.isfinite(logs).all() or (n == 0 and logs.any()):
        raise ValueError("wealth is not that of the bets")
    if additive and np.abs(logs[0] - logs[1:].sum(axis=0)).max() > SLACK * (1 + np.abs(logs).max()):
        raise ValueError("wealth of the bins is not that of all rows")
    points = [(row, float(log)) for row, log in typed(one, "points", list)]
    rows = [row for row, _ in points]
    if any(not abs(log) <= MOST_LOG for _, log in points):
        raise ValueError("points of the evidence are beyond any")
    if any(type(row) is not int for row in rows) or rows != sorted(set(rows)) or any(not 1 <= row <= n for row in rows):
        raise ValueError("points are not in the order of their rows")
    alarm = None if one["alarm"] is None else Alarm(**checked(Alarm, one["alarm"]))
    if alarm is not None and not (1 <= alarm.n <= n and alarm.n <= alarm.row):
        raise ValueError("an alarm lies behind the rows")
    return Track(place, logs, n, score_sum, hit_sum, alarm, points, step)


def _number(state: Any, name: str) -> float:
    value = state[name]
    if type(value) not in (int, float):
        raise ValueError(f"{name} is {value!r:.40}")
    return float(value)
