"""The page of published networks says what the committed rows say."""

import importlib.util
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("vl_convert")

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("published", ROOT / "tools" / "published.py")
published = importlib.util.module_from_spec(spec)
spec.loader.exec_module(published)


def test_the_page_is_that_of_the_committed_rows():
    text = published.PAGE.read_text()
    inside = text.partition(published.MARKERS[0])[2].partition(published.MARKERS[1])[0]
    assert inside.strip() == published.summary(published.FOLDER).strip()


def test_halves_judge_every_image_about_half_of_the_time():
    """Errors of the whole test part are the published ones; halves scatter around them."""
    rows = pl.read_parquet(published.FOLDER / "rows.parquet")
    own = rows.filter((pl.col("entry") == "Uncalibrated") & (pl.col("measure") == "error") & (pl.col("set") == "test"))
    means = dict(own.group_by("model").agg(pl.col("value").mean()).rows())
    for model, printed in {"resnet20": 0.0827, "resnet32": 0.0737, "resnet44": 0.0690}.items():
        assert means[model] == pytest.approx(printed, abs=0.002)
        assert set(own.filter(pl.col("model") == model)["n"]) == {5000}
