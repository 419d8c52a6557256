"""Results show themselves in a notebook as tables, and names in them are no markup."""

import numpy as np
import pytest

import calibrant as cal


@pytest.fixture(scope="module")
def p():
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.5, 400)
    groups = np.array(["<b>a", "b"])[np.arange(400) % 2]
    return cal.Predictions.from_confidence(s, rng.random(400) < s, groups=groups)


def test_every_result_is_a_table(p):
    several = cal.measure_all(p, ["ece", "brier"], resamples=50)
    assert isinstance(several, list)
    assert [m.measure for m in several] == ["ece", "brier"]
    results = {
        "measure_all": (several, f"{several[1].value:.4f}"),
        "compare": (cal.compare(p, p, "brier", resamples=50), "cannot tell"),
        "unpaired": (cal.compare(p, p, "brier", paired=False, resamples=50), "400 and 400 rows"),
        "check": (cal.check(p, "ece", limit=0.9), "holds"),
        "worse": (cal.check_worse(p, p, "brier", limit=0.5, resamples=50), "worse by at most 0.5"),
        "watch": (cal.watch(p, segments=True), "No alarm after 400 rows"),
        "choose": (cal.choose(p, ["temperature"]), "cross-fitted NLL"),
    }
    for name, (result, says) in results.items():
        shown = result._repr_html_()
        assert shown.startswith("<table>"), name
        assert shown.endswith("</table>"), name
        assert says in shown, name
        assert "<b>" not in shown, name
