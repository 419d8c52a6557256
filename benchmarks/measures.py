"""Single measures, from an array of logits to the number."""

from collections.abc import Callable

from benchmarks._clock import NUMPY, OURS, Call, Effort, Lap, fastest, race, with_numpy
from benchmarks._data import Data, overconfident
from benchmarks._page import Section, Target, ratio, show, small_print, table
from benchmarks._peers import SINGLE, Input, Single, bytes_needed, steps, thread_turn
from calibrant import Predictions
from calibrant.measures import make

SIZES = tuple((n, k, t) for n, k in ((10_000, 10), (10_000, 100), (50_000, 1000)) for t in ("float32", "float64"))
SMOKE_SIZES = tuple((n, k, t) for n, k in ((500, 5), (600, 10), (1500, 20)) for t in ("float32", "float64"))
MOST_BYTES = 8 << 30
MOST_SECONDS = {"float32": 8.0, "float64": 2.0}  # float64 only where cheap
FASTER = {"mmce": 1.0, "kde": 1.0}  # than the fastest peer, where not WANTED times
WANTED = 1.5
CLASSWISE_AT = 1  # which size has a target of its own
WORDS = (
    "From raw logits to the number: our time includes the validation of the input, a peer's includes torch's softmax "
    "where it wants probabilities. In brackets the number each computed. "
    "Everyone runs three times in a row: the first run finds the processor's caches as the package before left them. "
    "Torch runs with one and with all threads in turn, and the better time counts. It works in the precision of its "
    "input: from float32, numbers of seven digits where ours have fifteen, and half the work for `nll` and `brier`. "
    "A peer is not run where its time so far, scaled with n k (or n^2), foretells over 8 s (for float64, 2 s) "
    "or where it needs over 8 GB. *calibrant, numpy passes* is calibrant without its compiled passes, and no peer."
)

Row = tuple[str, str, str, dict[str, Lap]]  # measure, size, type, laps


def run(*, smoke: bool) -> Section:
    rows: list[Row] = []
    known: dict[tuple[str, str], float] = {}  # (measure, peer) -> seconds per step so far
    for n, k, dtype in SMOKE_SIZES if smoke else SIZES:
        data = overconfident(n, k, dtype=dtype)
        for measure in SINGLE:
            laps = _race(measure, data, known, _effort(n * k, smoke))
            rows.append((measure, data.size, dtype, laps))
            known |= {(measure, peer): lap.best / steps(measure, n, k) for peer, lap in laps.items() if lap.ran}
    return Section("Single measures", WORDS, _targets(rows), [_table(rows)])


def _effort(elements: int, smoke: bool) -> Effort:
    if smoke:
        return Effort(1, 0.0)
    return Effort(60, 0.9, in_a_row=3) if elements < 10_000_000 else Effort(4, 2.5)


def _race(measure: str, data: Data, known: dict[tuple[str, str], float], effort: Effort) -> dict[str, Lap]:
    x = Input.of(data)
    entries: dict[str, Call] = {OURS: lambda: make(measure)(Predictions.from_logits(data.logits, data.labels))}
    entries[NUMPY] = with_numpy(entries[OURS])
    skipped = {}
    for name, peer in SINGLE[measure].items():
        expected = known.get((measure, name), 0.0) * steps(measure, *data.logits.shape)
        most = MOST_SECONDS[str(data.logits.dtype)]
        why = _too_much(bytes_needed(measure, len(data.labels)), expected, most)
        if why:
            skipped[name] = Lap(note=why)
        else:
            entries[name] = _call(peer, x)
    return race(entries, effort, turn=thread_turn) | skipped


def _call(peer: Single, x: Input) -> Callable[[], float]:
    return lambda: peer(x)


def _too_much(bytes_: int, seconds: float, most: float) -> str:
    if bytes_ > MOST_BYTES:
        return f"not run: its n x n matrices take {bytes_ / 2**30:.0f} GB"
    if seconds > most:
        return f"not run: about {seconds:.0f} s expected from the smaller sizes"
    return ""


def _table(rows: list[Row]) -> str:
    lines = []
    for measure, size, dtype, laps in rows:
        peer = fastest(laps)
        times = f"**{show(ratio(laps[peer], laps[OURS]))}x**" if peer else "-"
        lines.append([measure, size, dtype, peer or "none", times, small_print(laps)])
    return table(["measure", "n x k", "input", "fastest peer", "its time / ours", "milliseconds (number)"], lines)


def _targets(rows: list[Row]) -> list[Target]:
    sizes = list(dict.fromkeys(size for _, size, _, _ in rows))
    return [_never_slower(measure, rows) for measure in SINGLE] + [
        _classwise(sizes[CLASSWISE_AT], rows),
        _mmce(sizes[-1], rows),
    ]


def _never_slower(measure: str, rows: list[Row]) -> Target:
    """Judged by the size that is worst for us."""
    least = FASTER.get(measure, WANTED)
    promise = f"{measure}, times faster than the fastest peer, at every size and type"
    results = [
        (ratio(laps[peer], laps[OURS]), f"worst at {size} {dtype}, {peer}")
        for name, size, dtype, laps in rows
        if name == measure and (peer := fastest(laps))
    ]
    if not results:
        return Target(promise, None, "least", least, note="no peer package has it")
    worst, note = min(results)
    return Target(promise, worst, "least", least, note=note)


def _classwise(size: str, rows: list[Row]) -> Target:
    laps = next(row[3] for row in rows if row[:3] == ("classwise", size, "float32"))
    peer = fastest(laps)
    result = ratio(laps[peer], laps[OURS]) if peer else None
    return Target(f"classwise at {size}, times faster than the fastest peer", result, "least", 10.0, note=peer or "")


def _mmce(size: str, rows: list[Row]) -> Target:
    laps = next(row[3] for row in rows if row[:2] == ("mmce", size))
    return Target(f"mmce at {size}, without an n x n matrix", laps[OURS].best, "most", 1.0, " s")
