"""Reports of every shape of predictions, with weights and clusters: the words, the numbers, and what is left out."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.io.missing import MissingCount
from calibrant.core.predictions import Predictions
from calibrant.deciding.costs import read_rule
from calibrant.measures import make
from calibrant.reporting import page
from calibrant.reporting.build import build
from calibrant.reporting.calibration_state import assess
from calibrant.reporting.cost import CostTable
from calibrant.reporting.curves import pack, unit
from calibrant.reporting.markdown import markdown
from calibrant.reporting.segments import chance_of_gap
from calibrant.reporting.sentences import headline, write
from calibrant.reporting.terminal import render
from calibrant.reporting.verdict import judge

html5lib = pytest.importorskip("html5lib")

N = 600


def binary(n=N, seed=0, **more):
    """About 15 % positives, with scores that are too high."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-2.5, 1.8, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return Predictions.binary(1.5 * z + 2, y, logits=True, **more)


def stated(n=N, seed=0, **more):
    """What a language model says of itself: few different numbers, nearly all high."""
    rng = np.random.default_rng(seed)
    return Predictions.from_confidence(rng.choice([0.8, 0.9, 0.95, 0.98], n), rng.random(n) < 0.7, **more)


def choices(n=N, seed=0, **more):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 4))
    there = np.ones((n, 4), dtype=bool)
    there[::3, 3] = False
    truth = np.where(there, z + rng.gumbel(size=z.shape), -np.inf).argmax(axis=1)
    return Predictions.from_logits(2 * z, truth, mask=there, **more)


def quick(p, **options):
    return build(p, calibrators=["temperature"], resamples=40, **options)


@pytest.fixture(scope="module")
def of_positives():
    return quick(binary(groups=np.arange(N) % 2), cost="fn=10,fp=1")


def printed(r):
    out = Console(file=io.StringIO(), width=80, highlight=False)
    out.print(render(r))
    return out.file.getvalue()


def test_binary_speaks_of_positives(of_positives):
    p, m = binary(), of_positives.models[0]
    assert m.says == pytest.approx(p.score.mean())
    assert m.right == pytest.approx(p.labels.mean())
    assert m.verdict.headline.startswith(
        f"Expects {100 * m.says:.1f} % positive, {100 * m.right:.1f} % are: too high by"
    )
    assert "of rows scored about" in m.verdict.text.lower()
    assert m.classes is None
    assert m.groups is not None
    assert "are positive" in m.groups.words
    assert any(note.startswith("Class balance: ") for note in m.notes)
    assert {"roc_auc", "average_precision"} <= {n.measure for n in m.numbers}
    assert next(n for n in m.numbers if n.measure == "ece").definition.startswith("positive-class ECE")
    assert {"roc", "precision_recall"} <= {f.figure for f in of_positives.figures}


def test_the_page_of_binary_scores(of_positives):
    text = page.page(of_positives)
    tree = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    ids = {element.attrib.get("id") for element in tree.iter()}
    assert {"threshold", "cut", "cost-fn", "cost-fp", "roc_auc"} <= ids
    assert "worst-0" in ids
    page_text = " ".join("".join(tree.itertext()).split())
    assert of_positives.models[0].verdict.action in page_text
    for text in (markdown(of_positives), printed(of_positives)):
        flat = " ".join(text.split())
        assert "P(positive)" in flat
        assert of_positives.models[0].verdict.action in flat


@pytest.mark.parametrize("make_rows", [stated, choices])
def test_bare_confidences_and_choices_leave_out_classes(make_rows):
    p = make_rows(groups=np.where(np.arange(N) % 3, "easy", "hard"))
    r = quick(p)
    m = r.models[0]
    assert m.verdict.headline.startswith("Says ")
    assert m.classes is None
    assert any("Nothing is said of single classes" in note for note in m.notes)
    assert [s.name for s in m.groups.rows if s.n] in (["easy", "hard"], ["hard", "easy"])
    assert m.best == "temperature"
    assert m.verdict.action.startswith("Use temperature T = ")
    assert ("no prediction changes" in m.verdict.action) == (p.task == "choice")
    html5lib.HTMLParser(strict=True).parse(page.page(r))
    assert max(map(len, printed(r).splitlines())) <= 80


