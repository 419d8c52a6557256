"""The tab "Your predictions" in a real browser: every number on it is one of the library."""

import json
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.maps.map import load_map
from calibrant.core.text import number_format as fmt
from calibrant.measures import make
from calibrant.measuring import measure_format as mf
from calibrant.repairing.choose import fit_candidate


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    val, test = (p.take(np.arange(1000)) for p in cal.example("fashion"))  # reports of few rows take no time
    groups = np.where(np.arange(test.n) % 2, "<b>odd</b>${1}{{2}}", "even")
    ids = np.array([f"image-{i}" for i in range(test.n)])
    test = cal.Predictions.from_logits(test.values, test.labels, groups=groups, ids=ids)
    val.save(folder / "val.npz")
    test.save(folder / "test.npz")
    lines = ["p,y,note", *(f"{s:.6f},{int(o)},x" for s, o in zip(test.score[:500], test.outcome[:500], strict=True))]
    (folder / "odd.csv").write_text("\n".join(lines) + "\n")
    (folder / "broken.npz").write_bytes(b"PK\x03\x04 this is no archive")
    return folder


def number(tab, name):
    return tab.inner_text(f'#diagram [data-number="{name}"]')


def choose(tab, component, option):
    tab.wait_for_function("!document.querySelector('[role=option]')")  # of the dropdown before
    tab.locator(f"#{component} input").click()
    tab.get_by_role("option", name=re.compile(f"^✓?\\s*{re.escape(option)}$")).click()


def slide(tab, component, value):
    box = tab.locator(f"#{component} input[type=number]")
    box.fill(str(value))
    box.dispatch_event("change")
    box.blur()


def wait_for(tab, text, where="#diagram"):
    tab.wait_for_function(
        "([where, text]) => document.querySelector(where).innerText.includes(text)", arg=[where, text]
    )


def download(tab, name):
    with tab.expect_download() as downloading:
        tab.locator(f"#take-away a[href$='/{name}']").click()
    return downloading.value.path().read_bytes()


def outputs_of(tab, function):
    """The numbers of the components that this function of the page writes to, whatever calls it."""
    events = tab.evaluate("window.gradio_config.dependencies.map(event => [event.api_name, event.outputs])")
    outputs = [places for name, places in events if re.fullmatch(rf"{function}(_\d+)?", name)]
    assert outputs
    return {place for places in outputs for place in places}


def test_files_are_read_brushed_calibrated_and_downloaded(visit, files, server, tmp_path, monkeypatch):
    tab = visit()
    # Their answers may arrive in any order: a list that both write to would be the older one's for ever.
    assert not outputs_of(tab, "look") & outputs_of(tab, "write_report")
    test, val = cal.Predictions.load(files / "test.npz"), cal.Predictions.load(files / "val.npz")
    tab.get_by_role("button", name="Fit on one file").click()
    tab.set_input_files("#files input[type=file]", files / "test.npz")
    wait_for(tab, "test, uncalibrated")
    tab.set_input_files("#fit-files input[type=file]", files / "val.npz")
    wait_for(tab, "fit_on = {\n", "#code")
    assert number(tab, "ECE") == mf.value("ece", make("ece")(test))

    choose(tab, "calibrator", "temperature")
    slide(tab, "bins", 20)
    wait_for(tab, "test, temperature: 1,000 rows in 20 bins")
    map_ = fit_candidate(val, "temperature")
    after = map_(test)
    assert number(tab, "ECE") == mf.value("ece:bins=20", make("ece:bins=20")(after))
    assert number(tab, "loss (NLL)") == mf.value("nll", make("nll")(after))
    choose(tab, "segment", "even")
    wait_for(tab, "500 rows of even")
    even = after.take(test.groups == "even")
    assert number(tab, "ECE") == mf.value("ece:bins=20", make("ece:bins=20")(even))
    choose(tab, "segment", "all rows")
    wait_for(tab, "1,000 rows in")

    tab.wait_for_selector("#report-downloads a[href$='/card.png']")  # the report is there, and nothing moves any more
    svg = tab.locator("#diagram svg")
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    scale = box["width"] / 140  # of the viewBox, which begins at -30
    x = [box["x"] + scale * (30 + 100 * at) for at in (0.5, 0.75)]
    y = box["y"] + box["height"] / 2
    tab.mouse.move(x[0], y)
    tab.mouse.down()
    tab.mouse.move(sum(x) / 2, y)
    tab.mouse.move(x[1], y)
    tab.mouse.up()
    wait_for(tab, " % to 7", "#rows")
    low, high = (float(tab.input_value(f"#{name} input[type=number]")) for name in ("low", "high"))
    assert (low, high) == pytest.approx((0.5, 0.75), abs=0.01)
    head = tab.locator("#rows th").all_inner_texts()
    assert head == ["row", "id", "group", "predicted", "label", "right", "confidence", "uncalibrated"]
    first = tab.locator("#rows tbody tr").first.locator("td").all_inner_texts()
    row = int(first[0])
    assert first[1] == f"image-{row}"
    assert first[2] == str(test.groups[row])
    assert first[6] == fmt.percent(float(after.score[row]))
    assert "<b>odd</b>${1}{{2}}" in tab.inner_text("#rows")  # shown, not obeyed
    link = tab.get_attribute("#rows a", "href")
    table = tab.request.get(server.url.rstrip("/") + link).text().splitlines()
    assert len(table) - 1 == pytest.approx(((after.score >= low) & (after.score <= high)).sum(), abs=2)

    (tmp_path / "map.json").write_bytes(download(tab, "map.json"))
    assert json.loads((tmp_path / "map.json").read_text()) == json.loads(map_.to_json())
    np.testing.assert_array_equal(load_map(tmp_path / "map.json")(test).values, after.values)
    assert download(tab, "card.png").startswith(b"\x89PNG")
    assert b"Calibration of test" in download(tab, "report.html")
    assert "bins=20" in tab.url
    assert "with=temperature" in tab.url
    assert "image" not in tab.url

    code = download(tab, "repeat.py").decode()
    for name in ("test.npz", "val.npz"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.json").unlink()
    exec(compile(code, "repeat.py", "exec"), {})
    assert (tmp_path / "map.json").read_text() == map_.to_json()
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_columns_are_asked_for_and_bad_files_are_named(visit, files):
    tab = visit("?example=llm_stated&bins=30&segment=law", wait="#diagram svg")
    wait_for(tab, "rows of law in 30 bins")
    tab.set_input_files("#files input[type=file]", files / "odd.csv")
    wait_for(tab, "Which column is what?", "#verdict")
    assert "odd.csv: expected" in tab.inner_text("#verdict")
    assert str(files) not in tab.inner_text("#verdict")
    wait_for(tab, "note", "#preview")
    choose(tab, "column-confidence", "p")
    choose(tab, "column-correct", "y")
    tab.click("#read")
    wait_for(tab, "500 rows")
    p = cal.Predictions.load(files / "odd.csv", confidence="p", correct="y")
    assert number(tab, "loss (NLL)") == mf.value("nll", make("nll")(p))
    wait_for(tab, "confidence='p', correct='y'", "#code")
    tab.set_input_files("#files input[type=file]", files / "broken.npz")
    wait_for(tab, "This cannot be read.", "#verdict")
    assert "broken.npz: expected a readable .npz file" in tab.inner_text("#verdict")
