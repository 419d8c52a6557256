"""The page in a real browser: no network, no error, and every control leads to the numbers of the measures."""

import re
import shutil

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.curves.binning import Binning
from calibrant.measures import make
from calibrant.repairing.choose import fit_candidate
from calibrant.reporting import pictures
from calibrant.reporting.build import build
from calibrant.reporting.pdf import BROWSERS, print_page

CHROMIUM = next((path for name in BROWSERS if (path := shutil.which(name))), None)
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
]
LABELS = {"as it is": "identity"}


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip(f"NO BROWSER: the page was NOT tested; install one of {', '.join(BROWSERS)}")
    api = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: the page was NOT tested; pip install it")
    with api.sync_playwright() as running:
        launched = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def files(text, text_of_three, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, page in (("one", text), ("three", text_of_three)):
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser, files):
    """Open a page with the network blocked; at the end nothing was asked for and nothing went wrong."""
    opened, asked, wrong = [], [], []

    def visit(name="one", **options):
        context = browser.new_context(**({"viewport": {"width": 1100, "height": 900}} | options))
        opened.append(context)
        tab = context.new_page()
        address = (files / f"{name}.html").as_uri()
        context.route("**/*", lambda route: route.continue_() if route.request.url == address else route.abort())
        tab.on("request", lambda request: asked.append(request.url) if request.url != address else None)
        tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        tab.goto(address)
        tab.wait_for_selector("#diagram svg")
        return tab

    yield visit
    try:
        assert [tab.evaluate("window.pwned") for context in opened for tab in context.pages] == [None] * len(opened)
        assert [url for url in asked if not url.startswith("data:")] == []
        assert wrong == []
    finally:
        for context in opened:
            context.close()


def number(tab, name):
    text = tab.inner_text(f"#{name}").replace("\u2212", "-")
    return float(re.match(r"[+-]?[\d.]+", text)[0])


def choose(tab, *, bins=None, scheme=None, calibrator=None):
    if calibrator is not None:
        tab.locator("fieldset[data-model]:visible .choice", has_text=re.compile(f"^{calibrator}$")).click()
    if scheme is not None:
        tab.check(f"[name=scheme][value={scheme}]", force=True)
    if bins is not None:
        tab.fill("#bins-number", str(bins))
        tab.dispatch_event("#bins-number", "change")


def as_shown(p, bins, scheme):
    """What the measures say, rounded as the page rounds it."""
    ece, mce = (make(f"{name}:bins={bins},scheme={scheme}")(p) for name in ("ece", "mce"))
    return {
        "says": round(100 * p.confidence.mean(), 2),
        "right": round(100 * p.correct.mean(), 2),
        "ece": round(100 * ece, 2),
        "mce": round(100 * mce, 2),
        "nll": round(make("nll")(p), 4),
        "brier": round(make("brier")(p), 4),
        "auroc_correct": round(make("auroc_correct")(p), 4),
    }


def check(tab, p, bins, scheme):
    expected = as_shown(p, bins, scheme)
    results = {name: number(tab, name) for name in expected}
    assert results == pytest.approx(expected, abs=1e-9)


def test_it_opens_with_the_numbers_of_the_measures(visit, test):
    tab = visit()
    assert tab.inner_text(".headline").startswith("Says ")
    check(tab, test, 15, "width")
    assert number(tab, "gap") == round(100 * make("gap")(test), 2)
    filled = int(test.top_label.bins(Binning(15)).filled.sum())
    assert tab.locator("#diagram .right").count() == tab.locator("#diagram .whisker").count() == filled


@pytest.mark.parametrize("scheme", ["width", "mass"])
def test_bins_lead_to_the_right_numbers(visit, test, scheme):
    tab = visit()
    for bins in (5, 14, 100, 333, 500):
        choose(tab, bins=bins, scheme=scheme)
        check(tab, test, bins, scheme)
        assert tab.input_value("#bins") == str(bins)
        assert f"{bins} bins of equal {scheme}" in tab.inner_text("#sentence")


