"""Reports that several tests look at: one model with hostile names in every place, and three models."""

import numpy as np
import pytest

from calibrant.core.predictions import Predictions
from calibrant.data import DEMO_TEST, DEMO_VAL
from calibrant.reporting.build import build
from calibrant.reporting.page import page

ROWS = 900
SCRIPT = "</script><script>window.pwned = 1</script>"
IMAGE = '<img src="http://127.0.0.1:9/x.png" onerror="window.pwned = 2">'
QUOTE = "\"'><svg onload=window.pwned=3>"


@pytest.fixture(scope="session")
def val():
    return Predictions.load(DEMO_VAL).take(np.arange(ROWS))


@pytest.fixture(scope="session")
def test():
    """Rows of the demo with a group for each."""
    p = Predictions.load(DEMO_TEST).take(np.arange(ROWS))
    groups = np.where(np.arange(ROWS) % 3, "plain", IMAGE)
    return Predictions.from_logits(p.values, p.labels, groups=groups)


@pytest.fixture(scope="session")
def one(test, val):
    names = [SCRIPT, IMAGE, QUOTE, "{{ 7 * 7 }}", "a|b", "[x](javascript:1)", "&amp;", "Z" * 90, "ünï", "plain"]
    return build(
        {f"net {SCRIPT}": test},
        fit_on={f"net {SCRIPT}": val},
        class_names=names,
        cost="wrong=5,abstain=1",
        title=f"Report {QUOTE}",
        command=f"calibrant report '{SCRIPT}.npz'",
        resamples=60,
    )


@pytest.fixture(scope="session")
def three():
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(400, 3))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    models = {
        "sharp": Predictions.from_logits(4 * z, labels),
        "honest": Predictions.from_logits(z, labels),
        f"noisy {QUOTE}": Predictions.from_logits(z + rng.normal(size=z.shape), labels),
    }
    return build(models, calibrators=["temperature", "isotonic"], resamples=60)


@pytest.fixture(scope="session")
def text(one):
    """The page of one model, drawn once for all tests."""
    return page(one)


@pytest.fixture(scope="session")
def text_of_three(three):
    return page(three)
