"""Clamps tried by hand and by fits, on the network that comes with the package."""

import threading

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import calibrant as cal
from calibrant.core.statistics.temperature import find_temperature
from calibrant.data import CLAMP_RUN
from calibrant.measures import make
from calibrant.rescorers.clamping import NeuralClamping
from calibrant.rescoring import clamp_trials
from calibrant.rescoring.clamp_trials import ClampTrials, InterruptedFitError, open_subject


@pytest.fixture(scope="module")
def subject(module_patch):
    """The network with fewer images, so that fits take no time."""
    for name in ("MOST_IMAGES", "MOST_JUDGED"):
        module_patch.setattr(clamp_trials, name, 300)
    open_subject.cache_clear()
    yield open_subject(CLAMP_RUN)
    open_subject.cache_clear()


@pytest.fixture(scope="module")
def module_patch():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture
def trials(subject):
    return ClampTrials(subject)


def test_the_network_is_small_and_overconfident(trials):
    assert sum(file.stat().st_size for file in CLAMP_RUN.iterdir()) < 1_000_000
    p = trials.predict()
    assert (p.n, p.k) == (300, 10)
    assert p.mean(p.correct) > 0.75
    assert make("gap")(p) > 0.03


def test_predictions_follow_the_temperature_and_the_strength(trials):
    with torch.no_grad():
        plain = trials.network(trials.inputs).double().numpy()
        trials.delta = torch.full_like(trials.delta, 0.1)
        some = trials.network(trials.inputs + 0.05).double().numpy()
    np.testing.assert_allclose(trials.predict(2.0, 0.0).values, plain / 2, atol=1e-4)
    np.testing.assert_allclose(trials.predict(2.0, 0.5).values, some / 2, atol=1e-4)
    for T, strength in ((0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (1.0, 11.0)):
        with pytest.raises(cal.InputError, match="move the sliders back"):
            trials.predict(T, strength)


def test_pictures_show_the_images_and_what_is_added(trials):
    before = trials.pictures()
    assert before.largest == 0
    assert set(before.delta.ravel()) == {128}
    images = trials.subject.judged.part.images
    np.testing.assert_array_equal(before.plain, images[: len(before.plain)])
    np.testing.assert_array_equal(before.plain, before.perturbed)
    (std,) = trials.subject.judged.pixels.std
    trials.delta[0, 3, 4] = 10 / 255 / std
    after = trials.pictures(2.0)
    assert after.largest == pytest.approx(10, abs=1e-3)
    assert after.delta[3, 4, 0] == 255
    for plain, perturbed in zip(after.plain, after.perturbed, strict=True):
        assert int(perturbed[3, 4, 0]) == min(int(plain[3, 4, 0]) + 20, 255)


def test_fits_are_those_of_the_library_and_are_kept(trials, subject):
    T, p = trials.fit("temperature")
    assert pytest.approx(find_temperature(trials._calibration()).T) == T
    assert trials.tries[0].values["nll"] == make("nll")(p)
    assert trials.fit("vector")[0] is None
    shares = []
    T, p = trials.fit("clamping_ce", on_share=shares.append)
    low, high = subject.input_range
    expected = NeuralClamping(gamma=0.0, low=low, high=high, batch=500).fit(subject.network, subject.calibration)
    assert float(expected.T) == pytest.approx(T, rel=1e-6)
    np.testing.assert_allclose(trials.delta.numpy(), expected.delta.numpy(), atol=1e-6)
    assert trials.tries[2].delta_norm == pytest.approx(float(expected.delta.norm()), rel=1e-5)
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] <= 1
    assert [t.title for t in trials.tries] == [
        "temperature scaling",
        "vector scaling",
        "Neural Clamping, cross-entropy",
    ]
    with pytest.raises(cal.InputError, match="method"):
        trials.fit("./mine.py")


def test_a_cancelled_fit_changes_nothing(trials):
    stop = threading.Event()
    with pytest.raises(InterruptedFitError):
        trials.fit("clamping_gamma", on_share=lambda share: stop.set(), stop=stop)
    assert trials.tries == []
    assert not trials.delta.any()
    assert all(not parameter.grad_fn for parameter in trials.network.parameters())


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(cal.InputError, match=r"run\.json"):
        open_subject(tmp_path)
