"""Samples of lm-evaluation-harness, in the formats that its versions write."""

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.reporting import contents_by_task

OPTIONS = [["dry palms", "wet palms", "oil", "lotion"], ["a book", "a stone"], ["up", "down", "left"]]
SCORES = [[-13.5, -14.25, -6.0, -9.5], [-3.25, -2.5], [-4.0, -1.5, -8.0]]
RIGHT = [0, 1, 1]


def old_sample(i):
    """As up to 0.4.2: numbers, and requests as lists."""
    question = f"Question: {i}?\nAnswer:"
    return {
        "doc_id": i,
        "doc": {"query": question, "choices": OPTIONS[i], "gold": RIGHT[i], "subject": ["physics", "maths"][i % 2]},
        "target": RIGHT[i],
        "arguments": [[question, f" {option}"] for option in OPTIONS[i]],
        "resps": [[[score, False]] for score in SCORES[i]],
        "filtered_resps": [[score, False] for score in SCORES[i]],
        "acc": float(np.argmax(SCORES[i]) == RIGHT[i]),
        "acc_norm": float(np.argmax(np.array(SCORES[i]) / [len(o) for o in OPTIONS[i]]) == RIGHT[i]),
    }


def new_sample(i):
    """As since 0.4.3: all of it text, requests as objects, hashes."""
    sample = old_sample(i)
    requests = {f"gen_args_{j}": {"arg_0": a, "arg_1": b} for j, (a, b) in enumerate(sample["arguments"])}
    as_text = [[str(score), "False"] for score in SCORES[i]]
    changed = {"arguments": requests, "resps": [[one] for one in as_text], "filtered_resps": as_text}
    hashes = {"doc_hash": "0" * 64, "prompt_hash": "1" * 64, "target_hash": "2" * 64}
    return sample | changed | hashes | {"target": str(RIGHT[i]), "filter": "none", "metrics": ["acc", "acc_norm"]}


def write(file, samples, *, indented=False):
    lines = json.dumps(samples, indent=2) if indented else "".join(json.dumps(s) + "\n" for s in samples)
    file.write_text(lines)
    return file


def samples(make):
    return [make(i) for i in range(3)]


WRITTEN = {
    "old, a list": (old_sample, True, ()),
    "old, lines": (old_sample, False, ()),
    "new": (new_sample, False, ()),
    "without filtered": (new_sample, False, ("filtered_resps",)),
    "without raw": (new_sample, False, ("resps", "arguments", "doc")),
}


@pytest.mark.parametrize("version", WRITTEN)
def test_all_versions_say_the_same(tmp_path, version):
    make, indented, without = WRITTEN[version]
    logged = [{k: v for k, v in s.items() if k not in without} for s in samples(make)]
    p = Predictions.load(write(tmp_path / "samples_arc_2024-01-01.jsonl", logged, indented=indented))
    assert p.task == "choice"
    np.testing.assert_array_equal(p.row_data.option_mask.sum(axis=1), [4, 2, 3])
    for i, scores in enumerate(SCORES):
        odds = np.exp(scores)
        np.testing.assert_allclose(p.probs[i, : len(scores)], odds / odds.sum(), rtol=1e-12)
    np.testing.assert_array_equal(p.labels, RIGHT)
    assert p.ids.tolist() == ["0", "1", "2"]
    assert cal.measure(p, "accuracy", resamples=0).value == pytest.approx(np.mean([s["acc"] for s in logged]))
    assert "as acc compares them" in p.notes[0]


