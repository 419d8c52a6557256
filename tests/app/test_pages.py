"""The pages that need no server: written by tools/make_pages.py, opened from disk in a real browser.

Their mathematics is that of the library to 1e-9, every control leads to the right numbers, and nothing is asked of any
network.
"""

import base64
import importlib.util
import json
import re
import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import betainc, betaincinv

import calibrant as cal
from calibrant.core.curves.binning import Binning
from calibrant.core.statistics.shares import wilson
from calibrant.measures import make
from calibrant.nas.pictures import cell_svg
from calibrant.nas.search import pareto
from calibrant.nas.table import open_table

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "src" / "calibrant" / "app" / "pages"
NAMES = ("understand", "quiz", "architectures")
EXACT = {"rel": 1e-9, "abs": 1e-9}


def load_tool():
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "tools" / "make_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def embedded(name, part):
    text = (PAGES / f"{name}.html").read_text()
    return json.loads(re.search(rf'<script type="application/json" id="{part}">(.*?)</script>', text)[1])


@pytest.mark.long
def test_the_pages_are_what_the_tool_writes():
    built = load_tool().build_pages()
    assert set(built) == {f"{name}.html" for name in NAMES} == {file.name for file in PAGES.iterdir()}
    for name, text in built.items():
        assert (PAGES / name).read_text() == text, f"{name} is old: run python tools/make_pages.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_names_no_other_host(name):
    text = (PAGES / f"{name}.html").read_text()
    assert set(re.findall(r'(?:src|href)="([^"#]+)"', text)) <= {"data:,", *(f"{other}.html" for other in NAMES)}
    assert {"http://www.w3.org/2000/svg"} >= set(re.findall(r"https?://[^\"'\s)]+", text))
    assert "default-src 'none'" in text


# -- in a browser -------------------------------------------------------------------------------------


@pytest.fixture
def visit(browser):
    """Open a page from disk; at the end no other address was asked for, and nothing went wrong."""
    contexts, asked, wrong = [], [], []

    def visit(name, **options):
        context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | options))
        contexts.append(context)
        tab = context.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.goto((PAGES / f"{name}.html").as_uri())
        return tab

    yield visit
    try:
        allowed = {(PAGES / f"{name}.html").as_uri() for name in NAMES}
        assert [url for url in asked if url not in allowed and not url.startswith("data:")] == []
        assert wrong == []
    finally:
        for context in contexts:
            context.close()


@pytest.fixture(scope="module")
def compute(browser):
    """Run a function of the page's mathematics: an expression of `c`, and of the arguments `a`."""
    context = browser.new_context()
    tab = context.new_page()
    tab.goto((PAGES / "understand.html").as_uri())

    def compute(expression, *arguments):
        plain = [a.tolist() if isinstance(a, np.ndarray) else a for a in arguments]
        return tab.evaluate(f"(a) => {{ const c = window.calibrant; return {expression}; }}", plain)

    yield compute
    context.close()


def rows(seed, n=700, ties=False):
    rng = np.random.default_rng(seed)
    score = rng.beta(4, 1.5, n)
    if ties:
        score = np.round(score, 1)  # on bin edges, many alike
    right = rng.random(n) < score**1.5
    return score, right.astype(float), cal.Predictions.from_confidence(score, right)


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("ties", [False, True])
def test_bins_and_errors(compute, scheme, ties):
    score, right, p = rows(1, ties=ties)
    for bins in (1, 5, 15, 40):
        values = compute(
            "(() => { const b = c.makeBins(c.sortRows(a[0], a[1]), a[2], a[3]);"
            " return [c.ece(b), c.mce(b), b.bins.map(m => m.count), b.bins.map(m => m.accuracy)]; })()",
            score, right, bins, scheme,
        )  # fmt: skip
        expected = p.curve.bins(Binning(bins, scheme))
        options = f"bins={bins},scheme={scheme}"
        assert values[0] == pytest.approx(make(f"ece:{options}")(p), **EXACT)
        assert values[1] == pytest.approx(make(f"mce:{options}")(p), **EXACT)
        assert values[2] == expected.count.tolist()
        assert values[3] == pytest.approx(expected.accuracy.tolist(), **EXACT)


