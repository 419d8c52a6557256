"""One list of promises, run over every measure in the catalogue."""

import dataclasses
import itertools
import math
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
from entry_docstrings import check_docstring
from entry_options import options_of, values_of
from synthetic import any_classes, suited

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError, UndefinedMeasureError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import Sampling
from calibrant.measures import Measure, find, make, names

BINARY = Predictions.binary([0.9, 0.4], [1, 0])  # of which alone the scope of a measure is an option

NAMES = names()
OF_ANY = any_classes(NAMES)  # the others read two classes
OTHER_DIALECTS = {"dialect"}  # tested with the peers they imitate

BINNINGS = [
    {"bins": 10},
    {"bins": 7, "closed": "left"},
    {"bins": 1},
    {"bins": 5, "scheme": "width"},
    *[{"bins": 6, "scheme": "mass", "mass_rule": mass_rule} for mass_rule in ("sort", "midpoint", "interp", "stride")],
]


def options(name):
    return options_of(find(name), without=OTHER_DIALECTS)


def refits(name):
    """Its resamples are the measure itself on repeated rows."""
    return not find(name).fixed_maps


def alternatives(name):
    """One instance per option and value, that option away from its default; and more ways to bin."""
    cls = find(name)
    results = [cls(), *(cls(**{option: value}) for option in options(name) for value in values_of(cls, option)[1:])]
    if "bins" in options(name):
        results += [cls(**binning) for binning in BINNINGS]
    return list(dict.fromkeys(results))


EVERY = [pytest.param(measure, id=spec_of(measure)) for name in NAMES for measure in alternatives(name)]


