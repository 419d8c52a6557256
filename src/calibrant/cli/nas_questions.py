"""Commands that ask a table of networks: nas ask, nas search."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli._app import Json, bar, needs_train, print_json
from calibrant.cli.nas import On, Tables, commands
from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError, visible
from calibrant.core.text.number_format import percent, wrap
from calibrant.nas import spaces

LIVE_DATA = "fashion_mini:shrink=2"


@commands.command()
def ask(
    question: Annotated[str, typer.Argument(help="all, or e.g. bin-size, bin_size:resamples=500")],
    table: Tables = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="write the answers: .html a page, .md a block of Markdown")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a table of networks one of the seven questions of the benchmark study, or all."""
    from calibrant.nas.answers import ABOUT, answer_all, as_text, markdown, read_networks, save_page, to_dict

    if out is not None and out.suffix not in (".html", ".md"):
        raise InputError(str(out), expected="a name that ends in .html or .md", got=f"'{out.suffix}'", fix="rename it")
    networks = read_networks(table or ())
    answers = answer_all(networks, None if question == "all" else [_spec(question)])
    if out is not None:
        about = "" if table else ABOUT
        save_page(answers, networks, out, about=about) if out.suffix == ".html" else markdown(answers, out)
    if as_json:
        return print_json([to_dict(answer) for answer in answers])
    for answer in answers:
        typer.echo(as_text(answer, short=question == "all"))
    if not table:
        typer.echo(wrap(ABOUT, more=""))
    if out is not None:
        typer.echo(f"Written to {visible(str(out))}.")


@commands.command()
def search(
    table: Tables = None,
    goal: Annotated[str, typer.Option("--for", help="accuracy, ece or hcs (both in one number)")] = "hcs",
    budget: Annotated[int, typer.Option(min=1, help="networks that a search may look at")] = 50,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="random, evolution or local (repeat; default: all)")
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=0, help="how often each search is run (default: 100 on a table, 1 by training)")
    ] = 0,
    seed: Annotated[
        int, typer.Option(min=0, help="seed of the first search; the same seed gives the same numbers")
    ] = 0,
    space: Annotated[str, typer.Option(help="topology or size")] = "topology",
    data: Annotated[
        str | None, typer.Option(help="a data set of the table (default: its first), or one to train on")
    ] = None,
    live: Annotated[
        Path | None, typer.Option(help="train instead of looking up; this folder keeps every network, to continue from")
    ] = None,
    scale: Annotated[str, typer.Option(help="size of the trainings: smoke, small or paper")] = "small",
    on: On = "local",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="draw accuracy against ECE with the Pareto front")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for architectures that are accurate and calibrated: in a table over many seeds, or by training."""
    from calibrant.nas.answers import read_networks
    from calibrant.nas.search import draw_front, front, search_table
    from calibrant.nas.searches import names
    from calibrant.plotting.draw import check_out

    if out is not None:
        check_out(out)
    chosen = by or sorted(names(), key="random".__ne__)
    if live is not None:
        if table:
            raise InputError("--live", expected="no --table beside it", got=str(table[0]), fix="leave one of them out")
        options = {"by": chosen, "goal": goal, "budget": budget, "seeds": seeds or 1, "seed": seed, "space": space}
        return _live(live, {**options, "scale": scale, "on": on}, data or LIVE_DATA, out, as_json)
    networks = read_networks(table or ())
    seeds = seeds or 100
    results = search_table(
        networks,
        by=chosen,
        goal=goal,  # type: ignore[arg-type]  # checked there
        budget=budget,
        seeds=seeds,
        seed=seed,
        space=space,
        data=data,
    )
    best = front(networks, space=space, data=data)
    if out is not None:
        draw_front(networks, out, space=space, data=data)
    if as_json:
        return print_json({"results": [asdict(result) for result in results], "front": best})
    typer.echo(f"{goal} found with {budget} networks, mean of {seeds} seeds (95 % interval)\n")
    family = spaces.make(space)
    for result in results:
        interval = f"{result.mean:.4f} ({result.low:.4f} to {result.high:.4f})"
        typer.echo(
            f"{result.search:12}{interval}  best of all {result.best.value:.4f}, {_network(family, result.best.arch)}"
        )
        if result.constant:
            typer.echo(f"{'':12}{result.constant} of {seeds} seeds end at a constant network, which ignores the image")
    _print_front(best, family)
    if out is not None:
        typer.echo(f"Written to {visible(str(out))}.")


def _live(folder: Path, options: dict[str, Any], data: str, out: Path | None, as_json: bool) -> None:
    with needs_train():
        from calibrant.nas.live_search import search_live
    from calibrant.nas.answers import read_networks
    from calibrant.nas.search import draw_front, front

    total = options["budget"] * len(options["by"]) * options["seeds"]
    with bar("networks", total, quiet=as_json) as step:
        before = 0

        def on_progress(done: int, _: int) -> None:
            nonlocal before
            step(done - before)
            before = done

        results = search_live(folder, **options, data=data, on_progress=on_progress)
    goal, networks = options["goal"], read_networks([results.file])
    space = name_of(options["space"])
    best = front(networks, space=space)
    if out is not None:
        draw_front(networks, out, space=space)
    facts = {"trained": results.trained, "failed": results.failed, "table": str(results.file)}
    if as_json:
        return print_json({**facts, "walks": [asdict(walk) for walk in results.walks], "front": best})
    typer.echo(f"{'search':12}{'seed':>6}  best {goal} of {options['budget']} networks")
    family = spaces.make(options["space"])
    for walk in results.walks:
        top = walk.best(goal)
        typer.echo(f"{walk.search:12}{walk.seed:6}  {top.value:.4f}, {_network(family, top.arch)}")
    _print_front(best, family)
    typer.echo(
        wrap(
            f"{results.table.height:,} networks in {visible(str(results.file))}, {results.trained:,} of them trained "
            f"now, {results.failed:,} failed. One training each: differences of a percent may be luck."
        )
    )
    if out is not None:
        typer.echo(f"Written to {visible(str(out))}.")


def _network(space: spaces.Space, arch: str) -> str:
    return f"network {space.index(arch)}{' (constant)' if space.is_constant(arch) else ''}"


def _print_front(best: list[dict[str, Any]], space: spaces.Space) -> None:
    """Print the front with networks by number: the name of a cell alone is longer than a line."""
    typer.echo(f"\nPareto front of accuracy against ECE: {len(best)} networks")
    for row in best:
        rates = f"accuracy {percent(row['accuracy'], 2):>7}  ECE {percent(row['ece'], 2):>7}"
        typer.echo(f"  {rates}  {_network(space, row['arch'])}")
    typer.echo("What a network is: calibrant nas show NUMBER; their names: --json.")


def _spec(question: str) -> str:
    name, colon, options = question.partition(":")
    return name.replace("-", "_") + colon + options