@pytest.mark.parametrize(("seed", "n", "bins", "scheme"), [
    (2, 60, 15, "width"), (3, 700, 15, "width"), (4, 3000, 10, "mass"), (5, 700, 60, "width"),
])  # fmt: skip
def test_the_interval_of_an_ece(compute, seed, n, bins, scheme):
    score, right, p = rows(seed, n)
    noise = np.random.default_rng(0).standard_normal((1000, bins))  # what the library draws with seed 0
    values = compute(
        "(() => { const r = c.sortRows(a[0], a[1]), b = c.makeBins(r, a[2], a[3]);"
        " return c.findInterval(c.findGaps(r, b), a[4]); })()",
        score, right, bins, scheme, noise.ravel(),
    )  # fmt: skip
    m = cal.measure(p, f"ece:bins={bins},scheme={scheme}")
    assert [values[key] for key in ("low", "value", "high")] == pytest.approx([m.low, m.value, m.high], **EXACT)


def test_the_interval_of_calibrated_rows_reaches_zero(compute):
    rng = np.random.default_rng(6)
    score = rng.random(400)
    right = (rng.random(400) < score).astype(float)
    noise = np.random.default_rng(0).standard_normal((1000, 15))
    values = compute(
        "(() => { const r = c.sortRows(a[0], a[1]);"
        " return c.findInterval(c.findGaps(r, c.makeBins(r, 15)), a[2]); })()",
        score, right, noise.ravel(),
    )  # fmt: skip
    m = cal.measure(cal.Predictions.from_confidence(score, right), "ece")
    assert values["low"] == m.low == 0
    assert values["high"] == pytest.approx(m.high, **EXACT)


def test_order_loss_and_wilson(compute):
    for ties in (False, True):
        score, right, p = rows(7, ties=ties)
        computed = compute(
            "[c.auroc(c.sortRows(a[0], a[1])), c.nllOfScores({ scores: a[0], outcomes: a[1] })]", score, right
        )
        assert computed == pytest.approx([make("auroc_correct")(p), make("nll")(p)], **EXACT)
    share, count = np.array([0, 0.3, 1, 0.5]), np.array([1, 20, 7, 4000])
    low, high = wilson(share, count)
    computed = compute("a[0].map((s, i) => c.wilson(s, a[1][i]))", share, count)
    assert computed == [pytest.approx(pair, **EXACT) for pair in zip(low, high, strict=True)]
    values = np.sort(np.random.default_rng(8).random(31))
    levels = np.array([0, 0.025, 0.5, 0.99, 1])
    assert compute("a[1].map(q => c.quantile(a[0], q))", values, levels) == pytest.approx(
        np.quantile(values, levels).tolist(), **EXACT
    )


def test_temperature_of_scores(compute):
    score, right, p = rows(9)
    T = cal.fit(p, "temperature").parameters["T"]
    assert compute("c.fitTemperatureOfScores({ scores: a[0], outcomes: a[1] })", score, right) == pytest.approx(
        T, **EXACT
    )
    assert compute("a[0].map(s => c.scaleScore(s, a[1]))", score, T) == pytest.approx(
        p.with_temperature(T).score.tolist(), **EXACT
    )
    share = score**2  # rows with a share of right ones count as two, by their weights
    twice = cal.Predictions.from_confidence(
        np.tile(score, 2), np.repeat([1, 0], len(score)), weights=np.concatenate([share, 1 - share])
    )
    assert compute("c.fitTemperatureOfScores({ scores: a[0], outcomes: a[1] })", score, share) == pytest.approx(
        cal.fit(twice, "temperature").parameters["T"], **EXACT
    )