def same(a, b):
    """Equal up to rounding; a root near zero turns 1e-17 into 3e-9, so squares may agree instead."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) or abs(a * a - b * b) < 1e-13


# -- what it says about itself --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    cls = find(name)
    assert cls.title
    assert cls.title[0].isupper()
    assert cls.reference
    assert cls.direction in ("down", "up", "zero", "one", "none")
    low, high = cls.bounds
    assert low < high
    assert cls.resamples >= 100


def test_titles_are_unique():
    titles = [find(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_a_summary_a_caution_and_an_example(name):
    check_docstring(find(name))


@pytest.mark.parametrize("name", NAMES)
def test_is_a_frozen_dataclass(name):
    measure = make(name)
    assert isinstance(measure, Measure)
    assert dataclasses.is_dataclass(measure)
    assert measure == make(name)
    assert hash(measure) == hash(make(name))
    for field in dataclasses.fields(measure):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(measure, field.name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        measure.something = 1


@pytest.mark.parametrize("name", NAMES)
def test_definition_names_every_option(name):
    """Where an option matters, another value of it makes another definition."""
    definition = make(name).definition
    assert definition.strip()
    for option in options(name):
        values, scheme = values_of(find(name), option), {"mass_rule": "mass", "closed": "width"}.get(option)
        where = {"scheme": scheme} if scheme else {}  # in which the option matters
        results = [find(name)(**{option: value}, **where) for value in values]
        words = {m.definition_for(BINARY) if option == "scope" else m.definition for m in results}
        assert len(words) == len(values), option


def test_one_definition_means_one_number(tied):
    """Two ways to bin that are described in the same words give the same number."""
    ways = list(itertools.product(("width", "mass"), ("right", "left"), ("sort", "midpoint", "interp", "stride")))
    wrong = []
    for name in NAMES:
        seen = {}
        for scheme, closed, mass_rule in ways if "bins" in options(name) else ():
            measure = find(name)(bins=5, scheme=scheme, closed=closed, mass_rule=mass_rule)
            if not same(seen.setdefault(measure.definition, measure(tied)), measure(tied)):
                wrong.append(spec_of(measure))
    assert wrong == []


# -- names and options ----------------------------------------------------------------------------


@pytest.mark.parametrize("measure", EVERY)
def test_spec_makes_it_again(measure):
    assert make(spec_of(measure)) == measure


@pytest.mark.parametrize("name", NAMES)
def test_default_spec_is_the_name(name):
    assert spec_of(make(name)) == name


@pytest.mark.parametrize("name", NAMES)
def test_unknown_option_is_refused_with_the_nearest(name):
    options = [field.name for field in dataclasses.fields(find(name))]
    if not options:
        with pytest.raises(InputError, match="has no options"):
            make(f"{name}:bins=5")
        return
    option = options[0]
    with pytest.raises(InputError, match=f"did you mean '{option}'"):
        make(f"{name}:{option}x=1")


WRONG_WORDS = [
    (name, option, word)
    for name in NAMES
    for option, hint in options(name).items()
    if get_origin(hint) is Literal
    for word in get_args(hint)
]


@pytest.mark.parametrize(("name", "option", "word"), WRONG_WORDS)
def test_misspelt_value_is_refused_with_the_nearest(name, option, word):
    with pytest.raises(InputError, match=f"did you mean '{word}'"):
        make(f"{name}:{option}={word}x")


def test_misspelt_value_is_refused_in_python_too():
    """Not computed as something else: ECE(scheme="widht") must not quietly be an equal-mass ECE."""
    accepted = []
    for name, option in sorted({(name, option) for name, option, _ in WRONG_WORDS}):
        try:
            accepted.append(spec_of(find(name)(**{option: "widht"})))
        except InputError:
            continue
    assert accepted == []


@pytest.mark.parametrize("name", NAMES)
def test_wrong_numbers_are_refused(name):
    for option, hint in options(name).items():
        if hint in (int, float):
            for text in ("abc", "", "nan", "-1", "inf", "-inf"):
                with pytest.raises(InputError):
                    make(f"{name}:{option}={text}")
        if hint is int:
            for text in ("0", "2.5", "1e2"):
                with pytest.raises(InputError):
                    make(f"{name}:{option}={text}")
        if hint is bool:
            with pytest.raises(InputError):
                make(f"{name}:{option}=1")


# -- the number -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", EVERY)
def test_is_a_python_float_inside_its_bounds(measure, p, tied):
    for data in (suited(measure, p), suited(measure, tied)):
        value = measure(data)
        assert type(value) is float
        assert measure.bounds[0] <= value <= measure.bounds[1]


@pytest.mark.parametrize("name", NAMES)
def test_all_right_and_all_wrong(name, make_data):
    for data in ("all correct", "all wrong"):
        if "one class" in find(name).undefined_for:
            with pytest.raises(UndefinedMeasureError, match="one class only"):
                make(name)(suited(make(name), make_data(data)))
            continue
        value = make(name)(suited(make(name), make_data(data)))
        assert math.isfinite(value) or (math.isnan(value) and find(name).needs_both)


@pytest.mark.parametrize("name", NAMES)
def test_changes_nothing(name, p):
    p = suited(make(name), p)
    fresh = Predictions._from_valid(p.values.copy(), p.labels.copy(), p.score_type)
    measure = make(name)
    first = measure(p)
    assert np.array_equal(p.values, fresh.values)
    assert np.array_equal(p.labels, fresh.labels)
    for other in NAMES if p.k == 2 else OF_ANY:  # whatever ran before on the same object
        make(other)(p)
    assert measure(p) == first == measure(fresh)
    assert np.array_equal(p.confidence, fresh.confidence)
    assert np.array_equal(p.probs, fresh.probs)


@pytest.mark.parametrize("name", OF_ANY)
def test_accepts_half_precision(name):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(50, 3)).astype(np.float16)
    labels = rng.integers(0, 3, size=50)
    half, single = (Predictions.from_logits(a, labels) for a in (logits, logits.astype(np.float32)))
    assert make(name)(half) == make(name)(single)
    assert math.isfinite(make(name)(Predictions.from_probs(single.probs.astype(np.float16), labels)))


@pytest.mark.parametrize("name", OF_ANY)
def test_accepts_a_thousand_classes_and_few_rows(name):
    rng = np.random.default_rng(1)
    logits = 3 * rng.normal(size=(40, 1000))
    labels = np.where(rng.random(40) < 0.5, logits.argmax(axis=1), rng.integers(0, 1000, size=40))
    value = make(name)(Predictions.from_logits(logits, labels))
    assert make(name).bounds[0] <= value <= make(name).bounds[1]


@pytest.mark.parametrize("name", OF_ANY)
def test_reads_blocks_as_it_reads_the_whole(name, monkeypatch):
    """Predictions too large to keep are read in blocks of classes and chunks of rows."""
    rng = np.random.default_rng(2)
    logits, labels = 2 * rng.normal(size=(70, 9)), rng.integers(0, 9, size=70)
    whole = make(name)(Predictions.from_logits(logits, labels))
    monkeypatch.setattr("calibrant.core.predictions.constants.KEEP_ELEMENTS", 150)
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", 40)
    assert make(name)(Predictions.from_logits(logits, labels)) == pytest.approx(whole, abs=1e-12)


# -- resamples and simulations: the fast paths of intervals ---------------------------------------


def bootstrap_counts(n, resamples, seed):
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)


@pytest.mark.parametrize("measure", EVERY)
def test_the_resample_with_every_row_once_is_the_data(measure, p, tied):
    for data in (suited(measure, p), suited(measure, tied)):
        (value,) = measure.resample(data, np.ones((1, data.n), dtype=np.int64))
        assert same(float(value), measure(data))


@pytest.mark.parametrize("measure", [case for case in EVERY if not case.values[0].fixed_maps])
def test_a_resample_is_the_measure_on_the_repeated_rows(measure, p, tied):
    for data in (suited(measure, p), suited(measure, tied)):
        counts = bootstrap_counts(data.n, 4, seed=3)
        fast = measure.resample(data, counts)
        assert fast.shape == (4,)
        for value, c in zip(fast.tolist(), counts, strict=True):
            assert same(value, measure(data.take(np.repeat(np.arange(data.n), c))))


def test_a_resample_of_another_size_too(p):
    """Leave-one-out, subsamples: row i occurs counts[i] times, whatever the counts sum to."""
    counts = np.random.default_rng(4).integers(0, 4, size=p.n)
    repeated = p.take(np.repeat(np.arange(p.n), counts))
    measures = [make(name) for name in OF_ANY if refits(name)]
    wrong = [spec_of(m) for m in measures if not same(m.resample(p, counts[None])[0], m(repeated))]
    assert wrong == []


@pytest.mark.parametrize("name", [name for name in OF_ANY if refits(name)])
def test_a_resample_of_blocks_is_the_same(name, p, monkeypatch):
    counts = bootstrap_counts(p.n, 2, seed=5)
    whole = make(name).resample(p, counts)
    monkeypatch.setattr("calibrant.core.predictions.constants.KEEP_ELEMENTS", 100)
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", 32)
    blocks = make(name).resample(Predictions.from_logits(p.values, p.labels), counts)
    assert blocks == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_simulation_is_seeded_and_finite(name, p):
    p = suited(make(name), p)
    draws = [make(name).draws_if_calibrated(p, Sampling.of(p, seed=seed, resamples=1))[0] for seed in (1, 1, 2)]
    assert all(math.isfinite(value) for value in draws)
    assert draws[0] == draws[1]
    other = Predictions._from_valid(p.values, (p.labels + 1) % p.k, p.score_type)
    sees_labels = make(name)(other) != make(name)(p)
    clipped = draws[0] in make(name).bounds
    assert draws[0] != draws[2] or clipped or not sees_labels


@pytest.mark.parametrize("name", ["gap", "ece", "classwise", "ks", "mmce", "nll", "accuracy"])
def test_simulated_labels_follow_the_probabilities(name, p):
    """On average over simulations the gap is zero, accuracy is mean confidence and the NLL is the entropy."""
    average = make(name).draws_if_calibrated(p, Sampling.of(p, seed=6, resamples=200)).mean()
    if name == "gap":
        assert abs(average) < 0.02
    elif name == "accuracy":
        assert average == pytest.approx(p.confidence.mean(), abs=0.02)
    elif name == "nll":
        assert average == pytest.approx(make("entropy")(p), abs=0.03)
    else:
        assert average < make(name)(p)  # the data are overconfident
