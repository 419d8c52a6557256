"""Draw docs/reliability.svg, the picture of the first page, from the predictions that come with the package.

Usage: python docs/picture.py
"""

from pathlib import Path

import calibrant as cal
from calibrant.core.files import write_whole
from calibrant.core.statistics.temperature import find_temperature
from calibrant.data import DEMO_TEST, DEMO_VAL

SIZE, LEFT, TOP = 260, 56, 56
BLUE, RED, LIGHT, GREY = "#0072b2", "#d55e00", "#56b4e9", "#8a8a8a"


def panel(p: cal.Predictions, title: str, x: int) -> list[str]:
    """One reliability diagram: accuracy in blue, the gap in red (too sure) or light blue (not sure enough)."""
    bins = p.top_label.bins(10)
    ece = cal.measure(p, "ece")

    def at(value: float) -> float:
        return TOP + SIZE * (1 - value)

    parts = [
        f'<text x="{x}" y="{TOP - 30}" font-weight="bold">{title}</text>',
        f'<text x="{x}" y="{TOP - 12}">ECE {ece.value:.3f} [{ece.low:.3f}, {ece.high:.3f}]</text>',
        f'<rect x="{x}" y="{TOP}" width="{SIZE}" height="{SIZE}" fill="none" stroke="{GREY}"/>',
    ]
    for m, (count, confidence, accuracy) in enumerate(zip(bins.count, bins.confidence, bins.accuracy, strict=True)):
        if count == 0:
            continue
        left, wide = x + SIZE * m / 10 + 2, SIZE / 10 - 4
        low, high = sorted((accuracy, confidence))
        colour = RED if confidence > accuracy else LIGHT
        parts.append(f'<rect x="{left}" y="{at(accuracy)}" width="{wide}" height="{SIZE * accuracy}" fill="{BLUE}"/>')
        parts.append(f'<rect x="{left}" y="{at(high)}" width="{wide}" height="{SIZE * (high - low)}" fill="{colour}"/>')
    parts.append(f'<path d="M{x} {TOP + SIZE}L{x + SIZE} {TOP}" stroke="{GREY}" stroke-dasharray="5 4" fill="none"/>')
    for tick in (0, 0.5, 1):
        parts.append(f'<text x="{x + SIZE * tick}" y="{TOP + SIZE + 18}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{x + SIZE / 2}" y="{TOP + SIZE + 36}" text-anchor="middle">confidence</text>')
    return parts


def main() -> None:
    test, val = cal.Predictions.load(DEMO_TEST), cal.Predictions.load(DEMO_VAL)
    T = find_temperature(val).T
    second = LEFT + SIZE + 60
    width, height = second + SIZE + 20, TOP + SIZE + 50
    body = panel(test, "As trained", LEFT) + panel(test.with_temperature(T), f"After one number, T = {T:.2f}", second)
    label = (
        "Two reliability diagrams of the demo network: overconfident as trained, calibrated after temperature scaling."
    )
    middle = f"16,{TOP + SIZE / 2}"
    axis = f'<text x="16" y="{TOP + SIZE / 2}" transform="rotate(-90 {middle})" text-anchor="middle">accuracy</text>'
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{label}">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n{axis}\n' + "\n".join(body) + "\n</svg>\n"
    )
    write_whole(Path(__file__).parent / "reliability.svg", lambda stream: stream.write(svg.encode()))


if __name__ == "__main__":
    main()
