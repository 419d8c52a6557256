"""Whatever state of an accumulator or a watch loads, it measures finitely."""

import functools
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions


@functools.cache
def rows():
    rng = np.random.default_rng(3)
    z = 2 * rng.normal(size=(40, 3))
    labels = np.where(rng.random(40) < 0.7, z.argmax(axis=1), rng.integers(0, 3, 40))
    return Predictions.from_logits(z, labels, groups=np.array(["a", "b"])[np.arange(40) % 2])


@functools.cache
def states():
    """JSON of an accumulator, of some by key, and of two watches."""
    one, each = (
        cal.Accumulator(["accuracy", "nll", "ece:bins=5", "gap"]),
        cal.Accumulators(by="group", measures=["ece"]),
    )
    ever, change = cal.Watch(segments=True), cal.Watch(mode="change")
    for state in (one, ever, change):
        state.update(rows())
    each.update(rows(), {"group": rows().groups})
    return one.to_json(), each.to_json(), ever.to_json(), change.to_json()


def numbers(state, place=()):
    """Where the numbers of a state lie."""
    inside = state.items() if isinstance(state, dict) else enumerate(state) if isinstance(state, list) else ()
    for key, value in inside:
        if type(value) in (int, float):
            yield (*place, key)
        yield from numbers(value, (*place, key))


@functools.cache
def places(kind):
    return tuple(numbers(json.loads(states()[kind])))


@st.composite
def changed(draw, kind):
    """The state with some of its numbers a little off, scaled all together, or anything at all."""
    state = json.loads(states()[kind])
    anything = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20)
    for place in draw(st.lists(st.sampled_from(places(kind)), max_size=3)):
        inside = state
        for key in place[:-1]:
            inside = inside[key]
        now = inside[place[-1]]
        near = st.sampled_from([now, now + 1, now * 2, -now, now * (1 + 1e-12), 0, float(now)])
        inside[place[-1]] = draw(near | anything)
    return json.dumps(state)


def loaded(load, text):
    try:
        return load(text)
    except InputError:
        return None


def finite(value):
    return json.loads(json.dumps(value, allow_nan=False)) is not None


def assert_finite(measurement):
    """A value, and either an interval around it or the reason why there is none."""
    assert np.isfinite(measurement.value), measurement
    if measurement.reason is None:
        assert -np.inf < measurement.low <= measurement.value <= measurement.high < np.inf, measurement
    else:
        assert (measurement.low, measurement.high) == (None, None)


TRIES = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@TRIES
@given(changed(0))
def test_an_accumulator_that_loads_measures_finitely(text):
    a = loaded(cal.Accumulator.from_json, text)
    if a is None or a.n == 0:
        return
    for m in a.measure_all():
        assert_finite(m)
    a.update(rows())
    assert finite([m.to_dict() for m in a.measure_all()])
    assert finite([m.to_dict() for m in a.merge(cal.Accumulator.from_json(states()[0])).measure_all()])


@TRIES
@given(changed(1))
def test_accumulators_by_key_that_load_measure_finitely(text):
    each = loaded(cal.Accumulators.from_json, text)
    for _, a in each.items() if each is not None else ():
        for m in a.measure_all() if a.n else ():
            assert_finite(m)


@TRIES
@given(st.sampled_from([2, 3]).flatmap(changed))
def test_a_watch_that_loads_goes_on_finitely(text):
    watch = loaded(cal.Watch.from_json, text)
    if watch is None:
        return
    for _ in range(2):
        assert finite(watch.to_dict())
        assert finite([watch.history(name) for name in watch.segments])
        assert all(0 <= track.evidence < np.inf for track in watch.segments.values())
        watch.update(rows())


def test_the_whole_states_load():
    for load, text in zip(
        (cal.Accumulator, cal.Accumulators, cal.Watch, cal.Watch),
        states(),
        strict=True,
    ):
        assert load.from_json(text).to_json() == text


def test_counts_whose_multiples_overflow_are_refused():
    state = json.loads(states()[0])
    state["sums"]["histogram"][0][69] = 2.5e306
    with pytest.raises(InputError):
        cal.Accumulator.from_json(json.dumps(state))
