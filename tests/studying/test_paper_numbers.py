"""Ours beside theirs: every printed number stands beside one of a plan, or the reason is here."""

import pytest

pytest.importorskip("torch")

from calibrant.studying.paper_numbers import find_number, find_place
from calibrant.studying.plan_files import plan_names, read_plan
from calibrant.studying.published_tables import lookup, names

QUOTED = "quoted by the paper from others; their training is not ours to repeat"
WITHOUT = {  # table -> entries of it that no plan has, and why
    "meta-table3": {"Patra et al. (2023)": QUOTED, "Hebbalaguppe et al. (2022) [row 1]": QUOTED},
}


def beside(table, scale):
    """Keys of the printed numbers that stand beside one of ours on some page."""
    results = set()
    for name in plan_names():
        plan = read_plan(name, scale=scale)
        places = {(place.get("data", ""), place.get("model", ""), method) for method, place in plan.cells()}
        for layout in plan.table:
            if layout.published != table:
                continue
            printed = lookup(table)
            for data, model, method in places:
                there = find_place(plan, layout, {"data": str(data), "model": str(model)}, printed)
                for entry in (one for one in plan.entries_of(layout) if plan.rows[one].method == method):
                    for measure in layout.measures or plan.after.measures:
                        if (number := find_number(plan, layout, printed, there, entry, measure)) is not None:
                            results |= {key for key, one in printed.items() if one is number}
    return results


@pytest.mark.parametrize("table", names())
def test_every_printed_number_stands_beside_ours(table):
    without = WITHOUT.get(table, {})
    assert {key for key in lookup(table) if key[2] not in without} == beside(table, "paper")


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ("meta-table1", 12 * 6),  # CIFAR-10
        ("meta-table2", 2 * 6),
        ("meta-table3", 5 * 2),  # CIFAR-10; two rows are quoted alone, one has no claim
        ("dark-side-table2", 6 * 3),  # CIFAR-10, of one network
        ("dark-side-table3", 6 * 3),  # CIFAR-10.1
        ("dark-side-table4", 2 * 2),
        ("clamping-table1", 9 * 5),
        ("clamping-table2", 9 * 5),  # ResNet-110
        ("clamping-table4", 6 * 5),
    ],
)
def test_at_the_small_scale_one_network_stands_for_the_printed_one(table, count):
    assert len(beside(table, "small")) == count
