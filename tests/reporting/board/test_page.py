"""The page of a board: one small file without a network, safe against names, and in a browser every control works."""

import json
import re
import shutil

import pytest
from board_tables import MODELS, answers, messy

import calibrant as cal
from calibrant.reporting.pdf import BROWSERS

CHROMIUM = next((path for name in BROWSERS if (path := shutil.which(name))), None)
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


@pytest.fixture(scope="module")
def board():
    return cal.board(messy(), confidence=["stated", "tokens"], group="category")


def test_the_page_asks_for_nothing_and_holds_the_numbers(board):
    text = board.text("html")
    assert len(text) < 300_000
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert [one["confidence"] for one in data["boards"]] == ["stated", "tokens"]
    best = board.boards[0].ordered("ece")[0]
    assert best.name in text
    assert next(m for m in data["boards"][0]["models"] if m["name"] == best.name)["scores"]["before"]["ece"][0] == (
        pytest.approx(best.scores["before"]["ece"].value, abs=1e-5)
    )


def test_names_are_text_and_nothing_else():
    evil = "</script><img src=x onerror=alert(1)>|a\x1b[2J"
    table = answers(60, models={evil: (0.5, 0.1), "b|c": (0.6, 0.1)})
    board = cal.board(table, confidence="stated", group="category")
    assert "<img" not in board.text("html")
    assert "\x1b" not in board.text("html")
    assert r"b\|c" in board.text("markdown")
    assert "<img" not in board.text("markdown")


@pytest.fixture(scope="module")
def opened_page(board, tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip(f"NO BROWSER: the page was NOT tested; install one of {', '.join(BROWSERS)}")
    api = pytest.importorskip("playwright.sync_api", reason="NO PLAYWRIGHT: the page was NOT tested; pip install it")
    file = tmp_path_factory.mktemp("board") / "board.html"
    board.save(file)
    wrong = []
    with api.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page()
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        yield page
        browser.close()
    assert [text for text in wrong if not text.startswith("data:")] == []


@pytest.fixture
def tab(opened_page):
    """The page as a phone opens it: no test sees what another has chosen."""
    opened_page.set_viewport_size({"width": 390, "height": 900})
    opened_page.reload()
    return opened_page


def names(tab):
    return [text.split("\n")[0] for text in tab.locator("#models tbody th").all_inner_texts()]


def test_in_a_browser_the_table_sorts_filters_and_opens_a_model(tab, board):
    first = board.boards[0]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert names(tab) == [m.name for m in first.ordered("ece")]
    tab.select_option("#sort", "accuracy")
    assert names(tab) == [m.name for m in first.ordered("accuracy")]
    tab.fill("#find", "THINK")
    assert set(names(tab)) == {name for name in MODELS if "think" in name}
    tab.fill("#find", "")
    tab.select_option("#sort", "ece")
    tab.click("label:has(input[value=after])")
    assert names(tab) == [m.name for m in first.ordered("ece", "after")]
    tab.click("label:has(input[value=before])")
    tab.locator("label:has(input[name=confidence])").nth(1).click()
    assert names(tab) == [m.name for m in board.boards[1].ordered("ece")]
    tab.locator("label:has(input[name=confidence])").nth(0).click()
    tab.select_option("#least", "0.99")
    assert "tiny-1B" not in names(tab)
    tab.select_option("#least", "0")
    tab.locator("#models tbody button", has_text="tiny-1B-think").click()
    assert tab.inner_text("#one-name") == "tiny-1B-think"
    assert tab.locator("#one .pair svg").count() == 2
    score = next(m for m in first.models if m.name == "tiny-1B-think").scores["before"]["ece"]
    assert f"ECE {100 * score.value:.1f}" in tab.inner_text("#one-says").replace("\xa0", " ")
    assert "math" in tab.inner_text("#one-groups")
    tab.click("#close")
    before = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    tab.click("#theme")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_in_a_browser_a_model_shows_which_cannot_be_told_apart(tab, board):
    tab.set_viewport_size({"width": 1200, "height": 900})
    top, second = (m.name for m in board.boards[0].ordered("ece")[:2])
    tab.locator("#models tbody tr", has_text=top).first.hover()
    marked = [text.split("\n")[0] for text in tab.locator("#models tr.alike th").all_inner_texts()]
    facts = board.boards[0].rankings["before"]["ece"].worse
    number = {m.name: i for i, m in enumerate(board.boards[0].models)}
    alike = {
        name
        for name, i in number.items()
        if name not in (top, "silent") and facts[i][number[top]] == facts[number[top]][i] == "0"
    }
    assert set(marked) == alike
    assert second in alike