def test_missing_rows_weights_and_clusters_are_said():
    p = stated(weights=np.arange(N) % 3 + 1, clusters=np.arange(N) // 4)
    known = replace(p.row_data, missing=MissingCount(30, of=N + 30, policy="drop", what="confidence"))
    r = quick(Predictions._from_valid(p.values, p.labels, p.score_type, known))
    notes = " ".join(r.models[0].notes)
    assert "30 of 630 rows (4.8 %) have no confidence and were left out." in notes
    assert "600 rows stand for 1,200" in notes
    assert "150 clusters" in notes
    assert notes in " ".join(printed(r).split())


def cost_row(p, rule):
    table = CostTable(rule)
    table.add("identity", p)
    return table.rows[0]


def test_numbers_are_weighted():
    w = np.random.default_rng(1).integers(0, 4, N)
    weighted, repeated = binary(weights=w), binary().take(np.repeat(np.arange(N), w))
    a, b = assess(weighted, resamples=40), assess(repeated, resamples=40)
    assert (a.says, a.right, a.noise.observed) == pytest.approx((b.says, b.right, b.noise.observed))
    assert a.noise.gap_p_value == pytest.approx(b.noise.gap_p_value)
    assert [x.n for x in a.bins] == [x.n for x in b.bins]
    rule = read_rule("fn=10,fp=1")
    one, other = cost_row(weighted, rule), cost_row(repeated, rule)
    for name in ("accepted", "error", "missed", "expected_cost", "actual_cost", "low", "high"):
        assert getattr(one, name) == pytest.approx(getattr(other, name)), name
    assert pack(weighted.curve) == pack(repeated.curve)
    assert unit(binary(weights=w + 0.5).curve) > 1


def test_rows_of_one_cluster_prove_less():
    rng = np.random.default_rng(2)
    score, hit = np.full(400, 0.8), np.repeat(rng.random(40) < 0.7, 10).astype(float)
    assert chance_of_gap(score, hit, None, np.arange(400) // 10) > chance_of_gap(score, hit)


def test_costs_of_misses_and_false_alarms_by_hand():
    p = Predictions.binary([0.05, 0.2, 0.6, 0.04], [1, 0, 1, 0])
    rule = read_rule("fn=9,fp=1")
    assert rule.threshold == pytest.approx(0.1)
    row = cost_row(p, rule)
    assert (row.accepted, row.error, row.missed) == (0.5, 0.5, 0.5)
    assert row.actual_cost == pytest.approx((9 + 1) / 4)
    assert row.expected_cost == pytest.approx((0.05 * 9 + 0.8 + 0.4 + 0.04 * 9) / 4)


@pytest.mark.parametrize(
    ("p", "options", "words"),
    [
        (stated, {"cost": "fn=10,fp=1"}, "expected scores of the positive class"),
        (stated, {"fit_on": binary()}, "expected confidences with nothing but right or wrong"),
        (choices, {"calibrators": ["matrix"]}, "options that differ from row to row"),
    ],
)
def test_what_a_shape_cannot_answer_is_refused(p, options, words):
    with pytest.raises(InputError, match=words):
        build(p(), resamples=40, **options)


def test_measure_says_it_in_the_same_words():
    words = write(judge(assess(binary(), resamples=40)))
    assert words.headline.startswith("Expects ")
    assert "too high" in words.headline
    assert make("gap")(binary()) > 0


def test_several_binary_models_are_ranked():
    p = binary()
    r = quick({"raw": p, "cold": p.with_temperature(2.0)})
    assert {c.measure for c in r.ranking.pairs[0].changes} == {"nll", "ece", "accuracy", "roc_auc"}
    html5lib.HTMLParser(strict=True).parse(page.page(r))
    assert cal.report(p, calibrators=["temperature"], resamples=40).models[0].task == "binary"


# -- one page, one truth ------------------------------------------------------------------------------


def rare(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(-4, 1.3, n)
    return Predictions.binary(1 / (1 + np.exp(-z)), (rng.random(n) < 1 / (1 + np.exp(-z - 0.4))).astype(int))


def test_rare_events_are_counted_and_their_error_is_relative():
    p = rare()
    expected, positives = p.score.sum(), p.labels.sum()
    start = f"Expects {expected:,.0f} positives in 4,000 rows, there are {positives:,}: too low by "
    assert write(judge(assess(p, resamples=40))).headline.startswith(start)
    assert write(judge(assess(p, resamples=40))).headline.endswith(f"{100 * (1 - expected / positives):.0f} %.")


def test_a_threshold_implies_costs_and_says_so():
    from calibrant.deciding.costs import check_rule

    rule = check_rule(read_rule("threshold=0.02"), rare())
    assert (rule.fn, rule.fp) == (pytest.approx(49), 1)
    assert "P(positive) of 2 % or more, which is right where a missed positive costs 49 and a false" in rule.words
    assert "1.96 % or more" in read_rule("fn=50,fp=1").words


def test_money_comes_first_where_costs_are_given():
    r = build(rare(10_000), cost="fn=50,fp=1", calibrators=["platt"], resamples=40)
    (m,) = r.models
    assert m.cost.headline.startswith("Decisions on these 10,000 rows cost ")
    assert m.best == "platt"
    assert m.cost.rows[0].change == 0
    text = page.page(r)
    assert m.verdict.lines[0].startswith("Acting at 1.96 % costs ")
    assert text.index(m.verdict.lines[0][-20:]) < text.index(m.verdict.headline[:20])
    assert text.index('id="cost-0"') < text.index('id="look"')
    assert '<option value="0,1" selected>' in text  # the threshold starts at the recommended scores


def test_nothing_is_praised_beside_a_recommendation():
    a = replace(assess(binary(), resamples=40), state="calibrated")
    assert "calibrated within what can be seen" in headline(a)
    assert "calibrated within what can be seen" in headline(a, "worse")
    assert headline(a, "better").endswith("no significant calibration error, yet calibration lowers the loss.")


def test_no_verdict_without_a_test():
    from calibrant.reporting.calibration_state import state_of
    from calibrant.reporting.parts import Noise

    untested = Noise(0.2, float("nan"), float("nan"), float("nan"), 0.4)
    assert state_of(500, 0.1, untested) == "untested"
    assert state_of(500, 0.1, replace(untested, gap_p_value=0.001)) == "over"


def test_outcomes_that_are_all_alike_leave_nothing_to_fit():
    p = Predictions.from_confidence(np.linspace(0.6, 0.99, 20), np.ones(20, dtype=int))
    (m,) = build(p, calibrators=["temperature", "isotonic"], resamples=40).models
    assert m.best == "identity"
    assert "nothing to fit" in m.verdict.action


def test_a_class_without_fitting_rows_is_named():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3))
    labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    val = Predictions.from_logits(z, labels).take(np.flatnonzero(labels != 2))
    names = ["cat", "dog", "owl"]
    (m,) = build(
        Predictions.from_logits(z, labels), fit_on=val, class_names=names, calibrators=["temperature"], resamples=40
    ).models
    assert any("No row to fit calibrators on is of owl" in caution for caution in m.cautions)
