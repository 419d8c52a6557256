"""A state of an accumulator or a watch loads as it was saved, or not at all."""

import functools
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
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


LOADERS = (cal.Accumulator, cal.Accumulators, cal.Watch, cal.Watch)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data(), st.sampled_from(range(4)))
def test_a_state_with_another_number_is_refused(data, kind):
    state = json.loads(states()[kind])
    *way, last = data.draw(st.sampled_from(places(kind)))
    inside = state
    for key in way:
        inside = inside[key]
    now = inside[last]
    near = st.sampled_from([now + 1, now * 2, -now, now * (1 + 1e-12), None, str(now), [now]])
    value = data.draw(near | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20))
    assume(type(value) is not type(now) or value != now)
    inside[last] = value
    with pytest.raises(InputError):
        LOADERS[kind].from_json(json.dumps(state))


def test_the_whole_states_load():
    for load, text in zip(LOADERS, states(), strict=True):
        assert load.from_json(text).to_json() == text
