"""Commands on the networks of NATS-Bench: nas spaces, show, train, measure, accuracy, query."""

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli._app import App, Json, Seed, app, bar, needs_train, print_json
from calibrant.cli._nas_progress import run_shown
from calibrant.core.errors import InputError

if TYPE_CHECKING:
    from calibrant.nas.spaces import Space

commands = App(help="Calibration over neural architectures: spaces, networks, tables of many networks.")
app.add_typer(commands, name="nas")

Out = Annotated[
    Path, typer.Option("--out", "-o", help="folder for the table (nas.parquet) and finished networks (jobs)")
]
On = Annotated[str, typer.Option(help="local, local:N, ray, ray://HOST:PORT or shard:3/64")]
Limit = Annotated[float, typer.Option(min=0, help="seconds that one network may take; 0 is no limit")]
Retry = Annotated[bool, typer.Option("--retry", help="try failed networks again")]
TableFile = Annotated[
    Path | None, typer.Option("--table", help="a table from nas train or nas measure (default: calibrant's own)")
]
Tables = Annotated[
    list[Path] | None,
    typer.Option("--table", help="networks: .parquet, or the .csv files of the study's authors (repeat for more)"),
]
WIDTH = 80  # columns of a terminal
SHOWN = ("data", "seed", "accuracy", "pre_ECE_15", "post_ECE_15", "T", "hcs")


@commands.command("spaces")
def list_spaces(as_json: Json = False) -> None:
    """Show both spaces: how many networks, how many different ones, how many that ignore the image."""
    from calibrant.nas import spaces

    rows = [_space_facts(name, spaces.make(name)) for name in spaces.names()]
    pairs = sum(row["unique"] for row in rows) * 3
    if as_json:
        return print_json({"spaces": rows, "pairs": pairs})
    for row in rows:
        typer.echo(f"{row['name']:10}{row['title']}")
        typer.echo(f"{'':10}{row['networks']:,} networks, {row['unique']:,} different, {row['constant']:,} constant")
    typer.echo(f"\n{pairs:,} pairs of a different network and one of three data sets.")


@commands.command()
def show(
    arch: Annotated[str, typer.Argument(help="a cell |...|, five widths 8:8:8:16:32, or an index")],
    space: Annotated[str, typer.Option(help="where ARCH is an index: topology or size, with options")] = "",
    classes: Annotated[int, typer.Option(min=2, help="number of classes")] = 10,
    size: Annotated[int, typer.Option(min=4, help="width and height of the images in pixels")] = 32,
    table: TableFile = None,
    svg: Annotated[Path | None, typer.Option(help="write a picture of the cell to this file")] = None,
    as_json: Json = False,
) -> None:
    """Show one network: its cell, index, parameters, FLOPs, class, and its numbers in the table."""
    from calibrant.core.files import write_text
    from calibrant.core.nats import BEST
    from calibrant.nas import spaces
    from calibrant.nas.pictures import cell_svg, cell_text, size_text

    chosen_space = spaces.make(space or _space_of(arch))
    text = chosen_space.find(arch)
    cell = text if text.startswith("|") else BEST
    facts = _network_facts(chosen_space, text, classes, size)
    facts["rows"] = _numbers(chosen_space, text, table)
    if svg is not None:
        write_text(svg, cell_svg(cell))
    if as_json:
        return print_json(facts)
    typer.echo(f"{text}\n")
    if cell is BEST and cell != text:
        typer.echo(f"{size_text(text)}\n")
    typer.echo(f"{cell_text(cell)}\n")
    _print_facts(facts, classes, size)


@commands.command()
def train(
    out: Out,
    space: Annotated[str, typer.Option(help="topology or size; with options, topology:width=8,cells=1")] = "topology",
    sample: Annotated[int, typer.Option(min=1, help="how many random networks, by --seed")] = 200,
    arch: Annotated[
        list[str] | None, typer.Option(help="these networks instead: texts or indices, joined by commas or repeated")
    ] = None,
    data: Annotated[str, typer.Option(help="data sets with their options, joined by commas")] = "fashion_mini:shrink=2",
    scale: Annotated[str, typer.Option(help="smoke (seconds), small (half a minute a network) or paper")] = "small",
    seed: Seed = 0,
    on: On = "local",
    limit: Limit = 0.0,
    retry: Retry = False,
    as_json: Json = False,
) -> None:
    """Train networks, sampled or named, and measure every column; after an interruption, the same command continues."""
    with needs_train():
        from calibrant.nas.build_table import data_sets, train_jobs

        archs = [name.strip() for text in arch or () for name in text.split(",") if name.strip()]
        jobs = train_jobs(space, sample, data_sets(data), scale=scale, seed=seed, archs=archs)
    run_shown(jobs, out, on, limit, retry, as_json)


@commands.command()
def measure(
    weights: Annotated[Path, typer.Option(help="a folder of NATS-Bench of the kind `full`")],
    out: Out,
    data: Annotated[str, typer.Option(help="cifar10, cifar100 or imagenet16_120, with options")] = "cifar10",
    epochs: Annotated[int, typer.Option(min=0, help="which training, by its epochs; 0 is the longest")] = 0,
    seed: Annotated[int, typer.Option(min=-1, help="which training, by its seed; -1 is the lowest")] = -1,
    robust: Annotated[int, typer.Option(min=0, help="images for corruptions and attacks; 0 leaves them out")] = 0,
    space: Annotated[str, typer.Option(help="the space, if it is a smaller one: topology:width=8,cells=1")] = "",
    on: On = "local",
    limit: Limit = 0.0,
    retry: Retry = False,
    as_json: Json = False,
) -> None:
    """Measure every column of networks with published weights; damaged files are skipped and counted."""
    with needs_train():
        from calibrant.nas.build_table import measure_jobs

        jobs = measure_jobs(weights, data, epochs=epochs, seed=seed, robust=robust, space=space)
    run_shown(jobs, out, on, limit, retry, as_json)