def test_every_bar_is_where_the_measure_puts_it(visit, test):
    tab = visit()
    choose(tab, bins=10)
    tab.locator("#bin-details summary").click()
    rows = [row.inner_text().split("\t") for row in tab.locator("#bin-rows tbody tr").all()]
    b = test.top_label.bins(Binning(10))
    filled = np.flatnonzero(b.filled)
    assert [int(row[1].replace(",", "")) for row in rows] == b.count[filled].astype(int).tolist()
    for place, values in ((2, b.confidence), (3, b.accuracy)):
        assert [float(row[place].rstrip("\u00a0%")) for row in rows] == (100 * values[filled]).round(2).tolist()


def test_switching_calibrators_updates_everything(visit, one, test, val):
    tab = visit()
    for t in one.models[0].trials[1:]:
        choose(tab, calibrator=t.calibrator, bins=15, scheme="width")
        after = fit_candidate(val, t.calibrator)(test)
        check(tab, after, 15, "width")
        assert tab.inner_text("#learned") == t.learned
        choose(tab, bins=40, scheme="mass")
        check(tab, after, 40, "mass")


def test_several_models_can_be_chosen(visit, three):
    tab = visit("three")
    for place, m in enumerate(three.models):
        tab.select_option("#model", index=place)
        ece = next(n for n in m.numbers if n.measure == "ece")
        assert number(tab, "ece") == round(100 * ece.value, 2)
        assert tab.inner_text("#sentence").startswith(f"{m.name}, uncalibrated")
        choose(tab, calibrator="temperature")
        assert number(tab, "ece") == round(100 * m.trials[1].values["ece"], 2)


def test_the_slider_works_from_the_keyboard(visit, test):
    tab = visit()
    tab.focus("#bins")
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    check(tab, test, 18, "width")
    tab.keyboard.press("Home")
    check(tab, test, 5, "width")
    tab.keyboard.press("End")
    check(tab, test, 500, "width")
    tab.keyboard.press("ArrowLeft")
    check(tab, test, 499, "width")


def test_everything_can_be_reached_from_the_keyboard(visit):
    tab = visit()
    reached = []
    for _ in range(40):
        tab.keyboard.press("Tab")
        reached.append(tab.evaluate("document.activeElement.id || document.activeElement.name || ''"))
    assert {"theme", "calibrator-0", "bins", "bins-number", "scheme"} <= set(reached)
    tab.focus("[name=calibrator-0]:checked")
    before = number(tab, "ece")
    tab.keyboard.press("ArrowRight")
    assert number(tab, "ece") != before


def test_nonsense_in_the_number_field_is_put_right(visit):
    tab = visit()
    for typed, expected in (("3", "5"), ("9999", "500"), ("", "15"), ("12.4", "12")):
        choose(tab, bins=typed)
        assert tab.input_value("#bins-number") == tab.input_value("#bins") == expected


def brightness(tab, what):
    colour = tab.evaluate(f"getComputedStyle(document.body).{what}")
    r, g, b = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light(visit, scheme):
    tab = visit(color_scheme=scheme)
    dark = scheme == "dark"
    for _ in range(2):
        page, ink = brightness(tab, "backgroundColor"), brightness(tab, "color")
        assert (page < 0.15) == dark
        assert abs(page - ink) > 0.7
        stroke = tab.evaluate("getComputedStyle(document.querySelector('figure text[fill^=var]')).fill")
        assert (int(re.findall(r"\d+", stroke)[0]) > 127) == dark
        assert tab.inner_text("#theme") == ("Light" if dark else "Dark")
        tab.click("#theme")
        dark = not dark