def test_temperature_of_logits(compute):
    rng = np.random.default_rng(10)
    logits = rng.normal(size=(500, 4)) * 3
    labels = np.array(
        [rng.choice(4, p=row) for row in cal.Predictions.from_logits(logits / 2, np.zeros(500, int)).probs]
    )
    p = cal.Predictions.from_logits(logits, labels)
    T = cal.fit(p, "temperature").parameters["T"]
    assert compute("c.fitTemperature(a[0], a[1], 4)", logits.ravel(), labels) == pytest.approx(T, **EXACT)
    assert compute("c.softmax(a[0], a[1])", logits[0], T) == pytest.approx(
        p.with_temperature(T).probs[0].tolist(), **EXACT
    )
    after = p.with_temperature(T)
    values = compute(
        "(() => { const m = c.applyTemperature(a[0], a[1], 4, a[2]);"
        " return [m.nll, m.accuracy, c.ece(c.makeBins(m.rows, 15)), c.auroc(m.rows)]; })()",
        logits.ravel(), labels, T,
    )  # fmt: skip
    expected = [make(name)(after) for name in ("nll", "accuracy", "ece", "auroc_correct")]
    assert values == pytest.approx(expected, **EXACT)


def test_beta_distributions(compute):
    shares = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.9999])
    for a, b in ((0.5, 0.5), (2.7, 1.3), (14.8, 0.2), (0.3, 4), (90, 60)):
        places = betaincinv(a, b, shares)
        assert compute("a[2].map(x => c.betaShare(a[0], a[1], x))", a, b, places) == pytest.approx(
            betainc(a, b, places).tolist(), **EXACT
        )
        assert compute("a[2].map(s => c.betaQuantile(a[0], a[1], s))", a, b, shares) == pytest.approx(
            places.tolist(), **EXACT
        )


def test_models_to_play_with(compute):
    xs, ys = np.array([0, 0.2, 0.4, 0.6, 0.8, 1]), np.array([0.1, 0.05, 0.5, 0.45, 0.9, 0.85])
    places = np.linspace(0, 1, 41)
    assert compute("a[2].map(c.through(a[0], a[1]))", xs, ys, places) == pytest.approx(
        np.interp(places, xs, ys).tolist(), **EXACT
    )
    for shape, power in (("even", 1), ("sure", 0.25)):
        values = compute("c.ece(c.makeBins(c.population(a[2], c.through(a[0], a[1])), 15))", xs, ys, shape)
        grid = ((np.arange(20000) + 0.5) / 20000) ** power
        gap = np.bincount(np.ceil(grid * 15 - 1e-9).astype(int) - 1, grid - np.interp(grid, xs, ys), 15)
        assert values == pytest.approx(np.abs(gap).sum() / 20000, **EXACT)


def test_random_rows(compute):
    """The generators are the page's own: their numbers have the right distributions."""
    uniform, normal = compute(
        "(() => { const r = c.random(3); return [Array.from({ length: 4000 }, r), Array.from(c.normals(4001, r))]; })()"
    )
    assert len(normal) == 4001
    assert stats.kstest(uniform, "uniform").pvalue > 0.01
    assert stats.kstest(normal, "norm").pvalue > 0.01
    assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < 0.04
    for shape, law in (("even", stats.beta(1, 1)), ("sure", stats.beta(4, 1))):
        values = compute(
            "(() => { const r = c.sampleRows(a[0], x => x * x, 5000, c.random(4));"
            " return [Array.from(r.scores), Array.from(r.outcomes)]; })()",
            shape,
        )
        score, outcome = (np.array(part) for part in values)
        assert (np.diff(score) >= 0).all()
        assert stats.kstest(score, law.cdf).pvalue > 0.01
        residual = outcome - score**2
        assert abs(residual.mean()) < 4 * residual.std() / np.sqrt(5000)
    assert compute("c.random(5)() === c.random(5)() && c.random(5)() !== c.random(6)()")


# -- understand ---------------------------------------------------------------------------------------

PUBLISHED = [(0.06, 0.774), (0.18, 0.9946), (0.08, 0.89), (0.048, 0.909), (0.0393, 0.7831)]  # ECE and AUROC


def percent(tab, name):
    return float(re.match(r"[\d.]+", tab.inner_text(f"#{name}"))[0])


