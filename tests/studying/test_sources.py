"""Stale rows: a job is computed again when the code or the data that decide its rows have changed, and only then."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("PIL")

from local_jobs import Here
from PIL import Image
from typer.testing import CliRunner

from calibrant.cli import app
from calibrant.core import sources
from calibrant.core.config.code_trust import allow_code
from calibrant.core.errors import InputError
from calibrant.core.sources import entry_source
from calibrant.studying import study as study_module
from calibrant.studying.adopt import adopt
from calibrant.studying.engine import run_jobs
from calibrant.studying.job import Job
from calibrant.studying.run_job import do
from calibrant.studying.sources import FILE, EarlierSources
from calibrant.studying.store import Store
from calibrant.studying.study import open_plan, open_study

MEASURE = """
from dataclasses import dataclass
import numpy as np
from calibrant.measures import RowMeasure
from numbers_of_mine import VALUE

@dataclass(frozen=True)
class Mine(RowMeasure):
    title = "Mine"
    reference = "-"
    unit = "share"

    def rows(self, p):
        return np.full(p.n, VALUE)
"""
LOSS = """
from dataclasses import dataclass
from calibrant.losses import Loss
from torch.nn.functional import cross_entropy

@dataclass(eq=False, repr=False, kw_only=True)
class Mine(Loss):
    title = reference = "-"

    def forward(self, logits, labels):
        return 1.0 * cross_entropy(logits, labels)
"""
CALIBRATOR = """
from dataclasses import dataclass
import numpy as np
from calibrant.calibrators import Calibrator, Linear

@dataclass(frozen=True)
class Mine(Calibrator):
    title = reference = "-"

    def fit(self, p):
        return self.build_map(p, Linear(np.array(0.5), np.array(0.0)), factor=0.5)
"""
NETWORK = """
from torch import nn

def n(num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))
"""
FILES = {
    "measure.py": MEASURE,
    "loss.py": LOSS,
    "calibrator.py": CALIBRATOR,
    "net.py": NETWORK,
    "numbers_of_mine.py": "VALUE = 0.25\n",
}
PLAN = """
title = "Mine"
base = "losses"
[grid]
data = ["digits"]
model = ["mine"]
seed = [1]
[means.model]
mine = { model = "./net.py:n" }
[recipe]
epochs = 1
data = { limit = 64, test_limit = 64, split = "4:1", augment = "none" }
[methods]
CE = { loss = "ce + 0.5*./loss.py" }
[after]
calibrators = ["identity", "./calibrator.py"]
measures = ["nll", "./measure.py"]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a plan that names code of the user, from which commands are run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "plan.toml").write_text(PLAN)
    yield tmp_path
    sys.modules.pop("numbers_of_mine", None)


def run(out="out"):
    """Open the plan, compute what is missing in this process, and give the study and how many jobs were finished."""
    sys.modules.pop("numbers_of_mine", None)
    with allow_code():
        opened = open_plan("plan.toml", out)
    ended = run_jobs(opened.jobs, opened.store, Here(opened.store.folder))
    assert ended.done == ended.total
    return opened, ended.reused


def value(opened, measure):
    return opened.rows(f"measure = '{measure}' and calibrator = 'identity'")["value"].item()


@pytest.mark.parametrize(
    ("file", "kinds"),
    [
        ("measure.py", {"judge"}),
        ("calibrator.py", {"judge"}),
        ("numbers_of_mine.py", {"judge"}),
        ("loss.py", {"train"}),
        ("net.py", {"train"}),
    ],
)
def test_code_of_the_user_is_in_the_keys_of_the_jobs_that_run_it(place, file, kinds):
    jobs = {
        "train": {"loss": "ce + 0.5*./loss.py", "model": "./net.py:n", "data": {"name": "digits"}},
        "judge": {"calibrators": ["./calibrator.py"], "measures": ["nll", "./measure.py"]},
        "rescore": {"rescorer": "trust_score"},
    }

    def keys():
        return {kind: Job(kind, options).key for kind, options in jobs.items()}

    before, text = keys(), (place / file).read_text()
    (place / file).write_text(f'"""Words."""\n# and more\n{text}')
    assert keys() == before
    (place / file).write_text(f"{text}\nANOTHER = 1\n")
    assert {kind for kind, key in keys().items() if key != before[kind]} == kinds
    (place / file).write_text(text)
    assert keys() == before