@pytest.mark.parametrize("make", [old_sample, new_sample])
def test_by_the_length_of_options(tmp_path, make):
    logged = samples(make)
    p = Predictions.load(write(tmp_path / "s.jsonl", logged), per_character=True)
    np.testing.assert_allclose(p.logits[0, :4], np.array(SCORES[0]) / [9, 9, 3, 6])
    assert cal.measure(p, "accuracy", resamples=0).value == pytest.approx(np.mean([s["acc_norm"] for s in logged]))
    assert "acc_norm" in p.notes[0]
    divided = "divided by their number of characters, as in acc_norm"
    assert divided in cal.measure(p, "accuracy", resamples=0).definition
    assert divided in cal.check(p, "accuracy", limit=1, resamples=10).definition
    assert any(divided in note for note in contents_by_task.notes(p))
    p.save(tmp_path / "s.npz")
    assert Predictions.load(tmp_path / "s.npz", allow_few_rows=True).notes == p.notes


def test_groups_are_fields_of_the_document(tmp_path):
    p = Predictions.load(write(tmp_path / "s.jsonl", samples(new_sample)), group="subject")
    assert p.groups.tolist() == ["physics", "maths", "physics"]
    with pytest.raises(InputError, match="none in 3 of 3 samples"):
        Predictions.load(tmp_path / "s.jsonl", group="topic")


def test_the_right_option_by_text_or_by_the_result(tmp_path):
    by_text = [s | {"target": OPTIONS[i][RIGHT[i]]} for i, s in enumerate(samples(new_sample))]
    assert Predictions.load(write(tmp_path / "s.jsonl", by_text)).labels.tolist() == RIGHT
    two = [new_sample(1) | {"target": "the end", "acc": acc} for acc in (1.0, 0.0)]  # as winogrande has it
    assert Predictions.load(write(tmp_path / "t.jsonl", two)).labels.tolist() == [1, 0]
    none = [new_sample(0) | {"target": "nobody"}]
    with pytest.raises(InputError, match="line 1: expected which of 4 options is right, got target 'nobody'"):
        Predictions.load(write(tmp_path / "u.jsonl", none))


def numbers(right, *, acc, target):
    """Options that are numbers themselves: "2" is the third option, and the text of the first."""
    options = ["2", "3", "0", "1"]
    scores = [-1.0 if i == 0 else -5.0 - i for i in range(4)]
    asked = {f"gen_args_{j}": {"arg_0": "How many?", "arg_1": f" {o}"} for j, o in enumerate(options)}
    responses = [[str(score), "False"] for score in scores]
    return {"doc_id": right, "arguments": asked, "filtered_resps": responses, "target": target} | acc


def test_options_that_are_numbers(tmp_path):
    logged = [numbers(0, acc={"acc": 1.0}, target="2"), numbers(1, acc={"acc": 0.0}, target="2")]
    logged += [numbers(2, acc={}, target=2)]  # a number is no text
    assert Predictions.load(write(tmp_path / "s.jsonl", logged)).labels.tolist() == [0, 2, 2]
    for bad in (numbers(0, acc={}, target="2"), numbers(0, acc={"acc": 0.0}, target="3")):
        with pytest.raises(InputError, match=r"line 2: .*the number of one option and the text of another"):
            Predictions.load(write(tmp_path / "t.jsonl", [logged[0], bad]))


def test_requests_without_a_question_are_left_out(tmp_path):
    sample = old_sample(0)
    sample["arguments"] += [["", option] for option in OPTIONS[0]]  # acc_mutual_info
    sample["resps"] += [[[-1.0, False]]] * 4
    sample["filtered_resps"] += [[-1.0, False]] * 4
    p = Predictions.load(write(tmp_path / "s.jsonl", [sample, old_sample(1), old_sample(2), old_sample(0)]))
    assert p.k == 4
    np.testing.assert_array_equal(p.logits[0], p.logits[3])


