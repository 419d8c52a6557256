"""A training whose process ends between any two of its files: the same command finishes it, with the same files."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")
import torch
from test_loop import TINY, same

from calibrant.core.errors import InputError
from calibrant.core.lock import lock_folder
from calibrant.core.torch import checkpoint
from calibrant.models import Shape
from calibrant.training.loop import train
from calibrant.training.recipe import Recipe, change
from calibrant.training.run import Run

RECIPE = change(  # with every file that a run may have
    TINY, loss="focal", select="best", **{"meta.learn": "gamma", "data.limit": 32, "data.test_limit": 20}
)


def files(run):
    """What a finished run is, without times."""
    facts = {"run": (run.folder / "run.json").read_text(), "log": run.log.drop("seconds").to_dicts()}
    facts["gamma"] = pl.read_parquet(run.folder / "gamma.parquet").to_dicts()
    names = sorted(file.name for file in run.folder.iterdir() if not file.name.startswith("."))
    return facts | {"names": names}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """A whole run, and the folders that it would leave if its process were killed at any write.

    What `kill -9` leaves is what is on the disk: the folder is copied whenever a file is complete and not yet in its
    place, and the copy has the leftover file, the lock of nobody, and everything that was written before.
    """
    base, rename, left = tmp_path_factory.mktemp("ended"), os.replace, []

    def copy_and_rename(source, to, **options):
        left.append(shutil.copytree(base / "whole", base / f"before-{len(left) + 1}-{Path(to).name}"))
        rename(source, to, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", copy_and_rename)
        whole = train(RECIPE, base / "whole")
    return whole, left


def test_ended_at_any_write_it_is_finished_by_the_same_command(ended):
    whole, left = ended
    names = [folder.name.rpartition("-")[2] for folder in left]
    assert len(names) > 9
    assert {*names} == {file.name for file in whole.folder.iterdir()}
    assert names[0] == names[-1] == "run.json"
    for folder in left:
        assert (folder / ".lock").exists()
        assert not replace(whole, folder=folder).finished, folder.name
        resumed = train(RECIPE, folder)
        assert resumed.finished, folder.name
        assert files(resumed) == files(whole), folder.name
        same(resumed.test, whole.test)
        same(resumed.val, whole.val)
        for name in ("best.safetensors", "last.safetensors"):
            a, b = (checkpoint.load(run.folder / name)[0] for run in (resumed, whole))
            assert all(torch.equal(a[key], b[key]) for key in a.keys() | b.keys()), (folder.name, name)


@pytest.mark.parametrize("gone", [["log.parquet", "run.json", "test.npz", "val.npz"], ["run.json"], ["test.npz"]])
def test_files_that_are_gone_are_made_again_from_the_state(tmp_path, gone):
    recipe = replace(TINY, epochs=1)
    first = train(recipe, tmp_path / "run")
    log, test, state = first.log, first.test, first.last.stat().st_mtime_ns
    for name in gone:
        (first.folder / name).unlink()
    assert not first.finished
    again = train(recipe, tmp_path / "run")
    assert again.finished
    assert again.log.equals(log)
    same(again.test, test)
    assert first.last.stat().st_mtime_ns == state


def test_a_folder_with_brackets_in_its_name(tmp_path):
    run = train(replace(TINY, epochs=1), tmp_path / "exp[1]")
    assert run.log["epoch"].to_list() == [1]


def test_a_second_training_of_the_same_folder_is_refused(tmp_path):
    with lock_folder(tmp_path / "run"):
        with pytest.raises(InputError, match=r"run: expected a folder in which no other process is at work"):
            train(TINY, tmp_path / "run")
        assert [file.name for file in (tmp_path / "run").iterdir()] == [".lock"]
    assert np.isfinite(train(replace(TINY, epochs=1), tmp_path / "run").test.logits).all()
    with pytest.raises(InputError, match="nowhere"):
        train(change(TINY, **{"data.name": "nowhere"}), tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_folder_of_a_run_is_not_waited_for(tmp_path):
    run = Run(folder=tmp_path, recipe=Recipe(), shape=Shape(2, 1, 8), classes=("a", "b"), mean=(0.5,), std=(0.5,))
    os.mkfifo(tmp_path / "run.json")
    assert run.finished is False
