"""Commands that somebody may type: right ones, wrong options, odd values, hostile names, damaged files."""

import contextlib
import io
import json
import sys
from pathlib import Path

import numpy as np
from hostile_predictions import SUFFIXES, hostile_file, right_predictions
from mutate_bytes import mutated

from calibrant import cli
from calibrant.core.predictions import Predictions

NUMBERS = [
    "0",
    "1",
    "-1",
    "5",
    "0.95",
    "1.0",
    "2",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "abc",
    "",
    "²",
    "10" * 30,
    "0x10",
    "1_0",
]
WORDS = [
    "",
    "[/a]",
    "x\x1b[2J",
    "a\nb",
    'x role="',
    "../..",
    "-",
    "--",
    "é",
    "\u202e",
    "none",
    "a,b",
    "a,b,c",
    "x" * 3000,
]
MEASURES = [
    "accuracy", "ece", "nll", "brier", "gap", "ece:bins=5", "ece:bins=0", "ece:bins=abc", "ece:bins=1000000000", "eec",
    "ece:", ":", "auroc", "mce:scheme=mass", "ece:bins=5,bins=6", "os:system", "./x.py", "classwise",
]  # fmt: skip
CALIBRATORS = [
    "identity", "temperature", "histogram", "isotonic", "platt", "temperature+isotonic", "+", "nope", "auto+x",
    "histogram:bins=0", "temperature:x=1", "./x.py",
]  # fmt: skip
FIGURES = [
    "reliability", "confidence_density", "reliability:bins=5", "reliability:bins=-1", "risk_coverage", "bins_sweep",
    "nope", "before_after", "training_curves", "worst_classes", "",
]  # fmt: skip
COLUMN_OPTIONS = [
    "--score-column", "--label-column", "--confidence-column", "--correct-column", "--positive",
    "--classes", "--weight-column", "--cluster-column", "--group-column", "--id-column", "--missing",
]  # fmt: skip
COLUMN_NAMES = ["label", "logit_0", "prob_1", "id", "group", "feature_0", "labels", "drop", "wrong", "1", "a", "b"]
LIMITS = [
    "ece=0.1",
    "accuracy=0.5",
    "ece=",
    "=1",
    "ece=nan",
    "ece:bins=5=0.2",
    "ece:bins=5",
    "nope=1",
    "ece=inf",
    "gap=x",
]


