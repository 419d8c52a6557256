"""Many networks of a space, trained or read from files, into one table: jobs on the study engine."""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant import datasets
from calibrant.core.config import code_trust
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.files import write_whole
from calibrant.core.json import parse_json, read_typed, whole
from calibrant.nas import spaces
from calibrant.nas.files import network_files, read_network, require_weights
from calibrant.studying.engine import StudyProgress, run_jobs
from calibrant.studying.executors import executor_for
from calibrant.studying.job import Job
from calibrant.studying.job_kinds import Row, work_of
from calibrant.studying.sources import Sources, save_sources
from calibrant.studying.store import Store

if TYPE_CHECKING:
    import polars as pl

TABLE = "nas.parquet"
CONFIGURATION = {
    **dict.fromkeys(("space", "arch", "data"), str),
    **dict.fromkeys(("seed", "images", "test", "spoilt", "attacked"), int),
    **{"recipe": dict, "attacks": list, "ood": list},
}  # what the row of a training says of itself
NATS_NORMALISED = ("cifar10", "cifar100")  # have the benchmark's constants as an option


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The size of the training and of the test sets of a network."""

    spaces: Mapping[str, str]  # space -> the version of it that is trained
    recipe: Mapping[str, Any]  # keys of a recipe
    images: int  # trained on; 0 is all
    test: int  # images measured; 0 is all
    spoilt: int  # of these, under every corruption; as many from elsewhere (the name is in the keys of finished jobs)
    attacked: int  # and under every attack
    attacks: tuple[str, ...]


# Fewer and shorter than in the robustness data set of the benchmark, whose columns have other names.
ATTACKS = (
    *(f"fgsm:eps={size}/255" for size in (1, 2, 4, 8)),
    *(f"pgd:eps={size}/255,steps=10" for size in (1, 4)),
    *(f"square:eps={size}/255,queries=100" for size in (1, 4)),
)
BRIEF = ("fgsm:eps=1/255", "fgsm:eps=4/255", "pgd:eps=1/255,steps=5", "pgd:eps=4/255,steps=5")
SGD = {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}
SCALES = {
    "smoke": Scale(
        spaces={"topology": "topology:width=2,cells=1", "size": "size:width=1"},
        recipe={"epochs": 1, "batch": 32, "optimizer": SGD, "schedule": {"name": "cosine"}},
        images=64,
        test=64,
        spoilt=16,
        attacked=8,
        attacks=ATTACKS,
    ),
    "small": Scale(
        spaces={"topology": "topology:width=8,cells=1", "size": "size:width=2"},
        # The benchmark's own steps. Images as they are: in ten epochs of moved ones nothing is learned by heart.
        recipe={
            **{"epochs": 10, "batch": 256, "optimizer": SGD, "schedule": {"name": "cosine"}, "channels_last": True},
            "data": {"augment": "none"},
        },
        images=5000,
        test=4000,
        spoilt=300,
        attacked=150,
        attacks=(*BRIEF, "square:eps=1/255,queries=30"),
    ),
    "paper": Scale(
        spaces={"topology": "topology", "size": "size"},
        recipe={"epochs": 200, "batch": 256, "optimizer": SGD, "schedule": {"name": "cosine"}},
        images=0,
        test=0,
        spoilt=2000,
        attacked=1000,
        attacks=ATTACKS,
    ),
}


@dataclass(frozen=True)
class TableBuild:
    """The outcome of a run of many networks."""

    table: "pl.DataFrame"
    file: Path
    standing: StudyProgress
    failures: dict[str, str] = field(default_factory=dict)  # network -> the last line of what went wrong


def train_jobs(
    space: str,
    sample: int,
    data: list[str],
    *,
    scale: str = "small",
    seed: int = 0,
    archs: Sequence[str] = (),
    extremes: bool = False,
) -> list[Job]:
    """Jobs for networks and data sets: those of `archs`, or random ones (with the space's extremes, if asked).

    Each network has a seed of its own, made from `seed` and its index.
    """
    from calibrant.nas.columns import ood_for

    family = scale_space(space, scale)
    for spec in data:
        datasets.make(spec)  # a wrong name or option is refused before anything runs
    ood, sources = {spec: ood_for(spec) for spec in data}, Sources()
    return [  # all data sets of a network together: a run that is cut short has as many of each
        train_job(family, arch, spec, scale, seed=seed, ood=ood[spec], sources=sources)
        for arch in (dict.fromkeys(map(family.find, archs)) or family.sample(sample, seed=seed, extremes=extremes))
        for spec in data
    ]


def scale_space(space: str, scale: str) -> spaces.Space:
    """The version of a space that is trained at a scale; options of one's own stay."""
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    return spaces.make(space if ":" in space else SCALES[scale].spaces.get(space, space))


def train_job(
    space: spaces.Space,
    arch: str,
    data: str,
    scale: str,
    *,
    seed: int = 0,
    ood: Sequence[str] = (),
    sources: Sources | None = None,
) -> Job:
    """The training of one network at a scale: its options and sources say everything that decides the row."""
    chosen = asdict(SCALES[scale])
    facts = {key: value for key, value in chosen.items() if key != "spaces"} | {"attacks": list(chosen["attacks"])}
    place = {"space": space.spec, "arch": arch, "data": data, "seed": seed * 1_000_000 + space.index(arch)}
    return Job("nas_train", {**place, **facts, "ood": list(ood)}, sources=sources or Sources())


def measure_jobs(
    folder: str | Path, data: str, *, epochs: int = 0, seed: int = -1, robust: int = 0, space: str = ""
) -> list[Job]:
    """Jobs for files with weights, one each; the first readable file decides whether there are any."""
    from calibrant.nas.columns import ood_for

    files = network_files(folder)
    first = next(_readable(files))
    require_weights(first[1][0], first[0])
    name, colon, options = data.partition(":")
    if name in NATS_NORMALISED and "normalise" not in options:
        data = f"{name}:normalise=nats{',' if colon else ''}{options}"
    options_of_all = {"data": data, "epochs": epochs, "seed": seed, "space": space or first[1][0].space}
    facts = {"test": 0, "spoilt": robust, "attacked": robust, "attacks": list(ATTACKS), "ood": list(ood_for(data))}
    sources, paths = Sources(), [file.resolve() for file in files]
    return [Job("nas_measure", {"file": str(file), **options_of_all, **facts}, sources=sources) for file in paths]


def _readable(files: list[Path]) -> Iterator[tuple[Path, Any]]:
    """The files that can be read, with their content; the last error where there is none."""
    last: InputError | None = None
    for file in files:
        try:
            if trainings := read_network(file):
                yield file, trainings
        except InputError as error:
            last = error
    if last is not None:
        raise last


def run_networks(
    jobs: list[Job],
    out: str | Path,
    *,
    on: str = "local",
    limit: float = 0.0,
    retry: bool = False,
    on_progress: Callable[[StudyProgress], None] | None = None,
) -> TableBuild:
    """Compute what is missing and write the table of everything that is finished in this folder for these jobs."""
    folder = Path(out)
    store = Store(folder / "jobs")
    executor, mine, driver = executor_for(on, jobs, store, limit)
    if retry:
        store.forget_failures()
    save_sources(folder, {name: digest for job in jobs for name, digest in job.digests.items()})
    ended = run_jobs(mine, store, executor, driver=driver, retry=retry, on_progress=on_progress)
    keys = [job.key for job in jobs]
    table = store.rows(jobs[0].kind, keys).drop("job")
    write_whole(folder / TABLE, table.write_parquet)
    failed = store.failures()
    named = {_name(job): failed[job.key].why for job in jobs if job.key in failed}
    return TableBuild(table, folder / TABLE, ended, named)


def remake(row: Mapping[str, Any]) -> Row:
    """Train the network of a row again, by the seed and configuration that the row holds.

    A table may come from somebody else: a configuration that names code is refused outside `with allow_code():`,
    which says that it is trusted; this is remembered until it changes.
    """
    options = _configuration(row)
    code_trust.check("configuration", options, dict(code_trust.texts(options)))
    with tempfile.TemporaryDirectory() as place:
        return work_of("nas_train").run(options, [], Path(place) / "run")[0]


def _configuration(row: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration that a row says made it, with checked types."""
    from calibrant.nas.columns import OOD

    with whole("configuration", fix="give a row as calibrant nas train has written it"):
        options: dict[str, Any] = parse_json(read_typed(row, "configuration", str))
        for name, kind in CONFIGURATION.items():
            read_typed(options, name, kind)
        read_typed({"data": {}, **options["recipe"]}, "data", dict)
        for name, right in (("attacks", lambda name: isinstance(name, str)), ("ood", list(OOD).__contains__)):
            if not all(map(right, options[name])):
                raise ValueError(f"{name} is {options[name]!r:.40}")
    return options


def data_sets(text: str) -> list[str]:
    """Parse names of data sets with their options, joined by commas.

    >>> data_sets("fashion_mini:shrink=2,cifar10:shrink=2,root=/data,digits")
    ['fashion_mini:shrink=2', 'cifar10:shrink=2,root=/data', 'digits']
    """
    specs: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        if "=" in part.partition(":")[0]:
            if not specs:
                raise InputError("--data", expected="a data set first", got=f"'{part}'", fix=f"write NAME:{part}")
            specs[-1] += f",{part}"
        else:
            specs.append(part)
    return specs


def _name(job: Job) -> str:
    options = job.options
    return Path(options["file"]).name if "file" in options else f"{options['arch']} on {options['data']}"
