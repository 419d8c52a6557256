"""`python -m benchmarks [topic ...]`: all topics write docs/benchmarks.md; some of them only print."""

import argparse
import sys
import traceback
import warnings
from importlib import import_module
from pathlib import Path
from time import perf_counter

from benchmarks._machine import facts, load
from benchmarks._page import Section, page

HERE = Path(__file__).parent
TOPICS = sorted(file.stem for file in HERE.glob("*.py") if not file.stem.startswith("_"))
PAGE = HERE.parent / "docs" / "benchmarks.md"


def main() -> None:
    arguments = _parse()
    warnings.simplefilter("ignore")  # the peers'
    load_before = load()
    topics = arguments.topics or TOPICS
    sections = [section for topic in topics if (section := _run(topic, arguments.smoke))]
    text = page(sections, facts(load_before), smoke=arguments.smoke)
    whole = not arguments.topics and not arguments.smoke
    out = arguments.out or (PAGE if whole else None)
    failed = len(sections) < len(topics)  # the page of before is kept then
    if out is None or failed:
        print(text)
        sys.exit(int(failed))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    for name, picture in (item for section in sections for item in section.figures.items()):
        (out.parent / name).write_text(picture, encoding="utf-8")
    print("\n".join(target.line for section in sections for target in section.targets))
    print(f"written: {out}", file=sys.stderr)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("topics", nargs="*", metavar="topic", help=f"any of {', '.join(TOPICS)}; all without one")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes, one round: does it run?")
    parser.add_argument("--out", type=Path, help="the page to write")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.topics) - set(TOPICS))
    if unknown:
        parser.error(f"no topic {', '.join(unknown)}; there are {', '.join(TOPICS)}")
    return arguments


def _run(topic: str, smoke: bool) -> Section | None:
    """The results; None, and a traceback, where the topic failed: the others are worth their minutes all the same."""
    start = perf_counter()
    try:
        section: Section = import_module(f"benchmarks.{topic}").run(smoke=smoke)
    except Exception:
        traceback.print_exc()
        print(f"{topic}: FAILED", file=sys.stderr)
        return None
    print(f"{topic}: {perf_counter() - start:.0f} s", file=sys.stderr)
    return section


if __name__ == "__main__":
    main()
