"""Pairs of models by their names: the same name with another ending, and one family in several sizes."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

SIZE = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)[bB](?![A-Za-z0-9])"
)  # billions of parameters: -7B, -0.6B, not A3B or 8x7B
ENDINGS = {  # what well-known endings say; every other ending is asked about too, in these words: "-lite"
    "think": "Does thinking before the answer change it?",
    "base": "Does a base model differ from the chat model?",
    "instruct": "Does instruction tuning change it?",
    "it": "Does instruction tuning change it?",
    "chat": "Does instruction tuning change it?",
    "fp8": "Do FP8 weights change it?",
    "awq": "Do 4-bit AWQ weights change it?",
    "gptq": "Do GPTQ weights change it?",
}


@dataclass(frozen=True)
class NamePairs:
    """Models whose names differ by one ending: (without it, with it)."""

    ending: str
    pairs: tuple[tuple[str, str], ...]

    @property
    def question(self) -> str:
        return ENDINGS.get(self.ending.lower(), f"Does -{self.ending} differ from the model without it?")


@dataclass(frozen=True)
class SizeFamily:
    """Models whose names differ by their size alone, ascending."""

    name: str
    sizes: tuple[float, ...]
    models: tuple[str, ...]

    @property
    def slopes(self) -> tuple[float, ...]:
        """Weights of the models in the slope of a straight line over doublings of the size."""
        x = [math.log2(size) for size in self.sizes]
        centre = sum(x) / len(x)
        total = sum((doublings - centre) ** 2 for doublings in x)
        return tuple((doublings - centre) / total for doublings in x)


def pairs_by_ending(models: Sequence[str]) -> list[NamePairs]:
    """For every ending, the models that exist with and without it; the ending of most pairs first.

    >>> [(p.ending, p.pairs) for p in pairs_by_ending(["q-1B", "q-1B-think", "q-8B", "q-8B-think", "q-8B-FP8"])]
    [('think', (('q-1B', 'q-1B-think'), ('q-8B', 'q-8B-think'))), ('FP8', (('q-8B', 'q-8B-FP8'),))]
    """
    there = set(models)
    by_ending: dict[str, list[tuple[str, str]]] = {}
    for model in models:
        stem, dash, ending = model.rpartition("-")
        if dash and ending and stem in there:
            by_ending.setdefault(ending, []).append((stem, model))
    endings = [NamePairs(ending, tuple(pairs)) for ending, pairs in by_ending.items()]
    return sorted(endings, key=lambda named: (-len(named.pairs), named.ending))


def families_by_size(models: Sequence[str]) -> list[SizeFamily]:
    """Families of at least two sizes.

    >>> [(f.name, f.sizes) for f in families_by_size(["q-8B-it", "q-0.6B-it", "q-30B-A3B", "mix-8x7B", "r-7b"])]
    [('q-#-it', (0.6, 8.0))]
    """
    by_family: dict[str, dict[float, str]] = {}
    for model in models:
        sizes = SIZE.findall(model)
        if len(sizes) == 1 and float(sizes[0]) > 0:
            by_family.setdefault(SIZE.sub("#", model), {})[float(sizes[0])] = model
    families = []
    for name, members in by_family.items():
        if len(members) > 1:
            ascending = tuple(sorted(members))
            families.append(SizeFamily(name, ascending, tuple(members[size] for size in ascending)))
    return families