def test_an_edited_measure_and_an_edited_loss_give_new_rows(place):
    opened, reused = run()
    assert (reused, value(opened, "./measure.py")) == (0, 0.25)
    (place / "numbers_of_mine.py").write_text("VALUE = 0.75\n")
    assert value(open_study("out"), "./measure.py") == 0.25  # as it was stored, until the plan is run again
    again, reused = run()
    assert (reused, again.unused, again.outdated) == (1, 0, 1)
    assert again.changed == ("measures ./measure.py",)
    assert value(again, "./measure.py") == 0.75
    (place / "loss.py").write_text(LOSS.replace("1.0 *", "-1.0 *"))
    third, reused = run()
    assert (reused, third.outdated) == (0, 2)
    assert value(third, "nll") != value(again, "nll") == value(opened, "nll")


def test_a_study_opens_where_its_sources_are_not(place, monkeypatch):
    opened, _ = run()
    elsewhere = place / "elsewhere"
    for name in ("out", "jobs"):
        shutil.copytree(name, elsewhere / name)
    monkeypatch.chdir(elsewhere)
    for name in FILES:
        (place / name).unlink()
    moved = open_study("out")
    assert moved.rows().equals(opened.rows())
    assert {file.name for file in (elsewhere / "out" / "sources").iterdir()} == set(FILES)
    shown = CliRunner().invoke(app, ["study", "table", "out", "-m", "./measure.py"])
    assert (shown.exit_code, "0.25" in shown.output) == (0, True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(elsewhere))  # where nothing is allowed
    for command in (["page", "out", "--out", "study.html"], ["claims", "out"], ["table", "out", "--format", "latex"]):
        refused = CliRunner().invoke(app, ["study", *command])
        assert "which would run the Python file" in str(refused.exception), command
    with pytest.raises(InputError, match=r"another .*losses .* run the plan"), allow_code():
        moved.run()


def test_code_that_changes_while_it_runs_gives_no_row(place):
    with allow_code():
        opened = open_plan("plan.toml", "out")
    train = next(job for job in opened.jobs if job.kind == "train")
    assert train.key
    (place / "net.py").write_text(NETWORK.replace("nn.Flatten()", "nn.Flatten(), nn.Identity()"))
    outcome = do(train, opened.store.folder)
    assert "another models ./net.py:n" in outcome.why
    assert not opened.store.files(train.key).exists()


def images(folder, count):
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for name in "ab":
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                pixels = rng.integers(0, 256, (8, 8), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / part / name / f"{number}.png")


def test_deleted_added_and_other_images_of_a_folder_are_other_data(place):
    images(place / "imgs", 3)
    options = {"data": {"name": "folder", "root": "imgs"}}
    before, shift = Job("train", options).key, Job("shift", {"set": "folder:root=imgs"}).key
    assert Job("train", options).key == before
    one = place / "imgs" / "test" / "a" / "0.png"
    content = one.read_bytes()
    one.unlink()
    assert Job("train", options).key != before
    assert Job("shift", {"set": "folder:root=imgs"}).key != shift
    one.write_bytes(content)
    assert Job("train", options).key == before  # the same images, though the file is newer
    one.write_bytes(content[::-1])
    assert Job("train", options).key != before
    shutil.move("imgs", "moved")
    one = place / "moved" / "test" / "a" / "0.png"
    one.write_bytes(content)
    assert Job("train", {"data": {"name": "folder", "root": "moved"}}).digests["files moved"] == Job(
        "train", options
    ).sources.digest("files moved")


