"""The verdict of ten drawn sets of rows whose truth is known: the state first, then the words that must be there."""

from functools import cache

import numpy as np
import pytest
from ten_verdicts import CASES

from calibrant.core.predictions import Predictions
from calibrant.measuring.measure import Measurement
from calibrant.reporting.build import build
from calibrant.reporting.markdown import markdown
from calibrant.reporting.page import page
from calibrant.reporting.parts import refinement_level
from calibrant.reporting.segments import by_group
from calibrant.reporting.tables import console
from calibrant.reporting.terminal import render

FEW_CALIBRATORS = {
    "binary": ["platt", "beta"],
    "confidence": ["temperature", "isotonic"],
    "multiclass": ["temperature"],
}


@cache
def report_on(name):
    case = CASES[name]()
    return build(case.rows, **{"resamples": 100, "calibrators": FEW_CALIBRATORS[case.rows.task]} | case.options)


@pytest.mark.parametrize(
    ("name", "colour", "state", "level", "repair", "words"),
    [
        (
            "useless",
            "red",
            "calibrated",
            "none",
            "hopeless",
            ["calibrated on average, but its confidence does not tell right from wrong", "No calibrator can help", ""],
        ),
        (
            "repaired_wholly",
            "green",
            "over",
            "clear",
            "solved",
            ["overconfident by 11.4 points", "temperature T = 1.62: ECE 11.4 % to 1.3 %, within chance", ""],
        ),
        (
            "repaired_in_part",
            "amber",
            "over",
            "clear",
            "better",
            ["overconfident by", "still overconfident by", "Shirt: overconfident by"],
        ),
        (
            "one_group_harmed",
            "amber",
            "over",
            "clear",
            "better",
            ["overconfident by 3.2 points", "Use ets", "hospital A is worse after ets (-1.8 to -6.6 points)"],
        ),
        (
            "easier_to_fit",
            "amber",
            "over",
            "clear",
            "solved",
            ["overconfident by", "the rows to fit on are easier than these (accuracy 81.6 % against 76.3 %)", ""],
        ),
        (
            "scores_reversed",
            "red",
            "mixed",
            "reversed",
            "stopped",
            ["Positives have lower scores than negatives", "give 1 - scores", ""],
        ),
        (
            "few",
            "grey",
            "inconclusive",
            "unclear",
            "stopped",
            ["30 rows are too few to tell: anything between 9.5 points under", "Collect more rows first", ""],
        ),
        (
            "calibrated",
            "green",
            "calibrated",
            "clear",
            "not_needed",
            ["calibrated within what can be seen (error below 0.93 points)", "no calibration needed", ""],
        ),
        (
            "underconfident",
            "green",
            "under",
            "clear",
            "solved",
            ["underconfident by 10.8 points", "temperature T = 0.655: ECE 10.9 % to 1.0 %, within chance", ""],
        ),
        (
            "rare_with_costs",
            "green",
            "close",
            "clear",
            "solved",
            [
                "Acting at 1.96 % costs 220 per 1,000 rows; always",
                "1,769 decisions change at the threshold of 1.96",
                "",
            ],
        ),
    ],
)
def test_ten_cases(name, colour, state, level, repair, words):
    v = report_on(name).models[0].verdict
    found = v.finding
    assert (v.colour, found.now.state, found.now.level, found.repair) == (colour, state, level, repair)
    for line, expected in zip((v.lines[0], v.action, v.exception), words, strict=True):
        assert expected in line if expected else line == ""


def test_a_map_that_cannot_be_recommended_is_not_used():
    for name in ("scores_reversed", "few"):
        m = report_on(name).models[0]
        assert (m.best, m.repair, m.verdict.lines[1:]) == ("identity", None, (m.verdict.action,))


@pytest.mark.parametrize("name", ["useless", "one_group_harmed", "rare_with_costs"])
def test_every_format_says_the_same_lines(name):
    r = report_on(name)
    out = console()
    with out.capture() as captured:
        out.print(render(r))
    html = page(r).replace("\N{NO-BREAK SPACE}", " ")
    texts = [" ".join(text.split()) for text in (captured.get(), markdown(r), html)]
    for line in r.models[0].verdict.lines:
        assert all(line in text for text in texts)
    assert f'class="verdict {r.models[0].verdict.colour}"' in html
    document = r.to_dict()["models"][0]["verdict"]
    assert document["lines"] == list(r.models[0].verdict.lines)
    assert document["finding"]["repair"] == r.models[0].verdict.finding.repair


def test_the_worst_group_and_the_harmed_one_are_found_before_classes():
    found = report_on("one_group_harmed").models[0].verdict.finding
    assert (found.of_groups, found.worst.name, found.harmed.name) == (True, "mobile app", "hospital A")
    assert found.harmed.worse_after
    assert not found.worst.worse_after


def test_a_gap_that_grows_within_noise_is_not_called_harm():
    """The middle of both gaps must be beyond the noise that they share: a calibrated group may look better by luck."""
    rng = np.random.default_rng(0)
    score = np.full(400, 0.8)
    before = Predictions.from_confidence(score, rng.permutation(np.arange(400) < 320), groups=np.repeat("a", 400))
    after = Predictions.from_confidence(score - 0.045, before.labels, groups=np.repeat("a", 400))
    (row,) = by_group(before, after, before.groups, "g").rows
    assert row.gap == pytest.approx(0.0)
    assert row.beyond_noise_after
    assert not row.worse_after


@pytest.mark.parametrize(
    ("value", "half", "level"),
    [
        (0.498, 0.024, "none"),
        (0.55, 0.02, "barely"),
        (0.6, 0.15, "unclear"),
        (0.9, 0.01, "clear"),
        (0.3, 0.1, "reversed"),
    ],
)
def test_levels_of_refinement(value, half, level):
    ends = {"low": value - half, "high": value + half}
    assert refinement_level(Measurement(measure="roc_auc", value=value, **ends, n=9, k=2, definition="")) == level
    assert refinement_level(None) == "unknown"
