"""Pairs and families by name, on names as they are published."""

import numpy as np

from calibrant.reporting.board.name_pairs import families_by_size, pairs_by_ending

NAMES = [
    *(f"Qwen3-{size}B{more}" for size in ("0.6", "8", "14") for more in ("", "-Base", "-think", "-FP8")),
    "Qwen3-30B-A3B",
    "Qwen3-30B-A3B-think",
    "Mixtral-8x7B-v0.1",
    "gemini-2.0-flash",
    "gemini-2.0-flash-lite",
    "Llama-3.2-1B-Instruct",
    "Llama-3.2-3B-Instruct-Turbo",
]


def test_endings_pair_the_name_with_the_name_without_it():
    results = {one.ending: one.pairs for one in pairs_by_ending(NAMES)}
    assert set(results) == {"Base", "think", "FP8", "lite"}
    assert len(results["think"]) == 4
    assert ("Qwen3-30B-A3B", "Qwen3-30B-A3B-think") in results["think"]
    assert results["lite"] == (("gemini-2.0-flash", "gemini-2.0-flash-lite"),)


def test_known_endings_ask_in_words_and_others_by_name():
    asked = {one.ending: one.question for one in pairs_by_ending(NAMES)}
    assert asked["think"] == "Does thinking before the answer change it?"
    assert asked["lite"] == "Does -lite differ from the model without it?"


def test_families_differ_by_size_alone():
    results = {one.name: one.sizes for one in families_by_size(NAMES)}
    assert results == {f"Qwen3-#{more}": (0.6, 8.0, 14.0) for more in ("", "-Base", "-think", "-FP8")}


def test_slopes_are_those_of_a_straight_line_over_doublings():
    family = families_by_size(NAMES)[0]
    values = np.array([0.5, 0.3, 0.25])
    slope = np.polyfit(np.log2(family.sizes), values, 1)[0]
    np.testing.assert_allclose(np.dot(family.slopes, values), slope)
