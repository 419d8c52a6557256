"""Searches on a landscape made by hand: better than chance, within the budget, the same for the same seed."""

import numpy as np
import pytest

from calibrant.core.errors import InputError
from calibrant.nas.searches import Landscape, make, names

PLACES, OPTIONS = 6, 5


def sample(rng):
    return "".join(str(x) for x in rng.integers(OPTIONS, size=PLACES))


def neighbours(arch):
    return [arch[:i] + str(x) + arch[i + 1 :] for i in range(PLACES) for x in range(OPTIONS) if str(x) != arch[i]]


def hill(arch):
    """One smooth hill, with a little seeded roughness."""
    rough = np.random.default_rng(int(arch)).normal(0, 0.3)
    return float(sum(map(int, arch)) + rough)


SPACE = Landscape(sample, neighbours)


def best(name, seed, budget=50):
    return max(trial.value for trial in make(name)(SPACE, hill, budget=budget, seed=seed))


def test_evolution_and_local_search_beat_random_over_100_seeds():
    results = {name: np.array([best(name, seed) for seed in range(100)]) for name in names()}
    for name in ("evolution", "local"):
        gain = results[name] - results["random"]
        assert gain.mean() > 3 * gain.std(ddof=1) / 10


@pytest.mark.parametrize("name", names())
def test_the_budget_counts_different_architectures_measured_once(name):
    measured = []

    def objective(arch):
        measured.append(arch)
        return hill(arch)

    trials = make(name)(SPACE, objective, budget=37, seed=1)
    assert len(trials) == len(measured) == len(set(measured)) == 37
    assert [trial.arch for trial in trials] == measured


@pytest.mark.parametrize("name", names())
def test_same_seed_same_path(name):
    one, same, other = (make(name)(SPACE, hill, budget=30, seed=seed) for seed in (4, 4, 5))
    assert one == same
    assert one != other


@pytest.mark.parametrize("name", names())
def test_a_small_space_is_exhausted_and_ends(name):
    small = Landscape(lambda rng: str(rng.integers(3)), lambda arch: [])
    assert {trial.arch for trial in make(name)(small, float, budget=10)} == {"0", "1", "2"}


def test_no_budget_is_refused():
    with pytest.raises(InputError, match="budget"):
        make("random")(SPACE, hill, budget=0)
    with pytest.raises(InputError, match="population"):
        make("evolution:population=0")
