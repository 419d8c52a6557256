"""The tab "Clamp a network" in a real browser: sliders, fits, cancelling, the table of tries."""

import pytest
from test_predictions_tab import slide, wait_for

pytest.importorskip("torch")

from calibrant.data import CLAMP_RUN
from calibrant.measures import make
from calibrant.measuring import measure_format as mf
from calibrant.rescoring.clamp_trials import ClampTrials, open_subject


def number(tab, name):
    return tab.inner_text(f'#clamp-diagram [data-number="{name}"]')


def tries(tab):
    return [row.locator("td").all_inner_texts() for row in tab.locator("#tries tbody tr").all()]


def open_tab(visit, **options):
    tab = visit(wait="#diagram svg", **options)
    tab.get_by_role("tab", name="Clamp a network").click()
    tab.wait_for_selector("#clamp-diagram svg")
    return tab


def test_sliders_fits_and_cancel(visit):
    trials = ClampTrials(open_subject(CLAMP_RUN))
    tab = open_tab(visit)
    assert number(tab, "ECE") == mf.value("ece", make("ece")(trials.predict()))
    slide(tab, "temperature", 2)
    wait_for(tab, "T = 2, strength of delta 1:", "#clamp-diagram")
    assert number(tab, "ECE") == mf.value("ece", make("ece")(trials.predict(2.0)))
    tab.click("#keep-try")
    wait_for(tab, "by hand", "#tries")
    tab.click("#fit-temperature")
    wait_for(tab, "temperature scaling", "#tries")
    T, p = trials.fit("temperature")
    row = tries(tab)[-1]
    assert row[1] == f"{T:.3g}"
    assert row[4:6] == [mf.value("ece", make("ece")(p)), mf.value("nll", make("nll")(p))]
    assert float(tab.input_value("#temperature input[type=number]")) == round(T, 2)

    tab.click("#fit-clamping_gamma")
    tab.wait_for_selector("#cancel:enabled")
    tab.click("#cancel")
    wait_for(tab, "was cancelled: nothing has changed", "#clamp-status")
    assert len(tries(tab)) == 3
    assert tab.locator("#cancel").is_disabled()


@pytest.mark.slow
def test_neural_clamping_in_the_browser(visit):
    trials = ClampTrials(open_subject(CLAMP_RUN))
    tab = open_tab(visit)
    tab.set_default_timeout(300_000)
    for method, title in (("vector", "vector scaling"), ("clamping_ce", "Neural Clamping, cross-entropy")):
        tab.click(f"#fit-{method}")
        wait_for(tab, title, "#tries")
        _, p = trials.fit(method)
        assert tries(tab)[-1][4] == mf.value("ece", make("ece")(p))
    slide(tab, "strength", 0.5)
    T = float(tab.input_value("#temperature input[type=number]"))
    wait_for(tab, "strength of delta 0.5", "#clamp-diagram")
    assert number(tab, "ECE") == mf.value("ece", make("ece")(trials.predict(T, 0.5)))
    pictures = [img.get_attribute("src") for img in tab.locator("#pictures img").all()]
    assert len(set(pictures)) == len(pictures) == 17
    for method in ("clamping_focal", "clamping_gamma"):
        tab.click(f"#fit-{method}")
        wait_for(tab, clamped_title(method), "#tries")


def clamped_title(method):
    return {"clamping_focal": "Neural Clamping, focal loss", "clamping_gamma": "gamma by calibration ECE"}[method]