def contrast(a, b):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((light(a), light(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_have_enough_contrast(theme):

    colours = dict(re.findall(r"(--\w+): (#\w+)", pictures.variables(theme)))
    for name in ("--ink", "--quiet", "--good", "--worse"):
        assert contrast(colours[name], colours["--page"]) >= 4.5
    for name in ("--c0", "--c1"):
        assert contrast(colours[name], colours["--page"]) >= 3


@pytest.mark.parametrize("width", [320, 390, 768])
def test_it_fits_a_phone(visit, width):
    for name in ("one", "three"):
        tab = visit(name, viewport={"width": width, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        small = tab.evaluate("Math.min(...[...document.querySelectorAll('#diagram text')]"
                             ".map(t => t.getBoundingClientRect().height))")  # fmt: skip
        assert small >= 11


@pytest.mark.parametrize("width", [390, 1200])
def test_isotonic_curves_take_the_whole_width(visit, width):
    tab = visit(viewport={"width": width, "height": 800})
    tab.get_by_text("isotonic curve (CORP)").first.click()
    assert tab.is_visible("#corp svg")
    assert not any(tab.is_visible(part) for part in ("#bins", "#diagram", ".diagram .numbers", "#sentence"))
    assert tab.evaluate("document.querySelector('#corp svg').getBoundingClientRect().width") >= 500
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.get_by_text("bins", exact=True).first.click()
    assert tab.is_visible("#bins")
    assert tab.is_visible(".diagram .numbers")


@pytest.mark.parametrize("width", [390, 1200])
def test_one_isotonic_curve_is_not_larger_than_other_figures(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    s = rng.random(300)
    build(cal.Predictions.binary(s, rng.random(300) < s), calibrators=[], resamples=40).save(tmp_path / "page.html")
    tab = browser.new_page(viewport={"width": width, "height": 800})
    tab.goto((tmp_path / "page.html").as_uri())
    tab.get_by_text("isotonic curve (CORP)").first.click()
    box = tab.locator("#corp svg").bounding_box()
    tab.close()
    assert box["width"] <= 420
    assert box["x"] + box["width"] <= width


def test_page_prints_as_pdf(visit, one, tmp_path, monkeypatch):
    tab = visit(color_scheme="dark")
    pdf = tab.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert 4 <= pdf.count(b"/Type /Page\n") <= 20
    tab.emulate_media(media="print", color_scheme="dark")
    assert brightness(tab, "backgroundColor") > 0.9
    assert not tab.is_visible("#controls")
    assert not tab.is_visible("#theme")
    monkeypatch.chdir(tmp_path)
    one.save("report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    assert [f.name for f in tmp_path.iterdir()] == ["report.pdf"]


def test_print_page_gives_a4(browser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pdf = print_page("<!DOCTYPE html><style>@page { size: A4 }</style><title>x</title><p>x")
    width, height = (float(x) for x in re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf).groups())
    assert (width, height) == (pytest.approx(595, abs=1), pytest.approx(842, abs=1))


def test_without_scripts_all_tables_stand(visit, browser, files):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto((files / "one.html").as_uri())
    assert tab.is_visible("noscript p")
    assert tab.locator("#numbers-0 tbody tr").count() == 11
    assert not tab.is_visible("#controls")
    context.close()


def test_the_threshold_follows_the_costs(browser, tmp_path):
    rng = np.random.default_rng(0)
    s = np.round(rng.beta(1, 4, 300), 3)
    s[:20] = 0.0198  # above 1 / 51, below the 2.0 % that it was once rounded to
    y = rng.random(300) < 0.6 * s
    r = build(cal.Predictions.binary(s, y), calibrators=["temperature"], cost="fn=4,fp=1", resamples=40)
    r.save(tmp_path / "binary.html")
    context = browser.new_context()
    tab = context.new_page()
    tab.goto((tmp_path / "binary.html").as_uri())
    for fn in (None, 9, 50):
        if fn is not None:
            tab.fill("#cost-fn", str(fn))
        cut = 1 / (1 + (fn or 4))
        called = s >= cut
        assert number(tab, "cut-shown") == round(100 * cut, 2)
        assert number(tab, "cut-called") == pytest.approx(100 * called.mean(), abs=0.051)
        assert number(tab, "cut-found") == pytest.approx(100 * called[y].mean(), abs=0.051)
        assert number(tab, "cut-precision") == pytest.approx(100 * y[called].mean(), abs=0.051)
        cost = ((fn or 4) * (y & ~called).sum() + (~y & called).sum()) / 300
        assert number(tab, "cut-cost") == pytest.approx(cost, abs=5.1e-5)
    assert "if the scores are true" in tab.inner_text("#cut-words")
    context.close()