def test_the_pictures_have_the_published_numbers(visit):
    tab, pictures = visit("understand"), embedded("understand", "pictures")
    for place, (ece, auroc) in enumerate(PUBLISHED):
        tab.check(f"[name=picture][value='{place}']", force=True)
        one = pictures[place]
        count = round(1000 * one["accuracy"])
        parts = [
            betaincinv(one["concentration"] * mean, one["concentration"] * (1 - mean), (np.arange(m) + 0.5) / m)
            for m, mean in ((count, one["right"]), (1000 - count, one["wrong"]))
        ]
        p = cal.Predictions.from_confidence(np.clip(np.concatenate(parts), 1e-12, 1 - 1e-12), np.arange(1000) < count)
        values = [make(name)(p) for name in ("ece", "auroc_correct")]
        assert values == pytest.approx([ece, auroc], abs=5e-4)
        assert [percent(tab, "groups-ece"), percent(tab, "groups-auroc")] == pytest.approx(
            [100 * value for value in values], abs=0.0501
        )
    tab.focus("#right")
    tab.keyboard.press("ArrowLeft")
    assert tab.locator("[name=picture]:checked").count() == 0


def test_a_model_is_drawn_with_the_keyboard_and_with_the_mouse(visit):
    tab = visit("understand")
    assert percent(tab, "true-error") > 10  # it begins overconfident
    tab.check("[name=preset][value=calibrated]", force=True)
    assert percent(tab, "true-error") == 0
    assert "cannot tell" in tab.inner_text("#draw-says")
    point = "[data-point='3']"
    tab.focus(point)
    for _ in range(3):
        tab.keyboard.press("PageDown")
    assert tab.get_attribute(point, "aria-valuenow") == "30"
    assert tab.evaluate("document.activeElement.dataset.point") == "3"
    grid = (np.arange(20000) + 0.5) / 20000
    gap = grid - np.interp(grid, np.linspace(0, 1, 6), [0, 0.2, 0.4, 0.3, 0.8, 1])
    bins = np.bincount(np.ceil(grid * 15 - 1e-9).astype(int) - 1, gap, 15)
    assert percent(tab, "true-error") == pytest.approx(100 * np.abs(bins).sum() / 20000, abs=0.0501)
    assert "leaves out 0" in tab.inner_text("#draw-says")
    box = tab.locator(f"{point} circle").last.bounding_box()
    tab.mouse.move(box["x"] + 8, box["y"] + 8)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 8, box["y"] - 60, steps=3)
    tab.mouse.up()
    assert int(tab.get_attribute(point, "aria-valuenow")) > 40
    for key, value in (("Home", "0"), ("End", "100")):
        tab.focus(point)
        tab.keyboard.press(key)
        assert tab.get_attribute(point, "aria-valuenow") == value


def test_more_rows_less_noise(visit):
    tab = visit("understand")
    tab.check("[name=preset][value=calibrated]", force=True)
    tab.focus("#n")
    spans = []
    for key, n in (("Home", 50), ("End", 20000)):
        tab.keyboard.press(key)
        tab.wait_for_selector(f"#samples[data-rows='{n}']")  # they are drawn in slices
        spans.append((tab.inner_text("#n-shown"), tab.text_content("#chance")))
    assert [rows for rows, _ in spans] == ["50", "20,000"]
    assert float(spans[0][1].split()[0]) > 10 * float(spans[1][1].split()[0])
    covered = int(re.search(r"in (\d+) of 100\.", tab.inner_text("#samples-say"))[1])
    assert covered >= 85  # of a nominal 95
    tab.keyboard.press("Home")
    before = tab.inner_text("#sample-ece"), tab.inner_text("#sample-interval")
    tab.click("#again")
    assert before != (tab.inner_text("#sample-ece"), tab.inner_text("#sample-interval"))
    for scheme in ("mass", "width"):
        tab.check(f"[name=scheme][value={scheme}]", force=True)
        tab.focus("#bins")
        tab.keyboard.press("End")
        assert tab.inner_text("#bins-shown") == "100"


