"""Damaged maps, accumulators and fitted rescorers: a clear error, or something that still gives probabilities."""

import functools
import json
import tempfile
import warnings
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import mutate_json as mutate
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch
from fuzz_counts import FEW, MANY, record
from hostile_words import mutated_tensors, pick
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of
from torch import nn

import calibrant as cal
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.predictions import Predictions
from calibrant.rescorers.clamping import ClampedNetwork, ClampReport, ClampRow, load_clamped
from calibrant.rescorers.density_ratio import DensityRatio, FittedDensityRatio
from calibrant.rescorers.trust_score import FittedTrustScore, TrustScore

NAMES = {
    "map": "maps",
    "accumulator": "accumulators",
    "density": "density ratios",
    "trust": "trust scores",
    "clamp": "clamps",
    "tensors": "tensors of clamps",
    "watch": "watches",
    "keyed": "accumulators by key",
    "confidnet": "ConfidNets",
}


@functools.cache
def rows(n: int = 60, k: int = 3) -> Predictions:
    rng = np.random.default_rng(n)
    z = 2 * rng.normal(size=(n, k))
    labels = np.where(rng.random(n) < 0.7, z.argmax(axis=1), rng.integers(0, k, n))
    names = np.array(["a", "b"])[rng.integers(0, 2, n)]
    return Predictions.from_logits(z, labels, features=rng.normal(size=(n, 2)), groups=names, ids=np.arange(n))


@functools.cache
def whole_maps() -> tuple[str, ...]:
    specs = ("temperature", "isotonic", "beta", "svs", "ets+isotonic_ovr", "histogram")
    fits = [cal.fit(rows(), spec) for spec in specs]
    return tuple(m.to_json() for m in (*fits, cal.fit(rows(), "temperature", by_group=True)))


@functools.cache
def whole_accumulator() -> str:
    sums = cal.Accumulator(["accuracy", "nll", "ece:bins=5", "classwise:bins=3", "gap"])
    for first in range(0, 60, 20):
        sums.update(rows().take(np.arange(first, first + 20)))
    return sums.to_json()


@functools.cache
def whole_archives() -> dict[str, bytes]:
    trust = replace(TrustScore().fit(rows().features, rows().labels), slope=0.7, offset=-0.1)
    with tempfile.TemporaryDirectory() as folder:
        DensityRatio(neighbours=3).fit(rows()).save(Path(folder) / "density.npz")
        replace(trust, fingerprint=Fingerprint.of(rows())).save(Path(folder) / "trust.npz")
        return {file.stem: file.read_bytes() for file in Path(folder).iterdir()}


@functools.cache
def whole_clamp() -> tuple[str, bytes]:
    row = ClampRow(
        gamma=1.0,
        lam=0.1,
        T=1.5,
        delta_norm=0.2,
        objective=0.9,
        objective_temperature=1.0,
        ece=0.05,
        entropy=1.1,
        stopped="converged",
    )
    numbers = dict.fromkeys((f.name for f in fields(ClampReport) if f.type in (float, "float")), 0.5)
    known = {"n": 60, "k": 3, "passes": 4, "helped": True, "diagnosis": "it helped", "options": {"passes": 8}}
    report = ClampReport(**numbers | {"lam": 0.1} | known, rows=(row,))
    with tempfile.TemporaryDirectory() as folder:
        ClampedNetwork(network(), torch.zeros(4), 1.5, report=report).save(folder)
        return (Path(folder) / "clamp.json").read_text(), (Path(folder) / "clamp.safetensors").read_bytes()


@functools.cache
def whole_watches() -> tuple[str, ...]:
    results = []
    for mode, segments in (("anytime", True), ("change", False), ("anytime", ["a", "b"])):
        watch = cal.Watch(tolerance=0.02, mode=mode, segments=segments)
        for first in range(0, 60, 20):
            watch.update(rows().take(np.arange(first, first + 20)))
        watch.files = {"monday.csv": 60}
        results.append(watch.to_json())
    return tuple(results)


