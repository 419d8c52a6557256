"""The page: valid, small, without a network, and no name in it can become markup or script."""

import base64
import hashlib
import html
import json
import re
from itertools import pairwise

import pytest

pytest.importorskip("html5lib")
import html5lib
import numpy as np

import calibrant as cal
from calibrant.core.curves.curve import Curve
from calibrant.core.predictions import Predictions
from calibrant.reporting import contents_by_task, page, pictures
from calibrant.reporting.build import build
from calibrant.reporting.curves import EXACT_ROWS
from calibrant.reporting.terminal import render


def parsed(text):
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def test_html_is_valid_and_ids_are_unique(text, text_of_three):
    for one in (text, text_of_three):
        tree = parsed(one)
        ids = [element.attrib["id"] for element in tree.iter() if "id" in element.attrib]
        assert len(ids) == len(set(ids))
        names = set(ids)
        for element in tree.iter():
            for attribute in ("for", "aria-labelledby", "href"):
                value = element.attrib.get(attribute, "")
                if attribute != "href" or value.startswith("#"):
                    assert value.removeprefix("#") in names | {""}
            assert "tabindex" not in element.attrib or element.attrib.get("aria-label")


def test_a_screen_reader_finds_its_way(text):
    tree = parsed(text)
    assert tree.find("html") is None  # the root is html itself
    assert tree.attrib["lang"] == "en"
    tags = [element.tag for element in tree.iter() if isinstance(element.tag, str)]
    assert tags.count("main") == tags.count("h1") == tags.count("nav") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(b - a <= 1 for a, b in pairwise(levels))
    for table in tree.iter("table"):
        assert all(head.attrib.get("scope") for head in table.iter("th"))
    for figure in tree.iter("figure"):
        svg = next(child for child in figure.iter() if str(child.tag).endswith("svg"))
        assert svg.attrib["role"] == "img"
        caption = "".join(figure.find("figcaption").itertext())
        assert svg.attrib["aria-label"].split() == caption.split()


def test_it_is_one_small_file_without_addresses(text, text_of_three):
    for one in (text, text_of_three):
        assert len(one.encode()) < 1_500_000
        without_names = one.replace(html.escape("http://127.0.0.1:9/x.png"), "")
        matches = set(re.findall(r"https?://[^\s\"'<>)]+", without_names))
        assert matches <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
        assert "@import" not in one
        assert not re.search(r"url\((?!#)", one)
        assert not re.search(r"<(link|script|img|iframe)[^>]*\b(src|href)=\"(?!data:,)", one)


def test_only_our_script_may_run(text):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in html.unescape(policy)
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in html.unescape(policy)


def test_names_cannot_become_markup(text, text_of_three):
    for one in (text, text_of_three):
        tree = parsed(one)
        assert not list(tree.iter("img"))
        assert len(list(tree.iter("script"))) == 2
        for element in tree.iter():
            assert not any(name.startswith("on") for name in element.attrib)
            assert not element.attrib.get("href", "").startswith("javascript")
    text_of_page = "".join(parsed(text).itertext())
    assert "</script><script>window.pwned = 1</script>" in text_of_page
    assert "{{ 7 * 7 }}" in text_of_page


def test_the_data_of_the_script_hold_any_name():
    evil = {"name": "</script><!-- <script> & \u2028"}
    written = page.in_script(evil)
    assert "<" not in written
    assert json.loads(written) == evil


def test_no_machine_path_is_on_the_page(text):
    assert "/work/" not in text
    assert "site-packages" not in text
    assert "/root" not in text


def test_the_same_report_gives_the_same_bytes(one, text):
    assert page.page(one) == text


def test_every_figure_wanted_is_there(one):
    assert {f.figure for f in one.figures} == {*contents_by_task.FIGURES, "decomposition"}
    for f in one.figures:
        svg = pictures.draw([f])[0][1].result()
        assert "background-color" not in svg
        assert "var(--" in svg


def test_many_rows_are_pooled_and_the_page_says_so(one):
    from dataclasses import replace

    rng = np.random.default_rng(0)
    scores = rng.random(EXACT_ROWS + 1)
    curve = Curve.sort(scores, (rng.random(len(scores)) < scores).astype(float))
    m = one.models[0]
    tried = tuple(replace(t, curve=curve) for t in m.trials)
    data = page.page_data(replace(one, models=(replace(m, n=curve.n, trials=tried),)))
    assert len(json.dumps(data)) < 2_100_000
    assert any("pools of neighbouring rows" in note for note in data["notes"])


def test_what_does_not_fit_is_left_out_and_named(one, monkeypatch):
    monkeypatch.setattr(page, "BUDGET", 9000)
    data = page.page_data(one)
    labels = [t["label"] for t in data["models"][0]["trials"]]
    assert labels[0] == "uncalibrated"
    assert len(labels) < len(one.models[0].trials)
    assert "left out of the diagram" in data["notes"][0]


def test_two_classes_and_few_rows_make_a_page():
    p = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]] * 2, [0, 1, 1] * 2)
    report = build(p, resamples=40)
    text = page.page(report)
    parsed(text)
    assert report.models[0].verdict.headline in html.unescape(text)


# -- notebooks --------------------------------------------------------------------------------------


def test_a_report_shows_itself_in_a_frame(one):
    html = one._repr_html_()
    tree = html5lib.parseFragment(html, namespaceHTMLElements=False)
    frame = tree.find("iframe")
    assert frame.attrib["sandbox"] == "allow-scripts"
    assert frame.attrib["srcdoc"].startswith("<!DOCTYPE html>")


def test_measurements_and_maps_show_themselves(p):
    measured = cal.measure(p, "ece", resamples=40)
    assert f"{measured.value:.4f}" in measured._repr_html_()
    assert "15 equal-width" in measured._repr_html_()
    html = cal.fit(p, "temperature")._repr_html_()
    assert "temperature" in html
    assert "kept" in html
    for one in (measured._repr_html_(), html):
        html5lib.HTMLParser(strict=True).parseFragment(one)


def test_the_room_can_be_called(p, tmp_path):
    from calibrant import report

    r = report(p, calibrators=["temperature"], resamples=40, title="mine")
    assert r.title == "mine"
    r.save(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["title"] == "mine"
    assert r.models[0].verdict.headline in str(r)


def test_figures_are_computed_once_and_only_for_formats_that_show_them(monkeypatch):
    computed = []
    once = pictures._decomposition
    monkeypatch.setattr(contents_by_task, "figures", lambda task, costs: ("risk_coverage", "correctness_roc"))
    monkeypatch.setattr(pictures, "_decomposition", lambda *asked: computed.append(1) or once(*asked))
    rng = np.random.default_rng(0)
    p = Predictions.from_logits(rng.normal(size=(60, 3)), rng.integers(0, 3, size=60))
    r = build(p, calibrators=["temperature"], resamples=40)
    render(r)
    assert not computed
    drawn = pictures.draw(r.each_figure())
    assert [figure.figure for figure, _ in drawn] == ["risk_coverage", "correctness_roc", "decomposition"]
    assert r.figures == tuple(figure for figure, _ in drawn)
    assert [f["figure"] for f in r.to_dict()["figures"]] == [f.figure for f in r.figures]
    assert [svg.result() for _, svg in pictures.draw(r.each_figure())] == [svg.result() for _, svg in drawn]
    assert len(computed) == 1