@commands.command()
def accuracy(
    folder: Annotated[Path, typer.Argument(help="a folder of NATS-Bench, simple or full")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the .parquet file to write")],
    as_json: Json = False,
) -> None:
    """Write the accuracies, losses and sizes that NATS-Bench's files hold to a table."""
    from calibrant.core.files import write_whole
    from calibrant.nas.files import accuracies, network_files

    with bar("files", len(network_files(folder)), quiet=as_json) as step:
        summary = accuracies(folder, on_file=step)
    if summary.table.height == 0:
        why = next(iter(summary.skipped.values()), "none")
        raise InputError(str(folder), expected="files of NATS-Bench", got=why, fix="get the folder again")
    write_whole(out, summary.table.write_parquet)
    facts = {"out": str(out), "files": summary.files, "rows": summary.table.height, "skipped": summary.skipped}
    if as_json:
        return print_json(facts)
    typer.echo(
        f"{summary.table.height:,} trainings of {summary.files - len(summary.skipped):,} networks written to {out}."
    )
    for name, why in list(summary.skipped.items())[:10]:
        typer.echo(f"  skipped {name}: {why}", err=True)
    if summary.skipped:
        typer.echo(f"{len(summary.skipped):,} of {summary.files:,} files were skipped.", err=True)


@commands.command()
def query(
    sql: Annotated[str, typer.Argument(help='a SELECT from the table nas: "select arch, accuracy from nas limit 5"')],
    table: Tables = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="write to a .parquet or .csv file instead of the terminal")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask the table of networks in SQL, read-only. A row is one training: one seed, and it may be a lucky one."""
    from calibrant.core.files import write_whole
    from calibrant.nas.query import query as ask
    from calibrant.nas.table import open_tables

    rows = ask(open_tables(table or ()), sql)
    if out is not None:
        if out.suffix not in (".parquet", ".csv"):
            raise InputError(str(out), expected=".parquet or .csv", got=f"'{out.suffix}'", fix="rename it")
        write_whole(out, rows.write_csv if out.suffix == ".csv" else rows.write_parquet)
        if as_json:
            return print_json({"out": str(out), "rows": rows.height})
        return typer.echo(f"{rows.height:,} rows written to {out}.")
    if as_json:
        return print_json(rows.to_dicts())
    import polars as pl

    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, fmt_str_lengths=100, tbl_hide_column_data_types=True, tbl_width_chars=WIDTH
    ):
        typer.echo(rows)
    typer.echo("A row is one training; another seed gives other numbers (how much: docs/nas.md, Luck of the seed).")


def _space_of(arch: str) -> str:
    return "size" if ":" in arch or ("-" in arch and "|" not in arch) else "topology"


def _space_facts(name: str, space: "Space") -> dict[str, Any]:
    constant = sum(map(space.is_constant, space.archs()))
    return {
        "name": name,
        "title": space.title,
        "networks": len(space),
        "unique": len(space.uniques()),
        "constant": constant,
        "reference": space.reference,
    }


def _network_facts(space: "Space", arch: str, classes: int, size: int) -> dict[str, Any]:
    return {
        "space": space.spec,
        "arch": arch,
        "index": space.index(arch),
        "unique": space.index(space.unique(arch)),
        "constant": space.is_constant(arch),
        "params": space.params(arch, classes=classes),
        "flops": space.flops(arch, classes=classes, size=size),
        "model": space.model(arch),
    }


def _numbers(space: "Space", arch: str, table: Path | None) -> list[dict[str, Any]]:
    """The rows of the table for this network; none where there is no table of the package yet."""
    from calibrant.data import NAS
    from calibrant.nas.table import open_table

    if table is None and not NAS.exists():
        return []
    networks = open_table(table)
    if "arch" not in networks.columns:
        raise InputError(str(table), expected="a column arch", got="none", fix="give a table that calibrant nas wrote")
    rows = networks.filter(networks["arch"] == arch)
    return rows.select([name for name in SHOWN if name in networks.columns]).to_dicts()


def _print_facts(facts: dict[str, Any], classes: int, size: int) -> None:
    typer.echo(f"index       {facts['index']} of the space {facts['space']}")
    same = "the first of its class" if facts["unique"] == facts["index"] else f"computes the same as {facts['unique']}"
    typer.echo(f"class       {same}")
    if facts["constant"]:
        typer.echo("constant    it ignores the image: its calibration means nothing")
    typer.echo(f"parameters  {facts['params']:,} ({classes} classes)")
    typer.echo(f"FLOPs       {facts['flops']:.8g} million multiply-adds ({size} x {size} pixels)")
    typer.echo(f"model       {facts['model']}")  # to be copied whole
    for row in facts["rows"]:
        words = [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()
        ]
        typer.echo(fill(", ".join(words), WIDTH, initial_indent="measured    ", subsequent_indent=" " * 12))