def test_another_version_of_an_installed_package_is_other_code(place, monkeypatch):
    package = Path(__file__).parent.parent / "plugin_package"
    for part in package.iterdir():
        shutil.copytree(part, place / "site" / part.name)
    monkeypatch.syspath_prepend(str(place / "site"))
    options = {"calibrators": ["identity"], "measures": ["surprise:above=0.8"]}
    before = Job("judge", options).key
    metadata = place / "site" / "surprising-1.0.dist-info" / "METADATA"
    text = metadata.read_text()
    metadata.write_text(text.replace("1.0", "2.0"))
    assert Job("judge", options).key != before
    metadata.write_text(text)
    assert Job("judge", options).key == before
    module = place / "site" / "surprising" / "evaluation.py"  # a package that is being written has one version for long
    module.write_text(module.read_text().replace("self.above", "1 - self.above"))
    assert Job("judge", options).key != before


def test_our_own_code_is_the_entry_and_what_it_imports_from_its_catalogue(tmp_path, monkeypatch):
    ours = tmp_path / "calibrant"
    shutil.copytree(sources.OURS, ours, ignore=shutil.ignore_patterns("__pycache__", "data", "*.so"))
    monkeypatch.setattr(sources, "OURS", ours)

    def digests():
        specs = (("losses", "focal"), ("losses", "mdca"), ("losses", "ce"), ("measures", "ece"))
        return {spec: entry_source(*pair).digest for pair in specs for spec in [pair[1]]}

    before, focal, closed = digests(), ours / "losses" / "focal.py", ours / "losses" / "_closed.py"
    text = focal.read_text()
    focal.write_text(text.replace("gamma: float = ", "gamma: int = ", 1) + "\n# a word\n")
    assert digests() == before
    focal.write_text(text.replace("gamma: float = ", "gamma: float = 1 + ", 1))
    after = digests()
    assert {name for name in after if after[name] != before[name]} == {"focal", "mdca"}  # focal is mdca's partner
    focal.write_text(text)
    closed.write_text(closed.read_text() + "\nNEW = 1\n")
    assert digests()["focal"] != before["focal"]
    assert digests()["ece"] == before["ece"]


def as_before(opened):
    """Make the store of a study, and the study, as they were before sources were in the keys."""
    earlier = list(study_module.jobs_of(opened.plan, EarlierSources()))
    for old, job in zip(earlier, opened.jobs, strict=True):
        if opened.store.files(job.key).exists():
            opened.store.files(job.key).rename(opened.store.files(old.key))
    store = Store(opened.store.folder)
    for kind in store.kinds():
        store.copy_rows(kind, {a.key: b.key for a, b in zip(opened.jobs, earlier, strict=True) if a.kind == kind})
        for part in (store.folder / "rows" / kind).glob("part-*.parquet"):
            keys = set(store.rows(kind)["job"]) & {job.key for job in opened.jobs}
            if any(key in part.name for key in keys):
                part.unlink()
    (opened.folder / FILE).unlink()


def test_rows_from_before_sources_are_found_and_adopted(place):
    opened, _ = run()
    rows = opened.rows().drop("job")
    as_before(opened)
    earlier = open_study("out")
    assert earlier.rows().drop("job").equals(rows)
    with allow_code():
        adopted = adopt("jobs")
    assert (adopted.adopted, adopted.sampled) == (2, {"judge": 1, "train": 1})
    again, reused = run()
    assert reused == 2
    assert again.rows().drop("job").equals(rows)
    assert not list((place / "jobs").glob("adopt-*"))


def test_rows_that_come_out_otherwise_are_not_adopted(place):
    opened, _ = run()
    (place / "numbers_of_mine.py").write_text("VALUE = 0.5\n")
    with pytest.raises(InputError, match=r"value 0\.5 .*measure \./measure\.py.* 0\.25 before"), allow_code():
        adopt("out")
    assert open_study("out").rows().equals(opened.rows())
    assert opened.store.done() == {job.key for job in opened.jobs}


def test_code_that_was_only_written_in_another_way_is_adopted(place):
    run()
    (place / "numbers_of_mine.py").write_text("VALUE = 1 / 4\n")
    with allow_code():
        again = open_plan("plan.toml", "out")  # which says that a job will be computed again
        assert again.outdated == 1
        result = CliRunner().invoke(app, ["study", "adopt", "jobs", "--allow-code"])
    assert (result.exit_code, "1 jobs adopted" in result.output) == (0, True), result.output
    _, reused = run()
    assert reused == 2