@functools.cache
def whole_keyed() -> str:
    sums = cal.Accumulators(by=("day", "segment"), measures=["accuracy", "ece:bins=5"])
    sums.update(rows(), {"day": "monday", "segment": rows().groups})
    return sums.to_json()


class Classifier(nn.Module):
    """A network whose last layer ConfidNet can find; every one has the same weights."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(4, 5), nn.Linear(5, 3)
        with torch.no_grad():
            for number, one in enumerate(self.parameters()):
                one.copy_(torch.linspace(-1, 1, one.numel()).reshape(one.shape) * (number + 1))

    def forward(self, x):
        return self.head(torch.relu(self.stem(x)))


@functools.cache
def confidnet_rows() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(20, 4, generator=generator), torch.arange(20) % 3) for _ in range(2)]


@functools.cache
def whole_confidnet() -> bytes:
    fitted = cal.rescorers.ConfidNet(width=4, depth=2, epochs=1, batch=20).fit(
        Classifier(), confidnet_rows(), confidnet_rows()
    )
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(folder)
        return (Path(folder) / "confidnet.safetensors").read_bytes()


def network() -> nn.Module:
    return nn.Linear(4, 3)


def check_probabilities(q: Predictions) -> None:
    assert np.isfinite(q.values).all()
    assert (q.probs >= 0).all()
    np.testing.assert_allclose(q.probs.sum(axis=1), 1, atol=1e-9)


def try_map(file: Path) -> None:
    m = cal.load_map(file)
    groups = rows().take(np.arange(20)) if m.k == 3 else rows(60, m.k) if m.k <= 50 else None
    if groups is not None:
        check_probabilities(m(groups))
    assert cal.Map.from_dict(m.to_dict()).to_json() == m.to_json()


def try_accumulator(file: Path) -> None:
    a = cal.Accumulator.load(file)
    if a.n == 0:
        return
    for spec in a.specs:
        measurement = a.measure(spec)
        low, high = cal.measures.make(spec).bounds
        assert low - 1e-6 <= measurement.value <= high + 1e-6, measurement
        assert np.isfinite([measurement.value, measurement.low, measurement.high]).all(), measurement
        assert measurement.low <= measurement.high
    assert sum(part.sum() for part in a.histogram) == a.n
    assert cal.Accumulator.from_json(a.to_json()).to_json() == a.to_json()


def try_density(file: Path) -> None:
    check_rescored(FittedDensityRatio.load(file))


def try_trust(file: Path) -> None:
    check_rescored(FittedTrustScore.load(file))


def try_clamp(file: Path) -> None:
    """The file holds clamp.json; clamp.safetensors beside it is whole, or damaged every third time."""
    clamped = load_clamped(file.parent, network())
    if tuple(clamped.delta.shape) in ((4,), (1,)):
        assert torch.isfinite(clamped(torch.ones(2, 4))).all()


def try_watch(file: Path) -> None:
    watch = cal.Watch.load(file)
    check_watch(watch)
    assert cal.Watch.from_json(watch.to_json()).to_json() == watch.to_json()
    if watch.task in (None, "multiclass"):
        watch.update(rows().take(np.arange(5)))
        check_watch(watch)


def check_watch(watch: cal.Watch) -> None:
    """Everything it says, as JSON that has no infinity in it."""
    json.dumps(watch.to_dict(), allow_nan=False)
    assert str(watch)
    for name, track in watch.segments.items():
        assert 0 <= track.evidence < np.inf
        assert 1 < watch.limit(name) < np.inf
        json.dumps(watch.history(name), allow_nan=False)


def try_keyed(file: Path) -> None:
    each = cal.Accumulators.load(file)
    for _, one in each.items():
        for spec in one.specs if one.n else ():
            measurement = one.measure(spec)
            assert np.isfinite([measurement.value, measurement.low, measurement.high]).all(), measurement
            assert measurement.low <= measurement.high
    assert cal.Accumulators.from_json(each.to_json()).to_json() == each.to_json()


def try_confidnet(file: Path) -> None:
    from calibrant.rescorers.confidnet import FittedConfidNet

    fitted = FittedConfidNet.load(file.parent, Classifier())
    try:
        confidence = fitted.confidence(confidnet_rows()[:1])
    except InputError as error:  # weights that are numbers, and too large
        raise InputError.inside(str(file), error) from None
    assert np.isfinite(confidence).all()
    assert ((confidence >= 0) & (confidence <= 1)).all()


def try_tensors(file: Path) -> None:
    try_clamp(file)


def check_rescored(fitted: FittedDensityRatio | FittedTrustScore) -> None:
    if fitted.known.shape[1] == 2:
        check_probabilities(fitted.predict(rows(40)))


def damaged(kind: str, rng: np.random.Generator) -> bytes:
    if kind == "map":
        return mutate.mutated_text(whole_maps()[int(rng.integers(0, len(whole_maps())))], rng)
    if kind == "accumulator":
        return mutate.mutated_text(whole_accumulator(), rng)
    if kind == "clamp":
        return mutate.mutated_text(whole_clamp()[0], rng)
    if kind == "watch":
        return mutate.mutated_text(pick(rng, whole_watches()), rng)
    if kind == "keyed":
        return mutate.mutated_text(whole_keyed(), rng)
    if kind in ("tensors", "confidnet"):
        data = whole_clamp()[1] if kind == "tensors" else whole_confidnet()
        if rng.random() < 0.1:
            return mutate.mutated_bytes(data, rng)
        facts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
        tensors = tensors_of(data)
        if "calibrant" in facts and rng.random() < 0.4:
            facts["calibrant"] = mutate.mutated_text(facts["calibrant"], rng).decode("utf-8", "replace")
        elif rng.integers(4):
            tensors = mutated_tensors(tensors, rng)
        return bytes_of(tensors, facts or None)
    return mutate.mutated_npz(whole_archives()[kind], rng)


TRY = {
    "map": try_map,
    "accumulator": try_accumulator,
    "density": try_density,
    "trust": try_trust,
    "clamp": try_clamp,
    "tensors": try_tensors,
    "watch": try_watch,
    "keyed": try_keyed,
    "confidnet": try_confidnet,
}
FILES = {"clamp": "clamp.json", "tensors": "clamp.safetensors", "confidnet": "confidnet.safetensors"}


def fuzz(kind: str, times: int, folder: Path, *, first: int = 0) -> Counter[str]:
    """How many were refused, and how many were accepted and still right; anything else fails."""
    counts: Counter[str] = Counter({"refused": 0, "right": 0, "other": 0})
    (folder / "evil.py").write_text("open('it ran', 'w')")
    file = folder / FILES.get(kind, "damaged")
    for seed in range(first, first + times):
        rng = np.random.default_rng([seed, len(kind)])
        file.write_bytes(damaged(kind, rng))
        if kind == "tensors":
            (folder / "clamp.json").write_text(whole_clamp()[0])
        if kind == "clamp":
            tensors = whole_clamp()[1]
            (folder / "clamp.safetensors").write_bytes(tensors if seed % 3 else mutate.mutated_bytes(tensors, rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LeakWarning)
                TRY[kind](file)
        except InputError as error:
            counts["refused" if str(folder) in str(error) else "refused without its name"] += 1
        except Exception as error:
            print(f"{kind}, seed {seed}: {type(error).__name__}: {error}")
            counts["other"] += 1
        else:
            counts["right"] += 1
    assert not (folder / "it ran").exists()
    assert not counts["refused without its name"]
    return counts


@pytest.mark.parametrize("kind", TRY)
def test_damage_is_refused_or_harmless(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = fuzz(kind, FEW, tmp_path)
    assert counts["other"] == 0
    assert counts["refused"] > FEW / 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", TRY)
def test_much_damage_is_refused_or_harmless(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts = fuzz(kind, MANY, tmp_path, first=FEW)
    assert sum(counts.values()) == MANY
    record(NAMES[kind], counts, has_checksum=kind in ("accumulator", "watch", "keyed"))
