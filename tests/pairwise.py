"""Few cases in which every pair of values still meets: for options that are too many to try in every combination."""

from itertools import combinations, product


def pairwise(**factors):
    """Greedy all-pairs: dicts with one value per factor. A fault nearly always needs one value, or two together.

    >>> cases = pairwise(bins=[5, 15], scheme=["width", "mass"], closed=["right", "left"])
    >>> len(cases)  # of 8
    4
    >>> {(case["scheme"], case["closed"]) for case in cases} == set(product(["width", "mass"], ["right", "left"]))
    True
    """
    assert len(factors) > 1, "nothing to pair"
    choices = [[(name, i) for i in range(len(values))] for name, values in factors.items()]
    unseen = dict.fromkeys(  # a dict keeps its order, so that the cases are the same in every process
        frozenset(pair) for one, other in combinations(choices, 2) for pair in product(one, other)
    )
    cases = []
    while unseen:
        case = set(next(iter(unseen)))
        for options in choices:
            if case.isdisjoint(options):
                case.add(max(options, key=lambda option: sum(frozenset((option, one)) in unseen for one in case)))
        for pair in combinations(case, 2):
            unseen.pop(frozenset(pair), None)
        cases.append({name: factors[name][i] for name, i in sorted(case, key=lambda one: list(factors).index(one[0]))})
    return cases
