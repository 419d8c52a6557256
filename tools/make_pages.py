"""Write the pages that need no server: src/calibrant/app/pages/*.html, each one file.

Usage: python tools/make_pages.py   (a test proves that the pages are what this writes)
What is shown comes from the library: predictions and images of the package, the table of networks, its seven answers.
Templates, style and scripts are in tools/pages.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from scipy.special import expit

import calibrant as cal
from calibrant.core.curves.binning import Binning
from calibrant.core.files import write_whole
from calibrant.core.json import in_script
from calibrant.core.nats import EDGES, OPERATIONS
from calibrant.core.text.theme import RAMP
from calibrant.datasets import make as make_dataset
from calibrant.measures import make
from calibrant.nas import answers, questions, search
from calibrant.nas.table import open_table
from calibrant.reporting import pictures

SOURCES = Path(__file__).parent / "pages"
OUT = Path(__file__).parents[1] / "src" / "calibrant" / "app" / "pages"
PAGES = (("understand.html", "Understand"), ("quiz.html", "Quiz"), ("architectures.html", "Architectures"))
DECIMALS = 6  # of computed numbers, so that every machine writes the same page
ENVIRONMENT = Environment(
    loader=FileSystemLoader(SOURCES), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
)


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name, text in build_pages().items():
        write_whole(OUT / name, lambda stream, text=text: stream.write(text.encode()))
        print(f"{OUT / name}: {len(text):,} characters")


def build_pages() -> dict[str, str]:
    """The text of every page, by file name."""
    return {"understand.html": understand(), "quiz.html": quiz(), "architectures.html": architectures()}


def render(name: str, data: dict[str, Any], **values: Any) -> str:
    """One file: template, style, data, and the script, which alone may run."""
    scripts = [(SOURCES / f"{part}.js").read_text() for part in ("mathematics", "drawing", Path(name).stem)]
    own = SOURCES / f"{Path(name).stem}.css"
    css = [(files("calibrant.reporting") / "page.css").read_text(), (SOURCES / "style.css").read_text()]
    script = "\n".join(scripts)
    template = ENVIRONMENT.get_template(f"{name}.jinja")
    return template.render(
        this=name,
        pages=PAGES,
        theme=Markup(pictures.theme_css()),
        css=Markup("\n".join([*css, own.read_text() if own.exists() else ""])),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data={key: Markup(in_script(value)) for key, value in data.items()},
        **values,
    )


# -- understand ---------------------------------------------------------------------------------------

NETWORK_ROWS = 1000
SCALE = 1000  # logits are stored as whole numbers of thousandths
PICTURES = (  # figure 1 of Singh, Bay, Sengupta, Mirabile, with means that have its ECE and AUROC (a test checks them)
    {"title": "a: calibrated, not refined", "right": 0.6756, "wrong": 0.4429, "concentration": 4, "accuracy": 0.5},
    {"title": "b: refined, not calibrated", "right": 0.9751, "wrong": 0.3789, "concentration": 4, "accuracy": 0.5},
    {"title": "c: nearer to both", "right": 0.7839, "wrong": 0.3755, "concentration": 3, "accuracy": 0.5},
    {"title": "d: a trained network", "right": 0.9835, "wrong": 0.9041, "concentration": 15, "accuracy": 0.93},
    {"title": "e: with label smoothing", "right": 0.8978, "wrong": 0.8057, "concentration": 15, "accuracy": 0.93},
)


def understand() -> str:
    val, test = cal.example("fashion")
    few = test.take(range(NETWORK_ROWS))
    codes = np.rint(few.values.astype(np.float64) * SCALE).astype("<i2")
    network = {
        "logits": base64.b64encode(codes.tobytes()).decode(),
        "scale": SCALE,
        "classes": make_dataset("fashion_mini").load("test").classes,
        "labels": few.labels.tolist(),
        "T": round(cal.fit(val, "temperature").parameters["T"], DECIMALS),
    }
    words = (
        f"the example that comes with calibrant, {NETWORK_ROWS:,} of its test images. Its temperature was fitted on "
        f"{val.n:,} other images."
    )
    networks = open_table().select("space", "arch").unique().height
    data = {"network": network, "pictures": PICTURES}
    return render("understand.html", data, example={"words": words}, pictures=PICTURES, networks=networks)


# -- quiz ---------------------------------------------------------------------------------------------

BANDS = 5  # of the network's confidence, from 50 to 100 %
PER_BAND = 8  # questions; a game draws two of each band
SEED = 0


def quiz() -> str:
    """Questions: images whose class is one of the network's two most probable ones; which of the two is it?

    Images are chosen by the network's confidence alone, never by whether it is right: so its diagram stays fair.
    """
    part, test = make_dataset("fashion_mini").load("test"), cal.example("fashion")[1]
    logits = test.values.astype(np.float64)
    two = np.argsort(-logits, axis=1)[:, :2]  # (n, 2)
    confidence = expit(logits[np.arange(test.n), two[:, 0]] - logits[np.arange(test.n), two[:, 1]])
    asked = (two == test.labels[:, None]).any(axis=1)
    right = two[:, 0] == test.labels
    all_rows = cal.Predictions.from_confidence(confidence[asked], right[asked])
    shipped = {int(i) - test.n: place for place, i in enumerate(part.ids) if test.n <= i < 2 * test.n}  # by row of test
    rng, questions_ = np.random.default_rng(SEED), []
    for band in range(BANDS):
        low, high = 0.5 + band / (2 * BANDS), 0.5 + (band + 1) / (2 * BANDS)
        rows = [row for row in sorted(shipped) if asked[row] and low < confidence[row] <= high]
        for row in sorted(rng.choice(rows, PER_BAND, replace=False)):
            options = sorted(int(c) for c in two[row])
            questions_.append(
                {
                    "image": base64.b64encode(part.images[shipped[row], :, :, 0].tobytes()).decode(),
                    "options": [part.classes[c] for c in options],
                    "answer": options.index(int(test.labels[row])),
                    "network": options.index(int(two[row, 0])),
                    "confidence": round(float(confidence[row]), 4),
                    "band": band,
                }
            )
    binned = all_rows.curve.bins(Binning(2 * BANDS))
    keys = {"count": binned.count, "confidence": binned.confidence, "accuracy": binned.accuracy}
    network = {
        "rows": all_rows.n,
        "of": test.n,
        "says": round(float(all_rows.score.mean()), DECIMALS),
        "right": round(float(all_rows.outcome.mean()), DECIMALS),
        "ece": round(make(f"ece:bins={2 * BANDS}")(all_rows), DECIMALS),
        "bins": [
            {key: round(float(values[m]), DECIMALS) for key, values in keys.items()} for m in range(BANDS, 2 * BANDS)
        ],
    }
    return render("quiz.html", {"questions": questions_, "network": network}, network=network)


# -- architectures ------------------------------------------------------------------------------------

WORDS = ("space", "config", "arch", "data", "constant")  # columns that are no colour
LEFT_OUT = ("unique", "seed", "configuration", "made_with")
GROUPS = (  # of the menu of colours: title, what its columns start with or are
    ("Network", ("accuracy", "params", "flops", "T", "hcs", "correct_confidence", "incorrect_confidence", "train_")),
    ("Before temperature scaling", ("pre_",)),
    ("After temperature scaling", ("post_",)),
    ("Other data (AUROC)", ("auc_",)),
    ("Accuracy under attack", ("fgsm_", "pgd_", "square_")),
    ("Accuracy under corruption", ("",)),
)
DIGITS = 5  # significant ones of the numbers in the page


def architectures() -> str:
    table = open_table()
    numbers = [name for name in table.columns if name not in (*WORDS, *LEFT_OUT)]
    columns = {name: [rounded(value) for value in table[name].to_list()] for name in numbers}
    data = {
        **{name: table[name].to_list() for name in WORDS},
        "columns": columns,
        "front": front_rows(),
        "edges": EDGES,
        "operations": OPERATIONS,
    }
    asked = answers.answer_all(answers.read_networks())
    return render(
        "architectures.html",
        {"table": data},
        groups=grouped(numbers),
        rows=table.height,
        networks=table.select("space", "arch").unique().height,
        answers=[(one, questions.find(one.question)) for one in asked],
        about=answers.ABOUT,
        ramp=Markup(ramp_css()),
    )


def rounded(value: float | None) -> float | int | None:
    if value is None or value == 0:
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() else short


def grouped(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The columns under the titles of the menu; the last group takes all others."""
    left, result = list(names), []
    for title, starts in GROUPS:
        own = [
            name
            for start in starts
            for name in left
            if name.startswith(start) and (start.endswith("_") or start in ("", name))
        ]
        left = [name for name in left if name not in own]
        result.append((title, own))
    return result


def front_rows() -> list[int]:
    """Rows on the Pareto front of accuracy against ECE, of every space and data set."""
    table = answers.read_networks()
    keys = list(zip(table["space"], table["data"], table["arch"], strict=True))
    pairs = dict.fromkeys((space, data) for space, data, _ in keys)
    fronts = [(pair, search.front(table, space=pair[0], data=pair[1])) for pair in pairs]
    return [keys.index((*pair, one["arch"])) for pair, front in fronts for one in front]


def ramp_css() -> str:
    """The colours of numbers, light and dark, under the names --r0 to --r4."""
    named = {key: " ".join(f"--r{i}: {colour};" for i, colour in enumerate(RAMP[key])) for key in ("light", "dark")}
    return (
        f":root {{ {named['light']} }}\n@media screen and (prefers-color-scheme: dark) "
        f"{{ :root:not([data-theme=light]) {{ {named['dark']} }} }}\n:root[data-theme=dark] {{ {named['dark']} }}"
    )


if __name__ == "__main__":
    main()
