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


def of_sums(p):
    sums, each = cal.Accumulator(["ece", "brier"]), cal.Accumulators(by="group", measures=["ece", "brier"])
    sums.update(p)
    each.update(p)
    return {
        "sums": (sums, "Accumulator(400 rows, confidences"),
        "each": (each, "Accumulators(by=(&#x27;group&#x27;,), 2 keys, 400 rows)"),
        "of sums": (sums.measure_all(), "400 rows"),
        "of each": (each.measure("ece"), "&lt;b&gt;a"),
        "checks of each": (each.check("ece", limit=0.9), "holds"),
        "comparisons of each": (each.compare(sums, "brier"), "inconclusive"),
    }


def test_print_is_a_table_too(p):
    results = {name: result for name, (result, _) in of_sums(p).items()}
    results |= {
        "all": cal.measure(p, ["ece"], resamples=0),
        "calibration_test": cal.calibration_test(p, resamples=50),
    }
    results |= {"check": cal.check(p, "ece", limit=0.9, resamples=50), "parts": cal.decompose(p)}
    for name, result in results.items():
        lines = str(result).splitlines()
        assert len(lines) > 2 or name == "of each", name
        assert "object at 0x" not in repr(result)
        assert "Measurement(" not in str(result), name
    assert "| method" in str(cal.table({"a": [p], "b": [p]}, ["brier"]))
    other = cal.Accumulators(by="group", measures=["ece"])
    other.update(p, {"group": "c"})
    with pytest.raises(cal.InputError, match="at least one key that both have"):
        other.compare(results["each"], "ece")
    assert str(cal.Accumulator(["ece"])) == "Accumulator(0 rows)\nmeasure  value  what it is"


def test_every_result_is_a_table(p):
    several = cal.measure(p, ["ece", "brier"], resamples=50)
    assert isinstance(several, list)
    assert [m.measure for m in several] == ["ece", "brier"]
    results = {
        "measure": (several, f"{several[1].value:.4f}"),
        "compare": (cal.compare(p, p, "brier", resamples=50), "inconclusive"),
        "unpaired": (cal.compare(p, p, "brier", paired=False, resamples=50), "400 and 400 rows"),
        "check": (cal.check(p, "ece", limit=0.9), "holds"),
        "worse": (cal.check(p, "brier", against=p, limit=0.5, resamples=50), "worse by at most 0.5"),
        "watch": (cal.watch(p, segments=True), "No alarm after 400 rows"),
        "calibration_test": (cal.calibration_test(p, resamples=50), "by chance"),
        "decompose": (cal.decompose(p), "reliability"),
        "predictions": (p, "Predictions(n=400"),
        "table": (cal.table({"a": [p], "b": [p]}, ["brier"]), "brier"),
        "choose": (cal.choose(p, ["temperature"]), "cross-fitted NLL"),
    }
    for name, (result, says) in (results | of_sums(p)).items():
        html = result._repr_html_()
        assert html.startswith("<table>"), name
        assert html.endswith("</table>"), name
        assert says in html, name
        assert "<b>" not in html or name == "table", name
