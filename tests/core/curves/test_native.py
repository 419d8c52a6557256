"""The compiled passes against their numpy twins: every type, stride and size, and numbers at the edges."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators._objective import mean_nll
from calibrant.core.curves import native
from calibrant.core.curves.softmax import scan_logits, softmax_of, softmax_stats
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.predictions.validation import widen_bfloat16
from calibrant.core.statistics.temperature import find_temperature

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "calibrant" / "core" / "curves" / "native" / "passes.c"
built = pytest.mark.skipif(not native.is_available(), reason="the compiled passes were not built: no C compiler")
SIZES = [(1, 2), (5, 3), (40, 8), (33, 17), (20, 100), (3, 1000)]


def both(monkeypatch, function):
    """What the function returns with the compiled passes, and with numpy."""
    compiled = function()
    monkeypatch.setenv(native.VARIABLE, "0")
    assert native.backend() == "numpy"
    return compiled, function()


@built
@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_pass_equals_numpy(n, k, dtype, monkeypatch):
    z = (20 * np.random.default_rng(n * k).normal(size=(n, k))).astype(dtype)

    def results():
        top = softmax_stats(z, True, None, 7)
        return [*top[:4], softmax_of(z, top.largest, top.total)]

    ours, twin = both(monkeypatch, results)
    for one, other in zip(ours, twin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    assert (ours[1] == z.argmax(axis=1)).all()


@built
@pytest.mark.parametrize("k", [*range(2, 36), 100, 1000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_of_every_length_equal_numpy(k, dtype, monkeypatch):
    rng = np.random.default_rng(k)
    z = (rng.choice([1, 30, 2000], size=(70, 1)) * rng.normal(size=(70, k))).astype(dtype)
    labels, chosen = rng.integers(0, k, size=(2, 70))
    for carried in (None, chosen):
        ours = softmax_stats(z, True, carried, 70, labels)
        with monkeypatch.context() as off:
            off.setenv(native.VARIABLE, "0")
            twin = softmax_stats(z.astype(np.float64), True, carried, 70)
            p = cal.Predictions.from_logits(z.astype(np.float64), labels)
            probs = p.true_prob
            log_probs = z.astype(np.float64)[np.arange(70), labels] - twin.largest - np.log(twin.total)
        for one, other in zip(ours[:4], twin, strict=False):
            np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(ours.true_prob, probs, rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(ours.true_log_prob, log_probs, rtol=1e-14, atol=1e-15)


@built
def test_labels_that_are_no_classes_are_seen():
    z = np.random.default_rng(0).normal(size=(50, 12)).astype(np.float32)
    labels = np.arange(50) % 12
    assert scan_logits(z, labels).known
    for wrong in (-1, 12, 2**62, -(2**63)):
        labels[17] = wrong
        assert not scan_logits(z, labels).known


@built
@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_probabilities_equal_numpy(n, k, dtype, monkeypatch):
    z = (20 * np.random.default_rng(n * k).normal(size=(n, k))).astype(dtype)
    labels = np.arange(n) % k
    ours, twin = both(monkeypatch, lambda: cal.Predictions.from_logits(z, labels).squared_probs_sum)
    np.testing.assert_allclose(ours, twin, rtol=1e-14)


@built
def test_probabilities_equal_numpy_down_to_the_smallest(monkeypatch):
    z = np.array([[0.0, -1.0, -37.0, -700.0, -709.0, -744.0, -745.3, -1e308, 0.0]])
    monkeypatch.setenv(native.VARIABLE, "1")
    top = softmax_stats(z, True, None, 1)
    np.testing.assert_allclose(
        softmax_of(z, top.largest, top.total), np.exp(z) / np.exp(z).sum(), rtol=1e-14, atol=5e-324
    )


@built
@pytest.mark.parametrize("make", [lambda z: z[:, ::2], lambda z: z[::3], lambda z: np.asfortranarray(z), lambda z: z.T])
def test_any_stride(make, monkeypatch):
    z = make(np.random.default_rng(1).normal(size=(24, 24)).astype(np.float32))
    ours, twin = both(monkeypatch, lambda: softmax_stats(z, True, None, 100))
    np.testing.assert_allclose(ours.total, twin.total, rtol=1e-14)
    assert (ours.predicted == twin.predicted).all()


@built
def test_half_precision_is_read_as_it_is():
    z = np.random.default_rng(2).normal(size=(50, 9)).astype(np.float16)
    z[0, :4] = 0, -0.0, 6e-8, 65504
    scan = scan_logits(z)
    wide = z.astype(np.float64)
    assert (scan.finite, scan.low, scan.high) == (True, wide.min(), wide.max())
    np.testing.assert_array_equal(scan.top.largest, wide.max(axis=1))
    np.testing.assert_allclose(scan.top.total, np.exp(wide - scan.top.largest[:, None]).sum(axis=1), rtol=1e-14)


@built
def test_bfloat16_is_read_as_it_is():
    bits = (np.random.default_rng(6).normal(size=(50, 9)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    ours, wide = scan_logits(bits), scan_logits(widen_bfloat16(bits))
    assert ours[1:] == wide[1:]
    for one, other in zip(ours.top, wide.top, strict=True):
        np.testing.assert_array_equal(one, other)


def test_predictions_take_bfloat16_of_torch_and_of_ml_dtypes():
    torch, ml_dtypes = pytest.importorskip("torch"), pytest.importorskip("ml_dtypes")
    z = np.array([[2.0, 0.0], [0.0, 1.0]])
    of_torch = cal.Predictions.from_logits(torch.tensor(z, dtype=torch.bfloat16), [0, 1])
    of_numpy = cal.Predictions.from_logits(z.astype(ml_dtypes.bfloat16), [0, 1])
    assert of_torch.values.tolist() == of_numpy.values.tolist() == z.tolist()


@built
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 6, 8, 15, 16])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("up_to", [0, 256, 512])
def test_a_number_that_is_not_finite_is_seen(value, column, dtype, up_to, level):
    level(up_to)
    z = np.zeros((9, 17), dtype=dtype)
    assert scan_logits(z).finite
    z[4, column] = value
    assert not scan_logits(z).finite


@built
def test_blocks_of_classes_have_the_bits_of_the_whole():
    z = np.random.default_rng(3).normal(size=(30, 21)).astype(np.float32)
    top = softmax_stats(z, True, None, 30)
    whole = softmax_of(z, top.largest, top.total)
    for part in (slice(0, 5), slice(5, 21), slice(20, 21)):
        np.testing.assert_array_equal(softmax_of(z[:, part], top.largest, top.total), whole[:, part])


@pytest.fixture
def level():
    """The kind of processor that the passes run for, the highest again afterwards."""
    library = native._library()
    yield library.calibrant_level
    library.calibrant_level(512)


@built
@pytest.mark.parametrize("up_to", [0, 256, 512])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ties_go_to_the_lowest_class(dtype, up_to, level):
    level(up_to)
    rng = np.random.default_rng(6)
    for k in (*range(2, 70), 127, 128, 129, 1000):
        z = np.where(rng.random((50, k)) < 2 / k, 1.0, -rng.random((50, k))).astype(dtype)
        z[0], z[1, 1:] = 0.0, -0.0
        assert (softmax_stats(z, True, None, 50).predicted == z.argmax(axis=1)).all()


@built
@pytest.mark.slow
def test_the_largest_of_more_numbers_than_float32_counts():
    z = np.zeros((1, 2**24 + 9), dtype=np.float32)
    for place in (2**24 + 1, 2**24 + 8, 3):
        z[0, place] += 1.0 + z.max()
        assert softmax_stats(z, True, None, 1).predicted.tolist() == [place]


@built
@pytest.mark.parametrize("k", [3, 10, 33])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_is_the_same(k, weighted, monkeypatch):
    rng = np.random.default_rng(k)
    z = 3 * rng.normal(size=(400, k))
    labels = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    p = cal.Predictions.from_logits(z, labels, weights=rng.random(400) if weighted else None)
    ours, twin = both(monkeypatch, lambda: find_temperature(p))
    assert pytest.approx(twin.T, rel=1e-8) == ours.T
    assert ours.stderr == pytest.approx(twin.stderr, rel=1e-6)


@built
@pytest.mark.parametrize("up_to", [0, 256])
def test_every_kind_of_processor_gets_the_same_numbers(up_to, level):
    z = (9 * np.random.default_rng(5).normal(size=(60, 37))).astype(np.float32)
    labels = np.arange(60) % 37

    def numbers():
        top = softmax_stats(z, True, None, 9)
        bins = native.class_bins(z, (top.largest, top.total), labels, np.arange(6) / 5, True)
        sums = native.temperature_sums(z, top.largest, np.zeros(60), None, 0.7)
        bins = [*bins, native.score_bins(top.confidence, labels == 0, np.arange(6) / 5, True)]
        return [*top[:5], *bins, *native.vector_sums(z, labels, None, np.ones(37), np.zeros(37)), *sums]

    best = level(512)
    wanted = numbers()
    if level(up_to) == best:
        pytest.skip("this machine has no higher level")
    for one, other in zip(numbers(), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
    if up_to == 256:  # both fuse multiplications with additions
        np.testing.assert_array_equal(numbers()[3], wanted[3])


@built
@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("k", [2, 5, 19])
def test_bins_without_a_sort_are_those_of_sorted_curves(k, closed, monkeypatch):
    rng = np.random.default_rng(k)
    probs = rng.dirichlet(np.full(k, 0.3), size=500)
    probs[:40] = rng.multinomial(10, np.full(k, 1 / k), size=40) / 10  # on edges
    labels = rng.integers(0, k, 500)
    logits = np.log(probs[40:] + 1e-9)  # off the edges, which rounding may cross
    for p in (cal.Predictions.from_probs(probs, labels), cal.Predictions.from_logits(logits, labels[40:])):
        for count in (1, 2, 10, 15):
            m = cal.measures.make(f"classwise:bins={count},closed={closed}")
            bins = m.class_bins(p)
            with monkeypatch.context() as off:
                off.setenv(native.VARIABLE, "0")
                sorted_ = m.class_bins(cal.Predictions._from_valid(p.values, p.labels, p.score_type))
            np.testing.assert_array_equal(bins.count, sorted_.count)
            np.testing.assert_array_equal(bins.outcome_sum, sorted_.outcome_sum)
            np.testing.assert_allclose(bins.score_sum, sorted_.score_sum, rtol=1e-12, atol=1e-12)


@built
@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("spec", ["ece", "mce", "resolution", "rmsce:bins=10"])
def test_bins_of_one_score_without_a_sort_are_those_of_the_sorted_curve(spec, closed, monkeypatch):
    rng = np.random.default_rng(9)
    scores = rng.random(3001)
    scores[:600] = rng.integers(0, 31, 600) / 30  # on edges, 0 and 1 among them
    p = cal.Predictions.binary(scores[::-1], rng.random(3001) < 0.4)  # backwards: not side by side
    for count in (1, 2, 10, 15, 30):
        m = cal.measures.make(f"{spec.partition(':')[0]}:bins={count},closed={closed}")
        bins, sorted_ = m._bins_without_sort(p), m.make_bins(p.curve)
        np.testing.assert_array_equal(bins.count, sorted_.count)
        np.testing.assert_array_equal(bins.outcome_sum, sorted_.outcome_sum)
        np.testing.assert_allclose(bins.score_sum, sorted_.score_sum, rtol=1e-12, atol=1e-12)
        ours, twin = both(monkeypatch, lambda m=m: m(p))
        monkeypatch.delenv(native.VARIABLE)
        assert ours == pytest.approx(twin, rel=1e-12, abs=1e-14)


@built
def test_bins_without_a_sort_are_those_of_the_parts_of_a_long_curve(monkeypatch):
    rng = np.random.default_rng(10)
    p = cal.Predictions.from_logits(rng.normal(size=(2000, 4)), rng.integers(0, 4, 2000))
    whole = cal.measures.make("ece")(p)
    for module in ("calibrant.measures._of_bins", "calibrant.core.curves.curve"):
        monkeypatch.setattr(f"{module}.LONG", 1000)
        monkeypatch.setattr(f"{module}.BLOCK", 300)
    assert cal.measures.make("ece")(p) == pytest.approx(whole, rel=1e-12)


@built
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", ["vector", "matrix"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_linear_fits_have_the_same_value_and_gradients(shape, weighted, dtype, monkeypatch):
    rng = np.random.default_rng(8)
    z, labels = (4 * rng.normal(size=(203, 21))).astype(dtype), rng.integers(0, 21, 203)
    weight = rng.normal(size=21) if shape == "vector" else rng.normal(size=(21, 21))
    weigh, bias = rng.random(203) if weighted else None, rng.normal(size=21)
    ours, twin = both(monkeypatch, lambda: mean_nll(z, labels, weight, bias, np.float64, weigh))
    for one, other in zip(ours, twin, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


@built
@pytest.mark.parametrize("k", [2, 8, 9, 10, 1000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_have_the_hashes_of_numpy(k, dtype, monkeypatch):
    rng = np.random.default_rng(k)
    z = rng.choice([0.0, -0.0, 1.0, 6e3], size=(300, k)) * rng.normal(size=(300, k))
    z[::7] = np.finfo(dtype).max * rng.choice([-1.0, 1.0], size=(43, k))
    p = cal.Predictions.from_logits(z.astype(dtype)[::-1], rng.integers(0, k, 300))
    ours, twin = both(monkeypatch, lambda: Fingerprint.of(p))
    np.testing.assert_array_equal(ours.hashes, twin.hashes)
    np.testing.assert_array_equal(ours.counts, twin.counts)


@built
def test_running_sums_have_the_bits_of_numpy():
    values = np.random.default_rng(4).random((7, 50))
    np.testing.assert_array_equal(native.prefix_sums(values)[:, 1:], values.cumsum(axis=1))


@built
def test_arrays_of_another_type_are_refused():
    z = np.zeros((4, 3))
    with pytest.raises(ValueError, match="float32"):
        native.probs_of(z, np.zeros(4, dtype=np.float32), np.ones(4))
    with pytest.raises(ValueError, match="in one piece"):
        native.probs_of(z, np.zeros(8)[::2], np.ones(4))


def test_without_the_library_numpy_runs(monkeypatch):
    monkeypatch.setattr(native, "_library", lambda: None)
    assert native.backend() == "numpy"
    assert cal.Predictions.from_logits([[2.0, 0.0], [0.0, 1.0]], [0, 1]).confidence[0] == pytest.approx(0.880797077978)


def test_the_command_says_which_runs():
    done = subprocess.run([sys.executable, "-m", "calibrant", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(f"({native.backend()} passes)")


@built
@pytest.mark.slow
def test_avx512_emulated_has_the_bits_of_avx2(level, tmp_path, monkeypatch):
    if level(256) != 256 or not Path("/usr/include/simde").exists():
        pytest.skip("this takes AVX2 and SIMDe")
    wanted = list(numbers_of_every_pass())
    kernels = (SOURCE.parent / "kernels.h").read_text().replace('target("avx512f")', 'target("avx2,fma")')
    passes = SOURCE.read_text().replace("#include <immintrin.h>", '#include "emulated_avx512.h"')
    (tmp_path / "kernels.h").write_text(kernels)
    (tmp_path / "passes.c").write_text(passes.replace('__builtin_cpu_supports("avx512f")', "1"))
    command = ["gcc", "-O1", "-mavx2", "-mfma", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-w", "-fPIC"]
    command += ["-shared", f"-I{Path(__file__).parent}", str(tmp_path / "passes.c"), "-o", str(tmp_path / "passes.so")]
    subprocess.run([*command, "-lm"], check=True)
    emulated = native.load_library(tmp_path / "passes.so")
    assert emulated.calibrant_level(512) == 512
    monkeypatch.setattr(native, "_library", lambda: emulated)
    for one, other in zip(numbers_of_every_pass(), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def numbers_of_every_pass():
    """Results on rows of every length up to 70, of every type, near each other and far."""
    rng = np.random.default_rng(0)
    for k in (*range(2, 70), 127, 128, 129, 1000):
        for dtype in (np.float16, np.float32, np.float64):
            z = (rng.choice([1, 9, 400], size=(37, 1)) * rng.normal(size=(37, k))).astype(dtype)
            labels, chosen = rng.integers(0, k, size=(2, 37))
            scan = scan_logits(z, labels)
            top = scan.top
            yield from (*top, np.array(scan[1:], dtype=float), *scan_logits(z, labels, chosen).top)
            yield native.probs_of(z, top.largest, top.total)
            yield native.temperature_sums(z, top.largest, rng.normal(size=37), rng.random(37), 0.7)
            yield from native.vector_sums(z, labels, None, rng.normal(size=k), rng.normal(size=k))
            yield from native.class_bins(z, (top.largest, top.total), labels, np.arange(11) / 10, True)
            yield native.score_bins(top.confidence, labels == 0, np.arange(11) / 10, False)
            if dtype != np.float16:
                yield from (native.residuals(z, labels, rng.random(37)), z)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_it_compiles_without_warnings_and_runs_clean_under_sanitizers(compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    flags = ast.literal_eval(re.search(r"^FLAGS = (\(.*\))$", (ROOT / "hatch_build.py").read_text(), re.M)[1])
    main = tmp_path / "main.c"
    main.write_text(f'#include "{SOURCE}"\n' + DRIVER)
    sanitize = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    command = [compiler, *flags, "-Werror", *sanitize, str(main), "-o", str(tmp_path / "main"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


DRIVER = """
#include <stdlib.h>
int main(void) {
    for (int up_to = 0; up_to <= 512; up_to += 256)
        for (ptrdiff_t k = 2; k < 40; k++) {
            const ptrdiff_t wide = whole_vectors(k);
            calibrant_level(up_to);
            float *z = malloc(5 * k * sizeof *z);
            for (ptrdiff_t i = 0; i < 5 * k; i++) z[i] = (float)((i * 7919) % 31) - 15;
            double *c = calloc(5, sizeof *c), *p = malloc(5 * k * sizeof *p), sums[4];
            double *room = malloc((ROWS_OF_ROOM * wide + 2 * CACHE) * sizeof *room);
            double *w = calloc(4 * wide, sizeof *w), *bins = calloc(9 * k + 48, sizeof *bins);
            double *runs = malloc(5 * (k + 1) * sizeof *runs);
            int64_t *y = malloc(5 * sizeof *y), next = 0;
            const double edges[4] = {0, 1.0 / 3, 2.0 / 3, 1};
#define Z (char *)z, FLOAT32, 5, k, 4 * k, 4
            for (ptrdiff_t i = 0; i < 5; i++) y[i] = i % k;
            double *columns = malloc(35 * sizeof *columns), *l = columns + 10, *t = columns + 15;
            if (calibrant_softmax(Z, 0, 0, columns, sums, room, &next) != 3) return 1;
            next = 0;
            if (calibrant_softmax(Z, y, y, columns, sums, room, &next) != 3) return 1;
            calibrant_prefix(p, 5, k, runs);
            int64_t hashes[5];
            calibrant_hash(Z, y, y, 2, hashes);
            calibrant_class_bins(Z, l, t, y, edges, 3, 1, bins, bins + 3 * k, bins + 6 * k, w, room);
            uint8_t right[5] = {0, 1, 1, 0, 1};
            calibrant_score_bins(columns, right, 5, edges, 3, 1, bins);
            calibrant_probs(Z, l, t, p, 0, room);
            calibrant_probs(Z, l, t, p, 5, room);
            calibrant_vector_fit(Z, y, t, w, w + wide, w + 2 * wide, w + 3 * wide, room);
            next = 0;
            calibrant_temperature(Z, l, c, t, 0.7, sums, room, &next);
            calibrant_residuals((char *)z, FLOAT32, 5, k, y, t, room);
            free(z), free(c), free(columns), free(p), free(room), free(y), free(w), free(bins), free(runs);
        }
    return 0;
}
"""


@built
def test_no_number_from_outside_is_an_index_beyond_the_memory():
    """Run in a process of its own, which a wild index ends."""
    code = """
import numpy as np
from calibrant.core.curves import native
rng = np.random.default_rng(0)
n, edges = 20_000, np.arange(16) / 15
scores = rng.choice([-1e300, -1e15, 1e15, 1e300, np.nan, np.inf, -np.inf, 0.5], n)
sums = native.score_bins(scores, np.ones(n, dtype=bool), edges, True)
assert sums[0].sum() == n and sums[0, 7] == (scores == 0.5).sum()
for k in (3, 40):
    z, wild = rng.normal(size=(n, k)), rng.choice([-(2**62), -(2**40), -1, 2**40, 2**62], n)
    native.softmax_rows(z, wild, wild, np.empty((7, n)), np.zeros(1, dtype=np.int64))
    native.class_bins(np.full((n, k), 1 / k), None, wild, edges, True)
    native.vector_sums(z, wild, None, np.ones(k), np.zeros(k))
    native.hash_rows(z, wild, wild[:2])
    native.residuals(z, wild, None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
