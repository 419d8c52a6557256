"""Files: four formats, whole or not at all, and pages that work offline with a slider that tells the truth."""

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.text.theme import COLOURS, INK, PAGE, QUIET
from calibrant.figures import make
from calibrant.plotting.draw import check_out, compute, draw, page, spec
from calibrant.plotting.pdf_order import in_order

NASTY = "</script><script>window.broken = 1</script><b>&\"'"


class Page(HTMLParser):
    """Tags with their attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_suffix_says_the_format(p, tmp_path):
    starts = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!DOCTYPE html>"}
    for suffix, start in starts.items():
        out = tmp_path / "new folder" / f"figure{suffix}"
        words = draw("reliability:bins=10", {"CE": p}, out)
        assert out.read_bytes().startswith(start)
        assert words.startswith("Accuracy against confidence in 10")
    assert sorted(f.name for f in (tmp_path / "new folder").iterdir()) == sorted(f"figure{s}" for s in starts)


def test_png_is_80_mm_at_300_dots_per_inch(p, tmp_path):
    from PIL import Image

    draw("reliability", {"CE": p}, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as image:
        assert image.info["dpi"] == pytest.approx((300, 300), abs=1)
        assert 70 <= image.width / 300 * 25.4 <= 80


def test_other_suffixes_are_refused_before_anything_is_drawn(tmp_path):
    for name in ("figure.gif", "figure", "figure.PNG", ".svg"):
        with pytest.raises(InputError, match=r"\.svg, \.png, \.pdf, \.html"):
            draw("reliability", {}, tmp_path / name)
    assert check_out("a/b.pdf").name == "b.pdf"
    assert list(tmp_path.iterdir()) == []


def test_a_failed_drawing_leaves_the_old_file(p, tmp_path, monkeypatch):
    out = tmp_path / "figure.svg"
    out.write_text("old")
    monkeypatch.setattr("calibrant.plotting.draw.to_svg", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        draw("reliability", {"CE": p}, out)
    assert out.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["figure.svg"]


def test_wrong_themes_models_and_sources_are_refused(p, tmp_path):
    with pytest.raises(InputError, match=r"theme: expected one of dark, light, got 'blue'"):
        draw("reliability", {"CE": p}, tmp_path / "figure.svg", theme="blue")
    with pytest.raises(InputError, match="at most 8 models"):
        draw("reliability", {str(i): p for i in range(9)}, tmp_path / "figure.svg")
    for nothing in ({}, None, {"CE": 3}, pl.DataFrame({"a": [1]})):
        with pytest.raises(InputError, match="expected predictions"):
            draw("reliability", nothing, tmp_path / "figure.svg")
    with pytest.raises(InputError, match="rows of a figure"):
        make("reliability").chart([])
    assert list(tmp_path.iterdir()) == []


def test_one_model_needs_no_name(p):
    assert {row["model"] for row in compute("reliability", p)} == {"model"}


def test_words_are_the_alternative_text(p, tmp_path):
    words = draw("risk_coverage", {NASTY: p}, tmp_path / "figure.svg")
    picture = (tmp_path / "figure.svg").read_text()
    root = ElementTree.fromstring(picture)
    assert (root.get("role"), root.get("aria-label")) == ("img", words)


def test_pdf_is_80_mm_wide(p, tmp_path):
    draw("reliability", {"CE": p}, tmp_path / "figure.pdf")
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+)", (tmp_path / "figure.pdf").read_bytes())
    assert 70 <= float(box.group(1)) / 72 * 25.4 <= 80


def test_dark_and_light_differ_in_colours_only(p):
    rows = compute("reliability", {"CE": p})
    light, dark = (spec("reliability", rows, theme=theme)["config"] for theme in ("light", "dark"))
    assert light["background"] == "#ffffff"
    assert light["background"] != dark["background"]
    assert light["axis"]["labelFontSize"] == dark["axis"]["labelFontSize"] >= 10


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast(theme):
    """Words at least 4.5 to 1 on the page, the first two colours of marks at least 3 to 1 (WCAG)."""

    def contrast(a, b):
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    assert contrast(INK[theme], PAGE[theme]) > 12
    assert contrast(QUIET[theme], PAGE[theme]) > 4.5
    for colour in COLOURS[theme][:2]:
        assert contrast(colour, PAGE[theme]) > 3
    assert len(set(COLOURS[theme])) == 8


# -- pages ----------------------------------------------------------------------------------------


def test_a_page_asks_the_network_for_nothing(p, tmp_path):
    draw("reliability", {NASTY: p}, tmp_path / "figure.html", theme="dark")
    text = (tmp_path / "figure.html").read_text()
    tags = Page(text).tags
    assert [attrs for _, attrs in tags if {"src", "href", "srcset"} & set(attrs)] == []
    assert [tag for tag, _ in tags if tag in ("link", "img", "iframe", "object", "base")] == []
    policy = next(attrs["content"] for tag, attrs in tags if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert len(text) < 1_200_000


def test_names_cannot_break_out_of_a_page(p, tmp_path):
    draw("reliability", {NASTY: p}, tmp_path / "figure.html")
    text = (tmp_path / "figure.html").read_text()
    assert [tag for tag, _ in Page(text).tags].count("script") == 2
    assert "<b>" not in text.rpartition("<figcaption>")[2]


def test_a_page_from_a_chart(p):
    chart = spec("risk_coverage", compute("risk_coverage", {"CE": p}))
    text = page(chart, title="A <title>")
    assert "<title>A &lt;title&gt;</title>" in text
    assert chart["description"] in text


def test_only_pages_carry_the_cells_of_the_slider(p, tmp_path):
    draw("reliability", {"CE": p}, tmp_path / "figure.html")
    draw("reliability", {"CE": p}, tmp_path / "figure.svg")
    assert '"name":"bins"' in (tmp_path / "figure.html").read_text()
    assert {row["part"] for row in compute("reliability", p)} == {"bin"}


# -- the slider in Vega ---------------------------------------------------------------------------


def bins_shown(p, scheme, count):
    """The ECE that Vega computes when the slider stands at `count`, with all digits."""
    import vl_convert

    figure = make(f"reliability:slider=true,scheme={scheme}")
    chart = json.loads(json.dumps(spec(figure, figure.data({"m": p}))).replace("'.4f'", "'.17g'"))
    (slider,) = chart["params"]
    assert slider["bind"]["min"] == 5
    slider["value"] = count
    scene = json.dumps(vl_convert.vegalite_to_scenegraph(chart))
    return float(re.search(r'"ECE ([\d.e-]+)"', scene).group(1))


@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize(("data", "count"), [("ties on edges", 20), ("ties on edges", 49), ("overconfident", 15)])
def test_vega_computes_the_measure(scheme, data, count, make_data):
    p = make_data(data)
    assert bins_shown(p, scheme, count) == pytest.approx(
        cal.measures.make(f"ece:bins={count},scheme={scheme}")(p), abs=1e-12
    )


def test_vega_computes_the_measure_on_real_rows():
    from calibrant.data import DEMO_TEST

    p = cal.Predictions.load(DEMO_TEST)
    for count in (93, 500):
        assert bins_shown(p, "width", count) == pytest.approx(cal.measures.make(f"ece:bins={count}")(p), abs=1e-12)


def test_the_slider_starts_at_the_bins_of_the_figure(p):
    for bins, start in ((15, 15), (3, 5), (900, 500)):
        figure = make(f"reliability:slider=true,bins={bins}")
        (slider,) = spec(figure, figure.data({"m": p}))["params"]
        assert slider["value"] == start


# -- in a browser ---------------------------------------------------------------------------------

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MOVE = (
    "n => { const i = document.querySelector('input[type=range]'); i.value = n; i.dispatchEvent(new Event('input')) }"
)
ROWS = """() => view.runAsync().then(() => Object.keys(view._runtime.data).map(name => view.data(name))
  .filter(rows => rows.length && 'low_edge' in rows[0])[0].map(row => ({...row})))"""


@pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER FOUND: the slider was not tried in one")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_slider_works_in_a_browser_without_a_network(p, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    out = tmp_path / "figure.html"
    draw("reliability", {NASTY: p}, out)
    problems, asked = [], []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            opened = browser.new_context(offline=True).new_page()
            opened.on("console", lambda message: problems.append(message.text))
            opened.on("pageerror", lambda error: problems.append(str(error)))
            opened.on("request", lambda request: asked.append(request.url))
            opened.goto(out.as_uri())
            opened.wait_for_selector("input[type=range]")
            assert opened.evaluate("window.broken") is None
            for count in (5, 15, 49, 500):
                opened.evaluate(MOVE, count)
                results = sorted(opened.evaluate(ROWS), key=lambda row: row["bin"])
                wanted = make(f"reliability:bins={count}").data({NASTY: p})
                assert [row["bin"] for row in results] == [row["bin"] for row in wanted]
                for row, want in zip(results, wanted, strict=True):
                    for key in ("low_edge", "high_edge", "share", "confidence", "accuracy", "gap", "low", "high"):
                        assert row[key] == pytest.approx(want[key], abs=1e-12), key
                    assert (row["count"], row["side"]) == (want["count"], want["side"])
                ece = f"ECE {cal.measures.make(f'ece:bins={count}')(p):.4f}"
                assert ece in opened.locator("svg text").all_text_contents()
        finally:
            browser.close()
    assert problems == []
    assert [os.path.basename(url) for url in asked] == ["figure.html"]


DRAW = """
import sys
from calibrant.data import DEMO_TEST
from calibrant.core.predictions import Predictions
from calibrant.plotting.draw import draw
draw(sys.argv[1], Predictions.load(DEMO_TEST), sys.argv[2])
"""


@pytest.mark.parametrize("figure", ["reliability", "confidence_density"])
def test_a_pdf_is_the_same_from_run_to_run_and_whole(tmp_path, figure):
    """Other processes give the converter other orders of resources and of fonts."""
    files = [tmp_path / f"{number}.pdf" for number in range(3)]
    for file in files:
        subprocess.run([sys.executable, "-c", DRAW, figure, str(file)], check=True)
    pdf = files[0].read_bytes()
    assert [file.read_bytes() == pdf for file in files] == [True] * 3
    place = int(pdf[pdf.rindex(b"startxref\n") :].split()[1])
    entries = re.match(rb"xref\n0 (\d+)\n((?:\d{10} \d{5} [nf] \n)+)trailer", pdf[place:])
    starts = [int(line[:10]) for line in entries[2].splitlines()[1:]]
    assert len(starts) + 1 == int(entries[1])
    for number, start in enumerate(starts, 1):  # every place in the table holds the object of that number
        assert pdf[start:].startswith(b"%d 0 obj\n" % number)
    words = re.sub(rb"\nstream\n.*?\nendstream", b"", pdf, flags=re.DOTALL)
    assert {int(n) for n in re.findall(rb"(\d+) 0 R\b", words)} == set(range(1, len(starts) + 1))
    lengths = [int(n) for n in re.findall(rb"/Length (\d+)\n", words)]
    streams = re.findall(rb"\nstream\n(.*?)\nendstream", pdf, flags=re.DOTALL)
    assert [len(stream) for stream in streams] == lengths


def test_another_pdf_stays_as_it_is():
    for pdf in (b"", b"%PDF-1.7\n", b"%PDF-1.7\nstartxref\n5\n%%EOF", b"%PDF-1.7\nstartxref\n99999\n%%EOF"):
        assert in_order(pdf) == pdf
