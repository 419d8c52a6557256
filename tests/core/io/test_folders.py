"""Folders of results: the tasks of one model are pooled, each as a group."""

import json

import pytest

from calibrant import InputError, Predictions


def samples(file, questions, **more):
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for i, (scores, target) in enumerate(questions):
        responses = [[score, False] for score in scores]
        lines.append(json.dumps({"doc_id": i, "doc": {}, "target": target, "filtered_resps": responses, **more}))
    file.write_text("\n".join(lines) + "\n")


TWO = [([-1.0, -2.0], 0), ([-1.0, -3.0], 1)]
THREE = [([-1.0, -2.0, -0.5], 2), ([-1.0, -2.0, -3.0], 0), ([-1.0, -2.0, -3.0], 1)]


def test_tasks_of_a_folder_are_pooled(tmp_path):
    samples(tmp_path / "model" / "samples_arc_easy_2024-05-01T10-00-00.123456.jsonl", THREE)
    samples(tmp_path / "model" / "samples_boolq_2024-05-01T10-00-00.123456.jsonl", TWO)
    p = Predictions.load(tmp_path)
    assert (p.n, p.k, p.task) == (5, 3, "choice")
    assert p.groups.tolist() == ["arc_easy"] * 3 + ["boolq"] * 2
    assert p.ids.tolist()[-1] == "boolq/1"
    assert p.correct.tolist() == [True, True, False, True, False]
    assert p.notes[0] == "2 tasks are pooled: arc_easy (3), boolq (2)."


def test_tasks_that_generate_text_are_left_out_and_named(tmp_path):
    samples(tmp_path / "samples_boolq.jsonl", TWO)
    line = {"doc_id": 0, "doc": {}, "target": "7", "filtered_resps": ["the answer is 7"]}
    (tmp_path / "samples_gsm8k.jsonl").write_text(json.dumps(line) + "\n")
    p = Predictions.load(tmp_path)
    assert p.n == 2
    assert "Left out, for they have no scores of options: gsm8k." in p.notes


def test_folders_that_mix_models_or_runs_are_refused(tmp_path):
    samples(tmp_path / "a" / "samples_boolq_2024-05-01T10-00-00.1.jsonl", TWO)
    samples(tmp_path / "b" / "samples_arc.jsonl", THREE)
    with pytest.raises(InputError, match="expected logs of one model, got logs in a, b"):
        Predictions.load(tmp_path)
    samples(tmp_path / "a" / "samples_boolq_2024-06-01T10-00-00.1.jsonl", TWO)
    with pytest.raises(InputError, match="expected one log of each task, got two of boolq"):
        Predictions.load(tmp_path / "a")


def test_other_folders_are_refused(tmp_path):
    (tmp_path / "p.csv").write_text("x\n")
    with pytest.raises(InputError, match=r"got a folder with p\.csv"):
        Predictions.load(tmp_path)


def test_groups_of_inspect_logs_are_their_tasks(tmp_path):
    times = {"arc_challenge": "2026-11-18T06-56-38-00-00", "boolq": "2026-11-18T06-56-41+00-00"}
    for task, time in times.items():
        samples = [{"id": i, "scores": {"m": {"value": "C", "metadata": {"confidence": 0.9}}}} for i in range(2)]
        log = {"version": 2, "status": "success", "eval": {"task": task}, "samples": samples}
        (tmp_path / f"{time}_{task}_Gs2jjhoWwMNiRSQ2GS8Jou.json").write_text(json.dumps(log))
    assert set(Predictions.load(tmp_path).groups) == {"arc_challenge", "boolq"}
