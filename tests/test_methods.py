"""docs/methods: every entry of a catalogue is described there, and every citation of it leads to an anchor."""

import re
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.nas import questions

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [DOCS / "methods.md", *sorted((DOCS / "methods").glob("*.md"))]
CITATION = re.compile(r"docs/(methods(?:/\w+)?\.md)(?:#([\w-]+))?")
LINK = re.compile(r"\]\(([\w./-]*?\.md)?(?:#([\w-]+))?\)")


def anchors(page: Path) -> set[str]:
    """Headings as GitHub and mkdocs name them, and `<a id="name">`."""
    text = page.read_text()
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    slugs = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', text))


ANCHORS = {page.relative_to(DOCS).as_posix(): anchors(page) for page in PAGES}
CITING = [
    file
    for folder in ("src", "tests", "tools", "docs", "examples", "recipes", "benchmarks")
    for file in sorted((ROOT / folder).rglob("*"))
    if file.suffix in (".py", ".md", ".toml", ".pyi", ".c") and file != Path(__file__)
]


def test_every_citation_leads_to_an_anchor():
    cited = [(file, *citation) for file in CITING for citation in CITATION.findall(file.read_text())]
    assert len(cited) > 20
    lost = [f"{file.relative_to(ROOT)}: {page}#{anchor}" for file, page, anchor in cited if not _exists(page, anchor)]
    assert not lost


def _exists(page: str, anchor: str) -> bool:
    return page in ANCHORS and (not anchor or anchor in ANCHORS[page])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_the_pages_lead_somewhere(page):
    generated = {"measures.md", "calibrators.md", "all_losses.md", "models.md", "datasets.md", "corruptions.md"}
    for name, anchor in LINK.findall(page.read_text()):
        target = (page.parent / name).resolve() if name else page
        if target.parent == DOCS and target.name in generated:  # written by make docs
            continue
        assert target.exists(), f"{page.name} links to {name}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {name}#{anchor}"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("measures", cal.measures.names()),
        ("calibrators", [*cal.calibrators.names(), *cal.rescorers.names()]),
        ("losses", cal.losses.names()),
        ("questions", questions.CATALOGUE.names()),
    ],
)
def test_every_entry_is_described(page, names):
    described = ANCHORS[f"methods/{page}.md"]
    assert not [name for name in names if name not in described]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_formulas_are_closed_and_no_table_is_broken_by_one(page):
    for paragraph in re.split(r"\n\s*\n", page.read_text()):
        assert paragraph.count("$") % 2 == 0, paragraph
    for line in re.findall(r"^\|.*", page.read_text(), re.M):
        for formula in re.findall(r"\$([^$]+)\$", line):
            assert "|" not in formula, line
