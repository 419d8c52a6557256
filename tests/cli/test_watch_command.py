"""`calibrant watch`, `check --against`, `compare --unpaired` and states of sums: exit codes, sentences, files."""

import gzip
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from commands import run

import calibrant as cal
from calibrant.core.lock import lock_file


def frame(n, *, off=0.0, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.beta(5, 1.5, n)
    correct = (rng.random(n) < s - off).astype(int)
    return pl.DataFrame({"confidence": s, "correct": correct, "segment": [("a", "b")[i % 2] for i in range(n)]})


@pytest.fixture
def bad(tmp_path):
    frame(4000, off=0.1).write_ndjson(tmp_path / "stream.jsonl")
    return tmp_path / "stream.jsonl"


def test_an_alarm_is_a_sentence_and_exit_code_1(bad):
    out = run("watch", bad, "--tolerance", 0.02, "--override", "batch_rows=700", code=1).stdout
    rows = frame(4000, off=0.1)
    exact = cal.watch(cal.Predictions.from_confidence(rows["confidence"], rows["correct"]), tolerance=0.02).alarm
    assert f"Alarm at row {exact.row:,}: confidence" in " ".join(out.split())
    document = json.loads(run("watch", bad, "--group-column", "segment", "--json", code=1).stdout)
    assert document["alarm"] is True
    assert {track["segment"] for track in document["segments"]} == {None, "a", "b"}
    lines = run("watch", bad, "--group-column", "segment", code=1, COLUMNS="400").stdout.splitlines()
    assert len(lines) == len(document["alarms"]) == 3
    assert all(line.startswith("Alarm ") for line in lines)
    named = json.loads(run("watch", bad, "--group-column", "segment", "--segments", "b", "--json", code=1).stdout)
    assert [track["segment"] for track in named["segments"]] == [None, "b"]


def test_a_state_goes_on_where_it_was(tmp_path):
    good, state = frame(3000, seed=1), tmp_path / "watch.json"
    file = tmp_path / "stream.csv"
    options = ("--group-column", "segment", "--state", state)
    good[:1000].write_csv(file)
    assert "No alarm after 1,000 rows and 2 segments" in " ".join(run("watch", file, *options).stdout.split())
    good.write_csv(file)  # it has grown
    for _ in range(2):  # and is looked at again without new rows
        assert "No alarm after 3,000 rows" in " ".join(run("watch", file, *options).stdout.split())
    whole = cal.watch(
        cal.Predictions.from_confidence(good["confidence"], good["correct"], groups=good["segment"]), segments=True
    )
    saved = cal.Watch.load(state)
    for name, track in whole.segments.items():
        assert saved.segments[name].log_wealth == pytest.approx(track.log_wealth, abs=1e-9)
    frame(4000, off=0.1).write_csv(tmp_path / "other.csv")
    run("watch", tmp_path / "other.csv", *options, code=1)
    assert cal.Watch.load(state).n == 7000
    good[:10].write_csv(file)
    assert "a file that only grows" in run("watch", file, *options, code=2).stderr
    assert "tolerance 0.02, as it began with" in run("watch", file, *options, "--tolerance", 0.1, code=2).stderr
    assert "segments True" in run("watch", file, "--state", state, code=2).stderr


def test_a_file_in_place_of_another_is_refused(tmp_path):
    file, state = tmp_path / "day.jsonl", tmp_path / "d.json"
    frame(1000, seed=1).write_ndjson(file)
    run("watch", file, "--state", state)
    run("watch", file, "--state", state, "--override", "batch_rows=130")  # however it is cut into batches
    for n in (1000, 2000):
        frame(n, seed=2).write_ndjson(file)
        err = " ".join(run("watch", file, "--state", state, code=2).stderr.split())
        assert "other rows in place of the 1,000 that were read before" in err
        assert "another --state" in err
    assert cal.Watch.load(state).n == 1000
    run("watch", file, "--state", tmp_path / "e.json")


def test_bad_input_of_watch(bad, tmp_path):
    for options, says in [
        (("--alpha", 2), "strictly between"),
        (("--mode", "chnge"), "did you mean 'change'"),
        (("--segments", "a"), "--group-column as well"),
        (("--group-column", "segmnt"), "segmnt"),
    ]:
        assert says in run("watch", bad, *options, code=2).stderr
    (tmp_path / "broken.jsonl").write_text('{"confidence": 0.5, "correct": 1}\n{oops\n')
    assert "line 2" in run("watch", tmp_path / "broken.jsonl", code=2).stderr
    (tmp_path / "state.json").write_text("{}")
    assert "JSON written by Watch.save" in run("watch", bad, "--state", tmp_path / "state.json", code=2).stderr


def test_alpha_in_percent_is_named_as_a_share(bad):
    assert "write 0.05 for 5 %" in " ".join(run("watch", bad, "--alpha", 5, code=2).stderr.split())


def test_a_file_without_any_score_is_an_error(tmp_path):
    none = pl.lit(None, dtype=pl.Float64).alias("confidence")
    frame(400).with_columns(none).write_ndjson(tmp_path / "none.jsonl")
    err = " ".join(run("watch", tmp_path / "none.jsonl", "--missing", "drop", code=2).stderr.split())
    assert "a score in at least one row, got none in 400 rows" in err


def test_a_named_segment_without_rows_is_noted(bad):
    out = run("watch", bad, "--group-column", "segment", "--segments", "a,nrth", code=1, COLUMNS="400").stdout
    assert "No rows of segment nrth: the rows have a, b." in out
    document = json.loads(
        run("watch", bad, "--group-column", "segment", "--segments", "a,nrth", "--json", code=1).stdout
    )
    assert document["notes"] == ["No rows of segment nrth: the rows have a, b."]


def test_two_processes_do_not_use_one_state(tmp_path):
    file, state = tmp_path / "day.csv", tmp_path / "watch.json"
    frame(500).write_csv(file)
    for command in (("watch", file), ("measure", file, "--stream")):
        with lock_file(state):
            err = " ".join(run(*command, "--state", state, code=2).stderr.split())
        assert "a file in which no other process is at work" in err
        assert not state.exists()
    run("watch", file, "--state", state)
    assert [one.name for one in tmp_path.iterdir() if "lock" in one.name] == []


def test_a_renamed_file_is_recognised(tmp_path):
    rows, state = frame(3000, seed=1), tmp_path / "watch.json"
    file, rotated = tmp_path / "day.jsonl", tmp_path / "day-1.jsonl"
    rows[:1000].write_ndjson(file)
    run("watch", file, "--state", state)
    rows[:1500].write_ndjson(rotated)  # it was renamed after 500 more rows
    rows[1500:].write_ndjson(file)
    refused = " ".join(run("watch", file, "--state", state, code=2).stderr.split())
    assert "if the file was rotated, read the old rows first, by their new name" in refused
    out = " ".join(run("watch", rotated, "--state", state).stdout.split())
    assert "No alarm after 1,500 rows" in out
    assert "day-1.jsonl begins with the 1,000 rows that were read as day.jsonl" in out
    assert "No alarm after 3,000 rows" in run("watch", file, "--state", state).stdout
    p = cal.Predictions.from_confidence(rows["confidence"], rows["correct"])
    assert cal.Watch.load(state).evidence == pytest.approx(cal.watch(p).evidence, rel=1e-9)


def test_the_state_is_saved_on_the_way(tmp_path):
    file, state = tmp_path / "day.jsonl", tmp_path / "watch.json"
    lines = frame(1000).write_ndjson().splitlines()
    file.write_text("\n".join([*lines[:700], "{oops", *lines[700:]]) + "\n")
    run("watch", file, "--state", state, "--override", "save_every=200", code=2)
    assert cal.Watch.load(state).n == 600
    file.write_text("\n".join(lines) + "\n")
    assert "No alarm after 1,000 rows" in run("watch", file, "--state", state, "--override", "save_every=200").stdout
    assert "--state as well" in run("watch", file, "--override", "save_every=200", code=2).stderr


def test_prometheus_text_of_a_watch(bad):
    out = run("watch", bad, "--group-column", "segment", "--format", "prometheus", code=1).stdout
    lines = out.splitlines()
    assert "calibrant_watch_rows 4000" in lines
    assert 'calibrant_watch_rows{segment="a"} 2000' in lines
    assert 'calibrant_watch_alarm{segment="b"} 1' in lines
    assert "calibrant_watch_limit 40.0" in lines
    assert sum(line.startswith("# TYPE") for line in lines) == 6
    assert "did you mean 'prometheus'" in run("watch", bad, "--format", "promethus", code=2).stderr


def test_prometheus_text_of_measures(bad, tmp_path):
    stream = ("measure", bad, "--stream", "-m", "ece", "--format", "prometheus")
    lines = run(*stream).stdout.splitlines()
    assert "calibrant_rows 4000" in lines
    assert any(line.startswith("calibrant_ece_low 0.") for line in lines)
    lines = run(*stream, "--group-column", "segment", "--state", tmp_path / "s.json").stdout.splitlines()
    assert 'calibrant_rows{segment="a"} 2000' in lines
    assert run("measure", tmp_path / "s.json", "--format", "prometheus").stdout.splitlines() == lines
    assert "--stream" in run("measure", bad, "--format", "prometheus", code=2).stderr


def test_a_segment_of_one_row_has_no_interval(tmp_path):
    """Ends equal to its value raised an alert for every new segment."""
    lines = [{"confidence": 0.5 + i / 200, "correct": i % 2, "segment": "old"} for i in range(60)]
    lines.append({"confidence": 0.99, "correct": 0, "segment": "new"})
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    stream = ("measure", tmp_path / "p.jsonl", "--stream", "-m", "ece", "--group-column", "segment")
    out = run(*stream, "--format", "prometheus").stdout
    assert 'calibrant_ece{segment="new"} 0.99' in out
    assert 'calibrant_ece_low{segment="old"}' in out
    assert 'calibrant_ece_low{segment="new"}' not in out
    assert 'calibrant_ece_high{segment="new"}' not in out


def test_sums_continue_from_their_state(tmp_path):
    rows, state = frame(3000, seed=1), tmp_path / "sums.json"
    file, other = tmp_path / "day.csv", tmp_path / "other.csv"
    measure = ("measure", file, "--stream", "--state", state)
    rows[:1000].write_csv(file)
    run(*measure, "-m", "ece")
    rows[:2000].write_csv(file)
    for _ in range(2):  # the second time without new rows
        assert "2,000 rows, read in one batch." in run(*measure).stdout
    rows[2000:].write_csv(other)
    out = run("measure", other, "--stream", "--state", state, "--json").stdout
    whole = cal.measure(cal.Predictions.from_confidence(rows["confidence"], rows["correct"]), "ece", resamples=0)
    [row] = json.loads(out)
    assert (row["n"], row["value"]) == (3000, pytest.approx(whole.value))
    assert "--measure ece, as it began with" in run(*measure, "-m", "nll", code=2).stderr
    assert "no --group-column, as it began with" in run(*measure, "--group-column", "segment", code=2).stderr
    rows[5:100].write_csv(file)
    assert "a file that only grows" in run(*measure, code=2).stderr
    assert cal.Accumulator.load(state).n == 3000


def test_rows_without_a_label_are_dropped_or_wait(tmp_path):
    rows, file, state = frame(1000, seed=1), tmp_path / "day.csv", tmp_path / "watch.json"
    late = pl.when(pl.int_range(pl.len()).is_in([600, 700, 800])).then(None).otherwise(pl.col("correct"))
    rows.with_columns(late.alias("correct")).write_csv(file)
    message = run("watch", file, code=2).stderr
    assert "column correct: expected a label in every row, got none in row 601" in message
    assert "--missing-label drop" in message
    out = " ".join(run("watch", file, "--missing-label", "drop").stdout.split())
    assert "No alarm after 997 rows" in out
    assert "3 of 1,000 rows have no label and were left out." in out
    wait = ("watch", file, "--missing-label", "wait", "--state", state)
    out = " ".join(run(*wait, "--override", "batch_rows=130").stdout.split())
    assert "No alarm after 600 rows" in out
    assert "Row 601 has no label yet: it and the rows after it wait for the next time." in out
    rows.write_csv(file)  # now they have come
    assert "No alarm after 1,000 rows" in run(*wait).stdout
    p = cal.Predictions.from_confidence(rows["confidence"], rows["correct"])
    assert cal.Watch.load(state).evidence == pytest.approx(cal.watch(p).evidence, rel=1e-9)
    assert "did you mean 'wait'" in run("watch", file, "--missing-label", "wat", code=2).stderr


def test_rows_without_a_segment_have_one_of_their_own(tmp_path):
    file = tmp_path / "day.jsonl"
    none = pl.when(pl.int_range(pl.len()) % 4 == 0).then(None).otherwise(pl.col("segment")).alias("segment")
    frame(800).with_columns(none).write_ndjson(file)
    document = json.loads(run("watch", file, "--group-column", "segment", "--json").stdout)
    rows = {one["segment"]: one["n"] for one in document["segments"]}
    assert rows == {None: 800, "(none)": 200, "a": 200, "b": 400}
    assert (
        'calibrant_rows{segment="(none)"} 200'
        in run("measure", file, "--stream", "--group-column", "segment", "-m", "ece", "--format", "prometheus").stdout
    )


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_an_unfinished_last_line_is_left_for_the_next_time(suffix, tmp_path):
    rows, file, state = frame(300), tmp_path / f"day.{suffix}", tmp_path / "watch.json"
    text = rows.write_ndjson() if suffix == "jsonl" else rows.write_csv()
    file.write_text(text[:-6])
    out = " ".join(run("watch", file, "--state", state).stdout.split())
    assert "No alarm after 299 rows" in out
    assert "The last line is not finished: it is left for the next time." in out
    file.write_text(text)
    assert "No alarm after 300 rows" in run("watch", file, "--state", state).stdout
    if suffix == "jsonl":  # a whole object needs no line break
        file.write_text(text.rstrip("\n"))
        assert "No alarm after 300 rows" in run("watch", file).stdout


def test_compressed_and_rotated_files_are_watched(tmp_path):
    rows, state = frame(300), tmp_path / "watch.json"
    text = rows.write_ndjson()
    (tmp_path / "day.jsonl").write_text(text)
    (tmp_path / "day.jsonl.1").write_text(text)
    (tmp_path / "day.jsonl.2.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("day.jsonl", "day.jsonl.1", "day.jsonl.2.gz"):  # the same rows under other names
        assert "No alarm after 300 rows" in run("watch", tmp_path / name, "--state", state).stdout


def test_a_wrong_segment_column_lists_the_columns_of_the_file(tmp_path):
    for name, write in (("day.csv", pl.DataFrame.write_csv), ("day.jsonl", pl.DataFrame.write_ndjson)):
        write(frame(50), tmp_path / name)
        err = " ".join(run("watch", tmp_path / name, "--group-column", "region", code=2).stderr.split())
        assert "confidence, correct, segment" in err


def test_npz_files_are_watched_whole(tmp_path):
    rows = frame(500)
    cal.Predictions.from_confidence(rows["confidence"], rows["correct"]).save(tmp_path / "p.npz")
    assert "No alarm after 500 rows" in run("watch", tmp_path / "p.npz").stdout


def test_rows_without_a_score_are_told_by_watch_and_of_the_reference(tmp_path):
    files = {}
    for name, gaps in (("today", 3), ("before", 5)):
        files[name] = tmp_path / f"{name}.csv"
        few = pl.when(pl.int_range(pl.len()) < gaps).then(None).otherwise(pl.col("confidence")).alias("confidence")
        frame(400).with_columns(few).write_csv(files[name])
    drop = ("--missing", "drop")
    out = run("watch", files["today"], *drop, "--override", "batch_rows=130").stdout
    assert "3 of 400 rows (0.75 %) have no confidence and were left out." in " ".join(out.split())
    assert json.loads(run("watch", files["today"], *drop, "--json").stdout)["missing"]["rows"] == 3
    gate = ("check", files["today"], "--against", files["before"], "--max-worse", "ece=0.5", *drop)
    out = " ".join(run(*gate).stdout.split())
    assert "3 of 400 rows (0.75 %) have no" in out
    assert "In the reference: 5 of 400 rows (1.2 %) have no" in out
    document = json.loads(run(*gate, "--json").stdout)
    assert (document["missing"]["rows"], document["reference"]["missing"]["rows"]) == (3, 5)


def test_check_against_a_reference(tmp_path):
    names = {}
    for name, off in (("before", 0.0), ("today", 0.15)):
        names[name] = tmp_path / f"{name}.parquet"
        frame(3000, off=off, seed=len(name)).write_parquet(names[name])
    gate = ("check", names["today"], "--against", names["before"], "--max-worse")
    document = json.loads(run(*gate, "ece=0.01", "--max", "ece=0.5", "--json", code=1).stdout)
    assert (document["passed"], [row["state"] for row in document["checks"]]) == (False, ["holds", "violated"])
    assert "worse by <= 0.01" in run(*gate, "ece=0.01", code=1).stdout
    assert "pass" in run(*gate, "ece=0.9").stdout
    assert "together" in run("check", names["today"], "--against", names["before"], code=2).stderr
    assert "together" in run("check", names["today"], "--max-worse", "ece=0.1", code=2).stderr
    rows = json.loads(run("compare", names["before"], names["today"], "--unpaired", "-m", "ece", "--json").stdout)
    assert (rows[0]["paired"], rows[0]["better"]) == (False, "a")


def sums_of(file, rows, *, by=None):
    p = cal.Predictions.from_confidence(rows["confidence"], rows["correct"], groups=rows["segment"])
    sums = cal.Accumulator() if by is None else cal.Accumulators(by=by)
    sums.update(p)
    sums.save(file)
    return file


def test_limits_of_sums(tmp_path):
    good = sums_of(tmp_path / "good.json", frame(3000))
    bad = sums_of(tmp_path / "bad.json", frame(3000, off=0.15, seed=4))
    assert "pass" in run("check", good, "--max", "ece=0.1").stdout
    document = json.loads(run("check", bad, "--max", "ece=0.05", "--json", code=1).stdout)
    assert (document["passed"], document["checks"][0]["state"]) == (False, "violated")
    assert "worse by <= 0.01" in run("check", bad, "--against", good, "--max-worse", "ece=0.01", code=1).stdout
    assert "pass" in run("check", good, "--against", bad, "--max-worse", "ece=0.01").stdout
    each = sums_of(tmp_path / "each.json", frame(3000, off=0.15), by="segment")
    out = run("check", each, "--max", "ece=0.05", code=1).stdout
    assert [line for line in out.splitlines() if line in ("a", "b")] == ["a", "b"]
    assert out.count("violated") == 2
    rows = json.loads(run("check", each, "--against", each, "--max-worse", "ece=0.2", "--json").stdout)["checks"]
    assert [row["key"] for row in rows] == ["a", "b"]
    other = sums_of(tmp_path / "o.json", frame(300).with_columns(segment=pl.lit("c")), by="segment")
    assert "the key a there too" in run("check", each, "--against", other, "--max-worse", "ece=0.2", code=2).stderr
    assert "one of accuracy" in run("check", good, "--max", "smooth=0.1", code=2).stderr


def test_figures_of_states(tmp_path):
    good = sums_of(tmp_path / "good.json", frame(3000))
    each = sums_of(tmp_path / "each.json", frame(3000), by="segment")
    assert "ECE" in run("plot", "reliability", good).stdout
    run("plot", "reliability", each, "--out", tmp_path / "f.svg")
    rows = frame(500)
    p = cal.Predictions.from_confidence(rows["confidence"], rows["correct"], groups=rows["segment"])
    watch = cal.watch(p, segments=True)
    watch.save(tmp_path / "w.json")
    out = run("plot", "watch_evidence", tmp_path / "w.json").stdout
    assert "Evidence after 500 rows" in " ".join(out.split())
    plot = cal.plot("watch_evidence", watch)
    assert {row["model"] for row in plot.rows} == {"all rows", "a", "b"}
    with pytest.raises(cal.InputError, match="update the watch first"):
        cal.plot("watch_evidence", cal.Watch())


def test_sums_are_kept_and_measured_again(tmp_path):
    frame(2000).write_parquet(tmp_path / "big.parquet")
    first = run("measure", tmp_path / "big.parquet", "--stream", "--state", tmp_path / "s.json", "--json").stdout
    assert run("measure", tmp_path / "s.json", "--json").stdout == first
    assert "2,000 rows, from sums." in run("measure", tmp_path / "s.json").stdout
    each = cal.Accumulators(by="segment", measures=["ece", "accuracy"])
    rows = frame(2000)
    each.update(cal.Predictions.from_confidence(rows["confidence"], rows["correct"], groups=rows["segment"]))
    each.save(tmp_path / "each.json")
    out = run("measure", tmp_path / "each.json").stdout
    assert out.splitlines()[0].split() == ["segment", "rows", "ece", "accuracy"]
    assert len(json.loads(run("measure", tmp_path / "each.json", "--json").stdout)) == 4
    cal.Accumulators(by=("day", "segment")).save(tmp_path / "none.json")
    assert run("measure", tmp_path / "none.json").stdout.split() == ["day", "segment", "rows"]
    many = cal.Accumulators(by="segment")
    many.update(cal.Predictions.from_confidence(rows["confidence"], rows["correct"], groups=rows["segment"]))
    many.save(tmp_path / "many.json")
    lines = run("measure", tmp_path / "many.json").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).split().count("segment") > 1  # several tables, each with whole names
    assert "auroc_correct" in " ".join(lines).split()
    assert "no --measure" in run("measure", tmp_path / "s.json", "-m", "ece", code=2).stderr
    assert "--stream as well" in run("measure", tmp_path / "big.parquet", "--state", "x.json", code=2).stderr
    (tmp_path / "no.json").write_text("[]")
    assert "something else" in run("measure", tmp_path / "no.json", code=2).stderr


def test_an_alarm_is_shown_while_standard_input_is_open():
    command = [sys.executable, "-m", "calibrant", "watch", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("confidence,correct\n" + "0.95,0\n" * 50)
        process.stdin.flush()
        assert process.stdout.readline().startswith("Alarm at row ")  # standard input is not closed yet
        rest, _ = process.communicate("0.95,0\n")
        assert "Alarm" not in rest  # it is not repeated
        assert process.returncode == 1