def test_temperature_of_the_network_is_that_of_the_library(visit):
    tab, network = visit("understand"), embedded("understand", "network")
    codes = np.frombuffer(base64.b64decode(network["logits"]), dtype="<i2")
    p = cal.Predictions.from_logits(codes.reshape(-1, 10) / network["scale"], network["labels"])
    val, test = cal.example("fashion")
    assert np.abs(p.values - test.values[: p.n]).max() <= 0.5 / network["scale"] + 1e-6
    assert network["T"] == pytest.approx(cal.fit(val, "temperature").parameters["T"], abs=1e-6)
    tab.click("#best")
    T = float(np.exp(float(tab.input_value("#T"))))
    assert pytest.approx(network["T"], rel=0.006) == T  # a slider has steps
    for when, q in (("before", p), ("after", p.with_temperature(T))):
        assert percent(tab, f"ece-{when}") == pytest.approx(100 * make("ece")(q), abs=0.0501)
        assert percent(tab, f"nll-{when}") == pytest.approx(make("nll")(q), abs=0.000501)
        assert percent(tab, f"auroc-{when}") == pytest.approx(100 * make("auroc_correct")(q), abs=0.0501)
    tab.check("[name=heat][value=flat]", force=True)
    tab.click("#best")
    assert percent(tab, "auroc-after") == 50
    assert not tab.is_visible("#one-prediction")
    tab.check("[name=heat][value=wave]", force=True)
    assert "two directions" in tab.inner_text("#temperature-says")


# -- quiz ---------------------------------------------------------------------------------------------


def play(tab, confidences):
    """Ten answers from the keyboard alone, always the first class; the confidences in per cent."""
    tab.focus("[name=answer] >> nth=0")
    for level in confidences:
        tab.keyboard.press("Space")
        tab.keyboard.press("Tab")
        tab.keyboard.press("Space")
        for _ in range((level - 50) // 10):
            tab.keyboard.press("ArrowRight")
        tab.keyboard.press("Enter")
    return [item.inner_text().split("\n") for item in tab.locator("#answers li").all()]


def test_the_quiz_by_keyboard(visit):
    tab, confidences = visit("quiz"), [50, 60, 70, 80, 90, 100, 100, 90, 80, 70]
    assert tab.is_disabled("#next")
    answers = play(tab, confidences)
    assert len(answers) == 10
    assert tab.evaluate("document.activeElement.id") == "verdict"
    right = np.array(["you: right" in answer[1] for answer in answers])
    p = cal.Predictions.from_confidence(np.array(confidences) / 100, right)
    head = tab.inner_text("#verdict")
    assert head.startswith(f"You say {np.mean(confidences):.1f}\u00a0%, are right {100 * right.mean():.1f}\u00a0%")
    cells = tab.locator("#scores tr").first.inner_text().split("\t")
    assert float(cells[4].split("\u00a0")[0]) == pytest.approx(100 * make("ece:bins=10")(p), abs=0.0501)
    kept = json.loads(tab.evaluate("localStorage.getItem('calibrant-quiz')"))
    assert [answer["said"] for answer in kept] == [level / 100 for level in confidences]
    with tab.expect_download() as download:
        tab.click("#save")
    picture = Path(download.value.path()).read_bytes()
    assert download.value.suggested_filename == "calibration.png"
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)
    tab.reload()
    play(tab, confidences)
    assert tab.inner_text("#your-count") == "20 answers"
    kept = json.loads(tab.evaluate("localStorage.getItem('calibrant-quiz')"))
    assert len({answer["question"] for answer in kept}) == 20  # none twice while there are others
    tab.click("#forget")
    assert tab.evaluate("localStorage.getItem('calibrant-quiz')") is None


def test_damaged_answers_are_dropped(visit):
    tab = visit("quiz")
    for stored in ("{", "7", '[{"question": 999, "said": 0.5, "right": true}, {"question": 0, "said": 2, "right": 1}]'):
        tab.evaluate("text => localStorage.setItem('calibrant-quiz', text)", stored)
        tab.reload()
        play(tab, [80] * 10)
        assert tab.inner_text("#your-count") == "10 answers"