REFUSED = {
    "generated text": ({"resps": [["The answer is 4"]], "filtered_resps": ["4"]}, "two options or more|generate text"),
    "text of options": ({"filtered_resps": [["yes", "False"], ["no", "False"]]}, "line 2: .*generate text"),
    "one option": ({"filtered_resps": [["-1.5", "False"]]}, "not multiple choice"),
    "not a number": ({"filtered_resps": [["nan", "False"], ["-1", "False"]]}, "'nan'"),
    "no target": ({"target": None, "acc": 0.0}, "which of 3 options"),
    "a target out of range": ({"target": "7", "acc": 0.0}, "which of 3 options"),
    "no answer": ({"resps": [], "filtered_resps": []}, "none in 1 of 3 rows"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_other_samples_are_refused_in_one_sentence(tmp_path, what):
    changed, says = REFUSED[what]
    logged = [new_sample(0), new_sample(2) | changed, new_sample(1)]
    with pytest.raises(InputError, match=says):
        Predictions.load(write(tmp_path / "s.jsonl", logged))


def test_tasks_with_several_right_options_are_refused(tmp_path):
    """truthfulqa_mc2: acc is the probability of all right options, not whether the likeliest one is right."""
    file = tmp_path / "samples_truthfulqa_mc2.jsonl"
    line = {"doc_id": 0, "doc": {}, "target": 0, "filtered_resps": [[-1.0, False], [-2.0, False], [-3.0, False]]}
    for acc in (0.46, 0.0):
        file.write_text(json.dumps(line | {"acc": 1.0}) + "\n" + json.dumps(line | {"acc": acc}) + "\n")
        with pytest.raises(InputError, match=r"line 2: expected acc 1, with option 0 .*several right options"):
            Predictions.load(file)
    file.write_text(json.dumps(line | {"acc": 4.3213155125571937e-13}) + "\n")
    with pytest.raises(InputError, match=r"got acc 4\.32e-13\."):
        Predictions.load(file)
    file.write_text((json.dumps(line | {"acc": 1.0}) + "\n") * 2)
    assert Predictions.load(file).correct.all()


def truthful_sample(labels, *, single=False):
    """As the data set has it: both kinds of targets in the doc, and one of them asked for; without acc."""
    choices = ["Paris", "The city of Paris", "Rome", "London"]
    mc1 = {"choices": ["Paris", "Rome", "London"], "labels": [1, 0, 0]}
    asked = mc1["choices"] if single else choices
    return {
        "doc_id": 0,
        "doc": {"question": "?", "mc1_targets": mc1, "mc2_targets": {"choices": choices, "labels": labels}},
        "target": 0,
        "arguments": [["Q: ?", f" {choice}"] for choice in asked],
        "filtered_resps": [[-float(i + 1), False] for i in range(len(asked))],
    }


def test_several_right_options_are_seen_in_the_document_where_acc_was_not_logged(tmp_path):
    file = write(tmp_path / "samples_truthfulqa_mc2.jsonl", [truthful_sample([1, 1, 0, 0])] * 2)
    with pytest.raises(InputError, match=r"line 1: expected one right option, got 2 of 4 in its doc\..*truthfulqa_mc1"):
        Predictions.load(file)
    one = write(tmp_path / "samples_truthfulqa_mc1.jsonl", [truthful_sample([1, 1, 0, 0], single=True)] * 2)
    assert Predictions.load(one).correct.all()


@pytest.mark.parametrize("target", [[1], "[1]", " [ 1 ]"])
def test_a_target_in_a_list_is_its_only_entry(tmp_path, target):
    line = {"doc_id": 0, "doc": {}, "target": target, "filtered_resps": [[-1.0, False], [-2.0, False], [-3.0, False]]}
    p = Predictions.load(write(tmp_path / "samples.jsonl", [line] * 2))
    assert p.labels.tolist() == [1, 1]


@pytest.mark.parametrize("target", [[0, 1], "[0, 1]", []])
def test_a_list_of_several_targets_is_refused(tmp_path, target):
    line = {"doc_id": 0, "doc": {}, "target": target, "filtered_resps": [[-1.0, False], [-2.0, False], [-3.0, False]]}
    with pytest.raises(InputError, match=r"expected one right option.*several right options cannot be read"):
        Predictions.load(write(tmp_path / "samples.jsonl", [line] * 2))
