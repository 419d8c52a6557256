"""A watch sees the row at which the evidence suffices, however its rows are cut, and honest scores rarely alarm."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.json import write_state
from calibrant.monitoring.evidence import BETS, follow, start
from calibrant.monitoring.watch import VERSION

SCORES, HITS = np.array([0.9, 0.8, 0.7, 0.95]), np.array([1, 0, 1, 0])  # docs/methods/vectors.md#watching
VECTORS = {0.0: [1, 0.99318, 0.9752775, 1.00785877], 0.02: [0.99665686, 0.98679133, 0.96662578, 0.99414501]}


def stream(n, *, off=0.0, seed=0, groups=None):
    rng = np.random.default_rng(seed)
    s = rng.beta(5, 1.5, n)
    return cal.Predictions.from_confidence(s, rng.random(n) < s - off, groups=groups)


def slowly(scores, hits, tolerance, mode):
    """Row by row, as the definition says."""
    wealth, bets, path = np.ones((11, 2, 5)), BETS / (1 + tolerance), []
    for s, y in zip(scores, hits, strict=True):
        for place in (0, 1 + min(int(10 * s), 9)):
            kept = np.maximum(wealth[place], 1) if mode == "change" else wealth[place]
            wealth[place] = kept * np.stack([1 + bets * (s - tolerance - y), 1 + bets * (y - s - tolerance)])
        each = wealth.mean(axis=2)
        path.append(0.25 * each[0].sum() + each[1:].sum() / 40)
    return np.array(path), np.log(wealth)


@pytest.mark.parametrize("tolerance", VECTORS)
def test_the_numbers_of_the_definition(tolerance):
    seen = []
    watch = cal.Watch(tolerance=tolerance)
    for s, y in zip(SCORES, HITS, strict=True):
        watch.update(cal.Predictions.from_confidence([s], [y]))
        seen.append(watch.evidence)
    assert seen == pytest.approx(VECTORS[tolerance], abs=1e-8)
    assert [point["evidence"] for point in watch.history()] == pytest.approx(VECTORS[tolerance], abs=1e-8)


@pytest.mark.parametrize("mode", ["anytime", "change"])
@pytest.mark.parametrize("cuts", [[], [1, 2, 3], [255, 256, 257, 900]])
def test_it_is_the_slow_path_however_it_is_cut(mode, cuts):
    p = stream(1500, off=0.1, seed=3)
    path, logs = slowly(p.score, p.outcome, 0.02, mode)
    parts, at = [], start()
    for rows in np.split(np.arange(p.n), cuts):
        part, at = follow(at, p.score[rows], p.outcome[rows].astype(float), 0.02, mode)
        parts.append(part)
    assert np.concatenate(parts) == pytest.approx(path, rel=1e-10)
    assert at == pytest.approx(logs, abs=1e-9)


@pytest.mark.parametrize("size", [1, 7, 400, 3000])
def test_the_alarm_is_at_the_exact_row(size):
    p = stream(3000, off=0.08)
    path, _ = slowly(p.score, p.outcome, 0.02, "anytime")
    row = int(np.argmax(path >= 20)) + 1
    watch = cal.Watch(tolerance=0.02)
    for first in range(0, p.n, size):
        watch.update(p.take(range(first, min(first + size, p.n))))
    alarm = watch.alarm
    assert (alarm.row, alarm.n, alarm.limit) == (row, row, 20)
    assert alarm.evidence == pytest.approx(path[row - 1])
    assert alarm.score == pytest.approx(p.score[:row].mean())
    assert alarm.outcome == pytest.approx(p.outcome[:row].mean())
    assert alarm.side == "too high"
    assert str(watch).startswith(f"Alarm at row {row:,}: confidence ")


def test_honest_scores_raise_no_alarm_and_the_sentence_says_so():
    watch = cal.watch(stream(5000, seed=1))
    assert watch.alarms == []
    assert str(watch).startswith("No alarm after 5,000 rows: evidence ")


def test_a_change_after_a_long_good_time_is_found_sooner():
    rng = np.random.default_rng(5)
    s = rng.beta(5, 1.5, 24_000)
    y = rng.random(len(s)) < s - np.where(np.arange(len(s)) < 20_000, 0.0, 0.1)
    p = cal.Predictions.from_confidence(s, y)
    change, ever = cal.watch(p, mode="change"), cal.watch(p)
    assert change.alpha == 1e-4
    assert 20_000 < change.alarm.row < 21_500
    assert ever.alarm is None  # 4,000 bad rows do not outweigh 20,000 good ones


def test_one_bad_segment_is_named_and_alpha_is_shared():
    groups = np.array(["good", "bad", "fine"])[np.arange(6000) % 3]
    rng = np.random.default_rng(2)
    s = rng.beta(5, 1.5, 6000)
    y = rng.random(6000) < s - np.where(groups == "bad", 0.12, 0.0)
    p = cal.Predictions.from_confidence(s, y, groups=groups)
    seen = cal.watch(p, segments=True)
    assert [seen.limit(name) for name in (None, "good", "bad", "fine")] == pytest.approx([40, 120, 240, 400])
    [bad] = seen.alarms
    assert bad.segment == "bad"
    alone = cal.watch(p.take(groups == "bad"), alpha=0.05 / 12)
    assert (bad.n, bad.row) == (alone.alarm.row, 3 * (alone.alarm.row - 1) + 2)
    assert "Alarm in segment bad at row" in str(seen)
    named = cal.watch(p, segments=["bad", "other"])
    assert [named.limit(name) for name in named.segments] == pytest.approx([60, 60, 60])
    assert named.segments["other"].n == 0
    assert 1 / named.limit() + 2 / named.limit("bad") == pytest.approx(0.05)


def test_binary_scores_are_watched_as_the_positive_class():
    rng = np.random.default_rng(0)
    s = rng.random(4000) * 0.2
    watch = cal.watch(cal.Predictions.binary(s, rng.random(4000) < 2 * s))
    assert watch.alarm.side == "too low"
    assert "P(positive)" in str(watch)
    assert "are positive" in str(watch)


def test_workers_merge_by_addition():
    groups = np.array(["a", "b"])[np.arange(4000) % 2]
    p = stream(4000, off=0.08, groups=groups)
    whole, parts = cal.watch(p, segments=True), [cal.Watch(segments=True), cal.Watch(segments=True)]
    for part, rows in zip(parts, np.split(np.arange(p.n), [1000]), strict=True):
        part.update(p.take(rows))
    both = parts[0].merge(parts[1])
    assert both.n == 4000
    for name, track in whole.segments.items():
        assert both.segments[name].log_wealth == pytest.approx(track.log_wealth, abs=1e-9)
    assert both.alarm.row == 4000
    assert parts[0].n == 1000


@pytest.mark.parametrize("mode", ["anytime", "change"])
def test_the_state_comes_back(mode, tmp_path):
    groups = np.array(["a", "b"])[np.arange(4000) % 2]
    p = stream(4000, off=0.1, groups=groups)
    watch, halves = cal.Watch(mode=mode, segments=True), np.split(np.arange(p.n), 2)
    watch.update(p.take(halves[0]))
    watch.save(tmp_path / "watch.json")
    again = cal.Watch.load(tmp_path / "watch.json")
    assert again.to_json() == watch.to_json()
    for one in (watch, again):
        one.update(p.take(halves[1]))
    assert again.to_json() == watch.to_json()
    assert again.to_dict() == watch.to_dict()
    assert len(watch.history()) <= 256
    empty = cal.Watch(mode=mode, segments=["x"])
    assert cal.Watch.from_json(empty.to_json()).to_json() == empty.to_json()


CHANGES = [
    lambda s: s.update(mode="never"),
    lambda s: s.update(alpha=2),
    lambda s: s.update(tolerance="0.02"),
    lambda s: s.update(segments="a"),
    lambda s: s.update(task="round"),
    lambda s: s.update(files={"a.csv": -1}),
    lambda s: s.update(evidence=[{}]),
    lambda s: s["evidence"][0].update(n=True),
    lambda s: s["evidence"][0].update(n=-1),
    lambda s: s["evidence"][0].update(step=0),
    lambda s: s["evidence"][0].update(outcome_sum="many"),
    lambda s: s["evidence"][0].update(log_wealth=[[0.0]]),
    lambda s: s["evidence"][0].update(history=[[1]]),
    lambda s: s["evidence"][0].update(alarm={"row": 1}),
    lambda s: s["evidence"][1].update(segment=1),
]


@pytest.mark.parametrize("change", range(len(CHANGES)))
def test_a_damaged_state_is_refused(change):
    state = json.loads(cal.watch(stream(50, groups=["a", "b"] * 25), segments=True).to_json())
    CHANGES[change](state)
    with pytest.raises(cal.InputError, match="expected a state as it was saved"):
        cal.Watch.from_json(json.dumps(state))
    fields = {name: value for name, value in state.items() if name not in ("calibrant_watch", "sha256")}
    with pytest.raises(cal.InputError, match="expected a whole one, got a damaged one"):
        cal.Watch.from_json(write_state("watch", VERSION, fields))


@pytest.mark.parametrize(("text", "says"), [("[]", "something else"), ('{"calibrant_watch": 1}', "version 3")])
def test_another_file_or_version_is_refused(text, says, tmp_path):
    (tmp_path / "w.json").write_text(text)
    with pytest.raises(cal.InputError, match=rf"w\.json: watch: .*{says}"):
        cal.Watch.load(tmp_path / "w.json")
    with pytest.raises(cal.InputError, match="no such file"):
        cal.Watch.load(tmp_path / "absent.json")


def test_misuse_is_explained():
    p = stream(10)
    for options, says in [
        ({"alpha": 0}, "strictly between"),
        ({"tolerance": -0.1}, "from 0 to below 1"),
        ({"tolerance": float("nan")}, "from 0 to below 1"),
        ({"mode": "chnge"}, "did you mean 'change'"),
        ({"segments": []}, "different names"),
        ({"segments": ["a", "a"]}, "different names"),
        ({"segments": True}, "the group of every row"),
    ]:
        with pytest.raises(cal.InputError, match=says):
            cal.watch(p, **options)
    watch = cal.watch(p)
    watch.update(None)
    assert watch.n == 10
    with pytest.raises(cal.InputError, match="as before"):
        watch.update(cal.Predictions.binary([0.1, 0.2], [0, 0]))
    for extra in ({"weights": [1, 2]}, {"clusters": [0, 0]}):
        with pytest.raises(cal.InputError, match="each count once"):
            watch.update(cal.Predictions.from_confidence([0.1, 0.2], [0, 1], **extra))
    with pytest.raises(cal.InputError, match="looks for a change"):
        watch.merge(cal.Watch(mode="change"))
    with pytest.raises(cal.InputError, match="the same options"):
        watch.merge(cal.Watch(alpha=0.01))