def test_the_questions_are_rows_of_the_example():
    """Each image is that of a row whose label is one of the network's two most probable classes."""
    from calibrant.datasets import make as make_dataset

    part, test = make_dataset("fashion_mini").load("test"), cal.example("fashion")[1]
    images = {part.images[i].tobytes(): int(part.ids[i]) - 4000 for i in range(len(part.ids))}
    asked, network = embedded("quiz", "questions"), embedded("quiz", "network")
    assert len(asked) == 40
    for q in asked:
        row = images[base64.b64decode(q["image"])]
        first, second = np.argsort(-test.probs[row])[:2]
        assert q["options"][q["answer"]] == part.classes[test.labels[row]]
        assert q["options"][q["network"]] == part.classes[first]
        assert q["confidence"] == pytest.approx(
            test.probs[row, first] / test.probs[row, [first, second]].sum(), abs=6e-5
        )
    in_two = (np.argsort(-test.values, axis=1)[:, :2] == test.labels[:, None]).any(axis=1)
    assert network["rows"] == in_two.sum()
    assert network["right"] == pytest.approx(test.correct[in_two].mean(), abs=1e-6)


# -- architectures ------------------------------------------------------------------------------------


def shown_rows(tab, *, faint):
    return sorted(int(row) for row in tab.evaluate(
        f"[...document.querySelectorAll('.network{'.out' if faint else ':not(.out)'}')].map(d => d.dataset.row)"
    ))  # fmt: skip


@pytest.fixture(scope="module")
def table():
    return open_table().with_row_index("row")


def in_view(table, data="cifar10", space="topology"):
    return table.filter((pl.col("data") == data) & (pl.col("space") == space) & ~pl.col("constant"))


def test_a_box_selects_its_networks(visit, table):
    tab = visit("architectures")
    assert shown_rows(tab, faint=False) == in_view(table)["row"].to_list()
    host = tab.locator("#scatter svg").bounding_box()
    tab.mouse.move(host["x"] + 0.45 * host["width"], host["y"] + 0.4 * host["height"])
    tab.mouse.down()
    tab.mouse.move(host["x"] + 0.8 * host["width"], host["y"] + 0.7 * host["height"], steps=4)
    tab.mouse.up()
    x0, x1, y0, y1 = (float(tab.input_value(f"#{name}")) / 100 for name in ("x0", "x1", "y0", "y1"))
    wanted = in_view(table).filter(pl.col("accuracy").is_between(x0, x1) & pl.col("pre_ECE_15").is_between(y0, y1))
    assert 5 < wanted.height < 190
    assert shown_rows(tab, faint=False) == wanted["row"].to_list()
    says = tab.inner_text("#box-says").replace("\u00a0", " ")
    assert says.startswith(
        f"{wanted.height} of 195 networks in the box: accuracy {100 * wanted['accuracy'].mean():.1f} %"
    )
    edge = [cell.count("nor_conv_3x3~0") > 0 and cell.split("|")[1] == "nor_conv_3x3~0" for cell in wanted["arch"]]
    row = tab.locator("#shares tbody tr", has_text="nor_conv_3x3").inner_text().split("\t")
    assert float(row[1]) == pytest.approx(100 * np.mean(edge), abs=0.501)
    tab.click("#clear")
    assert shown_rows(tab, faint=True) == []


@pytest.mark.parametrize("data", ["cifar10", "fashion_mini"])
@pytest.mark.parametrize("space", ["topology", "size"])
def test_the_front_is_that_of_the_networks_in_view(table, data, space):
    own = in_view(table, data, space)
    front = [own["row"][i] for i in pareto(own["accuracy"].to_list(), own["pre_ECE_15"].to_list())]
    assert sorted(front) == sorted(set(embedded("architectures", "table")["front"]) & set(own["row"]))


def test_a_box_can_be_typed(visit, table):
    tab = visit("architectures")
    tab.check("[name=data][value=fashion_mini]", force=True)
    tab.check("[name=error][value=post_ECE_15]", force=True)
    tab.fill("#y1", "1.5")
    tab.keyboard.press("Tab")
    wanted = in_view(table, "fashion_mini").filter(pl.col("post_ECE_15") <= 0.015)
    assert 0 < wanted.height < 195
    assert shown_rows(tab, faint=False) == wanted["row"].to_list()
    tab.check("#constant")
    assert len(shown_rows(tab, faint=True)) + len(shown_rows(tab, faint=False)) == 200
    tab.fill("#y1", "0")
    tab.keyboard.press("Tab")
    assert tab.inner_text("#box-says") == "No network in the box."