def run(arguments: list[str]) -> tuple[int, str, str]:
    """`calibrant` with these arguments in this process: exit code, what it printed, what it complained of."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["calibrant", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


class Typist:
    """Writes one command at a time, with the files it needs."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng, self.folder = rng, folder
        self.p = right_predictions(rng)
        self.clean = True  # nothing hostile yet
        for suffix in SUFFIXES:
            self.p.save(folder / f"right{suffix}")

    def one(self, choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def file(self) -> str:
        """A right file mostly."""
        if self.chance(0.75):
            return str(self.folder / f"right{self.one(SUFFIXES)}")
        self.clean = False
        if self.chance(0.6):
            return str(hostile_file(self.one(SUFFIXES), self.rng, self.folder)[0])
        return self.one(
            [str(self.folder), "no.npz", "/dev/null", str(self.folder / "no*.csv"), "p.pkl", "x" * 400 + ".npz", ""]
        )

    def value(self, right: list[str], wrong: list[str]) -> str:
        if self.chance(0.85):
            return self.one(right)
        self.clean = False
        return self.one(wrong)

    def command(self) -> list[str]:
        names = ["measure", "compare", "check", "fit", "apply", "plot", "report"]
        name = names[self.rng.choice(len(names), p=[0.24, 0.16, 0.18, 0.16, 0.12, 0.12, 0.02])]
        typed = [name, *getattr(self, f"_{name}")()]
        if self.chance(0.12):
            self.clean = False
            option = self.one(COLUMN_OPTIONS)
            typed += [option] if option.endswith("-score") else [option, self.one([*COLUMN_NAMES, *WORDS])]
        if self.chance(0.2):
            typed += ["--seed", self.value(["0", "7"], NUMBERS)]
        if self.chance(0.06):
            self.clean = False
            typed.insert(int(self.rng.integers(len(typed) + 1)), self.one(WORDS))
        if self.chance(0.04):
            self.clean = False
            typed.pop(int(self.rng.integers(len(typed))))
        if self.chance(0.5) and name != "export":
            typed.append("--json")
        return typed

    def _resamples(self) -> list[str]:
        return ["--resamples", self.value(["20", "40"], [n for n in NUMBERS if len(n) < 9])]

    def _measure(self) -> list[str]:
        typed = [self.file(), "-m", "accuracy", *self._resamples()]
        if self.chance(0.5):
            typed += ["-m", self.value(MEASURES[:6], MEASURES)]
        if self.chance(0.2):
            typed += ["--confidence", self.value(["0.9", "0.5"], NUMBERS)]
        if self.chance(0.15):
            self.clean = False
            typed += ["--stream", "--override", f"batch_rows={self.one(NUMBERS)}"]
        if self.chance(0.1):
            self.clean = False
            typed += [self.one(["--set", "--ood"]), self.one([*WORDS, "benchmark102", self.file()])]
        return typed

    def _compare(self) -> list[str]:
        return [self.file(), self.file(), "-m", self.value(MEASURES[:6], MEASURES), *self._resamples()]

    def _check(self) -> list[str]:
        limit = self.value(LIMITS[:2], LIMITS)
        side = "--min" if limit == LIMITS[1] else "--max" if limit == LIMITS[0] else self.one(["--max", "--min"])
        return [self.file(), side, limit, "--resamples", "20"]

    def _fit(self) -> list[str]:
        typed = [self.file(), "--with", self.value(CALIBRATORS[:4], CALIBRATORS), "--resamples", "5"]
        if self.chance(0.6):
            typed += [
                "--out",
                self.value([str(self.folder / "map.json")], [str(self.folder), "/dev/null", "\x00", *WORDS]),
            ]
        if self.chance(0.3):
            typed += ["--test", self.file()]
        if self.chance(0.3):
            self.clean = False
            typed.append(self.one(["--cross-fit", "--keep-argmax", "--by-group", "--override=allow_few_rows=true"]))
        return typed

    def _apply(self) -> list[str]:
        self.clean = False
        map_file = self.folder / "made.json"
        if self.chance(0.8):
            code, *_ = run(
                [
                    "fit",
                    str(self.folder / "right.npz"),
                    "--with",
                    "temperature",
                    "--resamples",
                    "5",
                    "--out",
                    str(map_file),
                ]
            )
            assert code == 0
            if self.chance(0.6):
                map_file.write_bytes(mutated(map_file.read_bytes(), self.rng))
        out = self.folder / self.one(["q.npz", "q.csv", "q.parquet", "q.txt", "[/a].npz", "x\x1b.csv"])
        return [str(map_file), self.file(), "--out", str(out)]

    def _plot(self) -> list[str]:
        typed = [self.value(FIGURES[:2], FIGURES), self.file()]
        if self.chance(0.3):
            typed += ["--names", self.value(["a"], WORDS)]
        if self.chance(0.2):
            self.clean = False  # not every figure has bins
            typed[0] += f":bins={self.one(['5', *NUMBERS])}"
        if self.chance(0.06):
            typed += ["--out", str(self.folder / self.value(["f.svg", "[/a].html"], ["f.gif", "f"]))]
        return typed

    def _report(self) -> list[str]:
        typed = [self.file(), "--with", "identity", "--override", "resamples=40"]
        for option, words in {
            "--names": WORDS,
            "--group-column": [*WORDS, "group"],
            "--cost": [*WORDS, "wrong=5"],
            "--override": [f"title={word}" for word in WORDS],
        }.items():
            if self.chance(0.3):
                self.clean = False
                typed += [option, self.one(words)]
        return [*typed, "--out", str(self.folder / self.one(["r.md", "r.json", "[/a].md", "r.html"]))]


def accuracy_of(p: Predictions) -> float:
    """By another way than the measure's: the share of rows whose first largest score is that of the label."""
    return float(
        np.mean([row.tolist().index(max(row.tolist())) == label for row, label in zip(p.values, p.labels, strict=True)])
    )


def ended(rng: np.random.Generator, folder: Path) -> str:
    """Type one command; how it ended."""
    typist = Typist(rng, folder)
    typed = typist.command()
    code, out, err = run(typed)
    lines = [line for line in err.splitlines() if line and not line.startswith("warning: ")]
    assert "Traceback" not in err, (typed, err)
    assert not any(c in out + err for c in "\x1b\x07\x00"), (typed, out, err)
    if code == 2:
        usage = bool(lines) and lines[-1].startswith("Error: ")  # of the parser of commands, after how to use it
        assert usage or (len(lines) == 1 and lines[0].startswith("error: ")), (typed, err)
        assert not typist.clean, (typed, err)
        return "refused"
    assert code == 0 or (code == 1 and typed[0] == "check"), (typed, code, err)
    if "--json" in typed and out.strip().startswith(("[", "{")):
        document = json.loads(out)
        if typist.clean and typed[0] == "measure":
            assert document[0]["value"] == accuracy_of(typist.p), typed
    return "right"
