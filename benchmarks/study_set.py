"""The 90 bin-based measures of the benchmark study, with the temperature fit between them."""

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks._clock import NUMPY, OURS, Effort, Lap, race, with_numpy
from benchmarks._data import Data, overconfident, plain_softmax
from benchmarks._page import Section, Target, ratio, show, small_print, table
from benchmarks._peers import BINNED, TEMPERATURE, Binned, Input, Single, thread_turn
from calibrant import Predictions, measure_set, measures
from calibrant.core.statistics.temperature import find_temperature
from calibrant.measuring.measure_sets import BIN_COUNTS, BIN_FAMILIES, FIT_SHARE, STUDY_SEED

SIZE, SMOKE_SIZE = (10_000, 100), (1000, 5)
TRIED = (15, 500)  # bin counts that decide who is the fastest peer of a family
SAME = 0.01  # relative difference up to which a peer computes the same thing
SOFTMAX, PEERS = "one numpy softmax", "the peers"
WORDS = (
    "ECE, equal-mass ECE, class-wise error of both kinds and MCE, each with 9 bin counts, before and after a "
    "temperature fitted on 20 % of the rows. Against it: the same set from the peers' public functions, each family "
    "from the peer that is fastest and computes the same number (within 1 %). Softmax once a state, and nothing is "
    "extrapolated: both states of the peers are run in full, once."
)


def run(*, smoke: bool) -> Section:
    n, k = SMOKE_SIZE if smoke else SIZE
    data = overconfident(n, k)
    effort = Effort(1, 0.0) if smoke else Effort(16, 4.0)
    chosen, tried = _choose(data, Effort(1, 0.0) if smoke else Effort(4, 1.5))
    laps = _race(data, chosen, effort)
    double = _race(overconfident(n, k, dtype="float64"), None, effort)
    section = Section("The 90 bin-based measures", WORDS)
    section.targets = _targets(data.size, laps)
    section.tables = [_whole_table({"float32": laps, "float64": double}), _tried_table(tried, chosen)]
    return section


# -- who is the fastest peer of each family ----------------------------------------------------------------------

Tried = dict[str, dict[str, Lap]]


def _choose(data: Data, effort: Effort) -> tuple[dict[str, str], Tried]:
    """Family -> peer; the temperature is a family too."""
    x, p = Input.of(data), Predictions.from_logits(data.logits, data.labels)
    tried = {family: _try(family, p, x, effort) for family in BINNED}
    tried["temperature"] = _try_temperature(p, x, effort)
    return {family: _fastest_same(laps) for family, laps in tried.items()}, tried


def _try(family: str, p: Predictions, x: Input, effort: Effort) -> dict[str, Lap]:
    def ours() -> float:
        fresh = Predictions(p.values, p.labels, p.score_type)
        return sum(measures.make(BIN_FAMILIES[family].format(bins))(fresh) for bins in TRIED)

    def call(peer: Binned) -> Callable[[], float]:
        def both() -> float:
            q = x.softmax()
            return sum(peer(q, bins) for bins in TRIED)

        return both

    entries = {OURS: ours} | {name: call(peer) for name, peer in BINNED[family].items()}
    return race(entries, effort, turn=thread_turn)


def _try_temperature(p: Predictions, x: Input, effort: Effort) -> dict[str, Lap]:
    fit_on = p.split(FIT_SHARE, seed=STUDY_SEED)[0]
    part = Input.of(Data(fit_on.values.copy(), fit_on.labels.copy()))

    def call(peer: Single) -> Callable[[], float]:
        return lambda: peer(part)

    entries = {OURS: lambda: find_temperature(fit_on).T} | {name: call(peer) for name, peer in TEMPERATURE.items()}
    return race(entries, effort, turn=thread_turn)


def _fastest_same(laps: Mapping[str, Lap]) -> str:
    """The fastest peer whose number is ours; where all differ, the nearest."""
    peers = {name: lap for name, lap in laps.items() if name != OURS and lap.ran}
    off = {name: abs(lap.number / laps[OURS].number - 1) for name, lap in peers.items()}
    same = [name for name in peers if off[name] <= SAME]
    return min(same, key=lambda name: peers[name].best) if same else min(off, key=off.__getitem__)


# -- the whole set -----------------------------------------------------------------------------------------------


def _race(data: Data, chosen: Mapping[str, str] | None, effort: Effort) -> dict[str, Lap]:
    entries: dict[str, Callable[[], float]] = {
        OURS: lambda: _mean_of_ours(data),
        NUMPY: with_numpy(lambda: _mean_of_ours(data)),
        SOFTMAX: lambda: float(plain_softmax(data.logits)[0, 0]),
    }
    if chosen:
        x = Input.of(data)
        entries[PEERS] = lambda: _mean_of_peers(x, chosen)
    return race(entries, effort, turn=thread_turn)


def _mean_of_ours(data: Data) -> float:
    result = measure_set(Predictions.from_logits(data.logits, data.labels), "benchmark90")
    return float(np.mean([one.value for one in result]))


def _mean_of_peers(x: Input, chosen: Mapping[str, str]) -> float:
    """The same rows in the same states as `benchmark102`."""
    n = len(x.labels)
    shuffled = np.random.default_rng(STUDY_SEED).permutation(n)
    first = round(n * FIT_SHARE)
    T = TEMPERATURE[chosen["temperature"]](x.take(np.sort(shuffled[:first])))
    rest = x.take(np.sort(shuffled[first:]))
    states = (x.softmax(), Input(rest.logits / T, rest.labels).softmax())
    return float(np.mean([BINNED[f][chosen[f]](q, bins) for q in states for f in BINNED for bins in BIN_COUNTS]))


# -- what is written ---------------------------------------------------------------------------------------------


def _targets(size: str, laps: Mapping[str, Lap]) -> list[Target]:
    set_ = f"the 90 bin-based measures and the temperature fit at {size}"
    peers = ratio(laps[PEERS], laps[OURS]) if laps[PEERS].ran else None
    return [
        Target(f"{set_}, in softmaxes of the same array", laps[OURS].best / laps[SOFTMAX].best, "most", 12.0),
        Target(f"{set_}, times faster than the peers", peers, "least", 80.0, note=laps[PEERS].note),
    ]


def _whole_table(races: Mapping[str, Mapping[str, Lap]]) -> str:
    rows = []
    for dtype, laps in races.items():
        peers = f"**{show(ratio(laps[PEERS], laps[OURS]))}x**" if PEERS in laps else "not run"
        softmaxes = f"**{show(laps[OURS].best / laps[SOFTMAX].best)}**"
        rows.append([dtype, softmaxes, peers, small_print(laps, numbers=False)])
    return table(["input", "our time in softmaxes", "the peers' time / ours", "milliseconds"], rows)


def _tried_table(tried: Tried, chosen: Mapping[str, str]) -> str:
    head = ["family", "peer chosen", "its time / ours", f"milliseconds for {TRIED[0]} and {TRIED[1]} bins (number)"]
    rows = [
        [family, chosen[family], f"**{show(ratio(laps[chosen[family]], laps[OURS]))}x**", small_print(laps)]
        for family, laps in tried.items()
    ]
    return table(head, rows)