def test_every_column_is_a_colour(visit, table):
    tab = visit("architectures")
    texts = {"space", "config", "arch", "unique", "constant", "data", "seed", "configuration", "made_with", "row"}
    options = tab.evaluate("[...document.querySelectorAll('#colour option')].map(o => o.value)")
    assert sorted(options) == sorted(set(table.columns) - texts)
    colours = tab.evaluate("""(names) => names.map((name) => {
        document.getElementById('colour').value = name;
        document.getElementById('colour').dispatchEvent(new Event('change'));
        return new Set([...document.querySelectorAll('.network')].map(d => d.style.fill)).size;
    })""", [name for name in options if name.endswith(("_15", "T", "fog", "params", "fgsm_1"))])  # fmt: skip
    assert min(colours) > 5


def test_a_click_draws_the_cell(visit, table):
    tab = visit("architectures")
    own = in_view(table)
    best = own.sort("accuracy", descending=True).row(0, named=True)
    assert tab.inner_text("#network-name") == f"Network {best['config']}"
    for row in own["row"].to_list()[:60:12]:
        one = table.row(row, named=True)
        tab.locator(f"[data-row='{row}']").click(force=True)
        at = [tab.locator(f"[data-row='{row}']").get_attribute(name) for name in ("cx", "cy")]
        chosen = tab.locator(".network.chosen")
        picked = table.row(int(chosen.get_attribute("data-row")), named=True)  # that, or one on the same place
        assert [float(chosen.get_attribute(name)) for name in ("cx", "cy")] == pytest.approx(
            [float(v) for v in at], abs=6
        )
        one = one if picked["row"] == row else picked
        paths = re.findall(r'<path d="(M\d+ 238[^"]+)"', cell_svg(one["arch"]))
        assert tab.evaluate("[...document.querySelectorAll('#cell path.edge')].map(p => p.getAttribute('d'))") == paths
        assert tab.inner_text("#network-command") == f"calibrant nas show {one['config']}"
        numbers = tab.inner_text("#network-numbers").replace("\u00a0", " ").split("\n")
        assert float(numbers[1].split()[0]) == pytest.approx(100 * one["accuracy"], abs=0.00501)


def test_networks_from_the_keyboard(visit, table):
    tab = visit("architectures")
    tab.focus("#scatter")
    order = in_view(table).sort("accuracy", "row")
    tab.keyboard.press("ArrowLeft")
    assert tab.inner_text("#network-name") == f"Network {order['config'][-2]}"
    tab.keyboard.press("ArrowRight")
    assert tab.inner_text("#network-name") == f"Network {order['config'][-1]}"
    tab.check("[name=space][value=size]", force=True)
    assert tab.locator("#cell .layer").count() == 6
    assert tab.inner_text("#network-command").endswith("--space size")


# -- all pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_phone(visit, name):
    for width in (320, 390):
        tab = visit(name, viewport={"width": width, "height": 800})
        if name == "quiz":
            play(tab, [90] * 10)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        small = tab.evaluate(
            "Math.min(...[...document.querySelectorAll('.picture text')]"
            ".map(t => t.getBoundingClientRect().height).filter(h => h))"
        )
        assert small >= 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light(visit, scheme):
    tab = visit("architectures", color_scheme=scheme)
    dark = scheme == "dark"
    for _ in range(2):
        page = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.findall(r"\d+", page)[0]) < 60) == dark
        assert tab.inner_text("#theme") == ("Light" if dark else "Dark")
        tab.click("#theme")
        dark = not dark


def test_pages_lead_to_each_other(visit):
    tab = visit("understand")
    for name, words in (("quiz", "Quiz"), ("architectures", "Architectures"), ("understand", "Understand")):
        tab.click(f"nav >> text={words}")
        assert tab.url.endswith(f"/{name}.html")
        assert tab.inner_text("[aria-current]") == words


def test_without_scripts_the_answers_stand(browser):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((PAGES / "architectures.html").as_uri())
    assert tab.is_visible("noscript p")
    assert tab.locator("details.model").count() == 7
    context.close()
