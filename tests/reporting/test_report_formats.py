"""Other shapes of the same report: Markdown, JSON, PDF and the terminal; written whole or not at all."""

import io
import json
import os
import shutil

import pytest
from rich.console import Console

from calibrant.core.errors import InputError
from calibrant.reporting import pdf, tables
from calibrant.reporting.markdown import markdown
from calibrant.reporting.parts import Bin
from calibrant.reporting.terminal import render, sparkline
from calibrant.reporting.write import SUFFIXES, save


def printed(r, width=80, **options):
    out = Console(file=io.StringIO(), width=width, highlight=False, **options)
    out.print(render(r))
    return out.file.getvalue()


def test_the_terminal_says_what_the_page_says(one, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = printed(one)
    flat = " ".join(output.split())
    m = one.models[0]
    for words in (m.verdict.headline, m.verdict.text, m.classes.words, m.groups.words, *m.certainty.words):
        assert " ".join(words.split()) in flat
    for n in m.numbers:
        assert n.measure in flat
    for t in m.trials[1:]:
        assert t.calibrator in flat
    assert one.provenance.sources[0].sha256 in flat


def test_eighty_columns_and_no_colour_codes_in_a_pipe(one, three, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for r in (one, three):
        output = printed(r)
        assert "\x1b" not in output
        assert max(map(len, output.splitlines())) <= 80


def test_the_sparkline_has_a_bar_a_bin():
    bins = [Bin(i / 10, (i + 1) / 10, i, (i + 0.5) / 10, i / 10) for i in range(10)]
    says, right, rows, axis = sparkline(bins).plain.splitlines()
    assert says == "says       ▂▂▃▃▃▃▄▄▅▅▆▆▇▇▇▇██"
    assert right.startswith("is right   ▁▁")
    assert rows.endswith("██")
    assert axis.endswith("100 %")
    many = sparkline([Bin(i / 500, (i + 1) / 500, 1, 0.5, 0.5) for i in range(500)]).plain
    assert max(map(len, many.splitlines())) <= 80


def test_plain_letters_where_bars_cannot_be_printed(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert sparkline([Bin(0, 1, 1, 0.9, 0.1)]).plain.isascii()


def test_markdown_has_the_sentences_and_cannot_be_broken_by_names(one, three):
    whole = markdown(one)
    text = "\n".join(line for line in whole.splitlines() if not line.startswith("    "))  # code is shown as it is
    assert one.models[0].verdict.text in text
    assert "<script" not in text
    assert "<img" not in text
    assert "[x](javascript" not in text
    assert "| a\\|b |" in text
    for table in text.split("\n\n"):
        lines = table.splitlines()
        if lines[0].startswith("| "):
            assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
    assert "against honest" in markdown(three)


def test_saved_by_suffix(one, tmp_path):
    for suffix in (".html", ".md", ".json"):
        one.save(tmp_path / "deep" / f"r{suffix}")
    assert sorted(f.name for f in (tmp_path / "deep").iterdir()) == ["r.html", "r.json", "r.md"]
    assert json.loads((tmp_path / "deep" / "r.json").read_text()) == one.to_dict()


@pytest.mark.parametrize("name", ["r.docx", "r", ".html"])
def test_other_suffixes_are_refused(one, tmp_path, name):
    with pytest.raises(InputError, match=r"\.html, \.pdf, \.md, \.json"):
        one.save(tmp_path / name)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InputError, match="folder"):
        one.save(tmp_path / "folder.html")


def test_nothing_is_left_behind_when_it_fails(one, tmp_path, monkeypatch):
    (tmp_path / "r.json").write_text("old")

    def fail(*_):
        raise RuntimeError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(RuntimeError):
        save(one, tmp_path / "r.json")
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [("r.json", "old")]


def test_pdf_without_a_browser_says_what_to_install(one, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="install chromium"):
        one.save(tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


def test_pdf_with_a_browser_that_fails_says_so(one, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pdf, "find_browser", lambda: "/bin/false")
    with pytest.raises(InputError, match="printed by false"):
        pdf.print_page("<p>x</p>")
    assert list(tmp_path.iterdir()) == []


def test_the_list_of_suffixes_is_complete():
    assert set(SUFFIXES) == {".html", ".pdf", ".md", ".json"}
    assert tables.console().width
