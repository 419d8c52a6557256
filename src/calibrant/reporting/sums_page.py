"""The report from sums as a page, as Markdown and in a terminal."""

import html
from importlib.resources import files
from textwrap import fill

from rich.console import Group, RenderableType
from rich.text import Text

from calibrant.core import wording
from calibrant.reporting import pictures
from calibrant.reporting.from_sums import SumsReport
from calibrant.reporting.markdown import table
from calibrant.reporting.tables import console, table_of
from calibrant.reporting.terminal import sparkline

HEAD = ("measure", "value", "95 % interval", "better", "what it is")


def page(r: SumsReport) -> str:
    """One HTML file without a script and without a request to any network."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    drawn = pictures.inline(r.figure.figure, r.figure.rows, r.figure.words, name="reliability")
    loader = DictLoader({"page": _asset("sums.html.jinja")})
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    style = Markup(pictures.theme_css() + _asset("page.css"))
    return str(
        made.get_template("page").render(
            r=r, style=style, figure=Markup(drawn), head=HEAD, numbers=numbers(r), parts=parts(r), made=how(r)
        )
    )


def frame(r: SumsReport) -> str:
    """For notebooks: the page in a frame of its own."""
    return (
        f'<iframe title="{html.escape(r.title)}" srcdoc="{html.escape(page(r))}" sandbox="" '
        'style="width:100%;height:80vh;min-height:30rem;border:1px solid #8884" loading="lazy"></iframe>'
    )


def markdown(r: SumsReport) -> str:
    parts_of = [f"# {_plain(r.title)}", f"**{r.verdict.headline}**", r.verdict.text, *r.notes]
    parts_of += [f"## {r.spoken.title}", r.figure.words]
    parts_of += ["## The numbers", f"{wording.count(r.n, 'row')}, from sums.", table(HEAD, numbers(r))]
    if r.parts:
        parts_of += [f"## By {_plain(r.by)}", table(_part_head(r), parts(r))]
    return "\n\n".join([*parts_of, "## How this was made", *how(r)]) + "\n"


def twin(r: SumsReport) -> Group:
    """The same in a terminal."""
    bold: list[RenderableType] = [Text(r.title, style="bold"), "", Text(r.verdict.headline, style="bold")]
    shown: list[RenderableType] = [
        *bold,
        *map(wrapped, (r.verdict.text, *r.notes)),
        "",
        sparkline(r.bins, r.spoken),
        "",
    ]
    listed = table_of(*HEAD)
    for (*cells, _), number in zip(numbers(r), r.numbers, strict=True):
        listed.add_row(*cells, number.title)
    listed.columns[-1].no_wrap = False
    shown += [Text("The numbers, with 95 % intervals", style="bold"), listed]
    if r.parts:
        each = table_of(*_part_head(r))
        for cells in parts(r):
            each.add_row(*cells)
        shown += ["", each]
    return Group(*shown, "", Text("How this was made", style="bold"), *map(wrapped, how(r)))


def wrapped(text: str) -> Text:
    return Text(fill(text, max(console().width, 20), break_on_hyphens=False))


def numbers(r: SumsReport) -> list[list[str]]:
    made = []
    for n in r.numbers:
        ends = wording.interval(n.measure, n.low, n.high) or "none"
        words = f"{n.title}: {n.definition}. {n.meaning}".rstrip()
        made.append([n.measure, wording.value(n.measure, n.value), ends, n.better, words])
    return made


def parts(r: SumsReport) -> list[list[str]]:
    return [
        [one.name, wording.count(one.n), wording.percent(one.says), wording.percent(one.right),
         wording.change("gap", one.says - one.right)] for one in r.parts
    ]  # fmt: skip


def how(r: SumsReport) -> list[str]:
    source = r.made.sources[0]
    versions = ", ".join(f"{name} {version}" for name, version in r.made.versions.items())
    lines = [f"{source.name}: sums of {wording.count(source.n, 'row')}, SHA-256 {source.sha256}."]
    lines += [f"Seed {r.made.seed}; {versions}; {r.made.date}."]
    return [r.made.command, *lines] if r.made.command else lines


def _part_head(r: SumsReport) -> list[str]:
    return [r.by, "rows", r.spoken.says, r.spoken.right, "gap, points"]


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("|", "\\|")


def _asset(name: str) -> str:
    return files("calibrant.reporting").joinpath(name).read_text(encoding="utf-8")
