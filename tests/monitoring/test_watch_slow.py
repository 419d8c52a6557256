"""What a watch promises, on thousands of streams looked at after every row. The numbers stand in docs/streams.md."""

import numpy as np
import pytest

import calibrant as cal

STREAMS, ROWS = 2000, 10_000
ALPHA = 0.05


def alarm_rows(change, *, streams=STREAMS, rows=ROWS, **options):
    """The row of the alarm in each stream, 0 where there is none; `change(s, row)` is the chance of a hit."""
    values = np.zeros(streams, dtype=np.int64)
    number = np.arange(rows)
    for i in range(streams):
        rng = np.random.default_rng(i)
        s = rng.beta(5, 1.5, rows)
        hit = rng.random(rows) < np.clip(change(s, number), 0, 1)
        watch = cal.watch(cal.Predictions.from_confidence(s, hit), **options)
        values[i] = watch.alarm.row if watch.alarm else 0
    return values


def tempered(s, factor):
    return 1 / (1 + ((1 - s) / s) ** (1 / factor))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "off", "tolerance"), [("calibrated", 0, 0.0), ("off by the tolerance", 0.02, 0.02)])
def test_false_alarms_are_at_most_alpha(name, off, tolerance):
    share = (alarm_rows(lambda s, _: s - off, tolerance=tolerance, alpha=ALPHA) > 0).mean()
    print(f"{name}: {100 * share:.2f} % alarms")
    assert share <= ALPHA


# docs/methods/intervals.md#watching-a-stream
POWER = {  # chance of a hit, least share of alarms in 5,000 rows, largest median row
    "too high by 0.05": (lambda s, _: s - 0.05, 0.99, 690),
    "too high by 0.03": (lambda s, _: s - 0.03, 0.97, 1800),
    "too low by 0.05": (lambda s, _: s + 0.05, 0.99, 600),
    "logits times 1.5": (lambda s, _: tempered(s, 1.5), 0.99, 450),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", POWER)
def test_what_is_wrong_is_found(name):
    change, least, latest = POWER[name]
    rows = alarm_rows(change, streams=400, rows=5000, tolerance=0.0, alpha=ALPHA)
    share, median = (rows > 0).mean(), np.median(rows[rows > 0])
    print(f"{name}: {100 * share:.1f} % alarms, median row {median:,.0f}")
    assert share >= least
    assert median <= latest


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "latest"), [(1e-4, 1400), (1e-5, 1700)])
def test_a_change_is_found_and_its_absence_is_not(alpha, latest):
    options = {"tolerance": 0.0, "alpha": alpha, "mode": "change", "streams": 200, "rows": 20_000}
    quiet = (alarm_rows(lambda s, _: s, **options) > 0).mean()
    rows = alarm_rows(lambda s, row: s - np.where(row < 5000, 0.0, 0.05), **options)
    after = rows[rows > 5000] - 5000
    text = f"{len(after) / 2:.1f} % found, median after {np.median(after):,.0f} rows"
    print(f"alpha {alpha:g}: {100 * quiet:.1f} % false, {text}")
    assert quiet <= 0.03
    assert len(after) >= 195
    assert np.median(after) <= latest
