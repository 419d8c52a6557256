"""Pictures of a network of NATS-Bench: its cell as text of 80 columns and as SVG, its layers in a line."""

from calibrant.core.nats import BEST, EDGES, read_cell, read_widths

STEP = 24  # columns between two nodes
NODES = (0, 1, 2, 3)
COLOURS = {"skip_connect": "#6b7280", "nor_conv_1x1": "#0891b2", "nor_conv_3x3": "#1d4ed8", "avg_pool_3x3": "#b45309"}


def cell_text(cell: str) -> str:
    """The cell, nodes from left to right, an edge a line; edges with `none` are left out.

    >>> print(cell_text("|nor_conv_1x1~0|+|none~0|none~1|+|skip_connect~0|none~1|avg_pool_3x3~2|"))
    0                       1                       2                       3
    ├──── nor_conv_1x1 ────▶┤                       │                       │
    ├──────────────────────────── skip_connect ────────────────────────────▶┤
    │                       │                       ├──── avg_pool_3x3 ────▶┤
    <BLANKLINE>
    none: 0 to 2, 1 to 2, 1 to 3
    """
    edges = list(zip(read_cell(cell), EDGES, strict=True))
    lines = ["".join(f"{node:<{STEP}}" for node in NODES).rstrip()]
    lines += [_edge_line(name, source, to) for name, (source, to) in edges if name != "none"]
    gone = [f"{source} to {to}" for name, (source, to) in edges if name == "none"]
    return "\n".join(lines + (["", f"none: {', '.join(gone)}"] if gone else []))


def _edge_line(name: str, source: int, to: int) -> str:
    line = [" "] * (STEP * NODES[-1] + 1)
    for node in NODES:
        line[node * STEP] = "│"
    inside = (to - source) * STEP - 2
    line[source * STEP : to * STEP + 1] = f"├{f' {name} ':─^{inside}}▶┤"
    return "".join(line)


def size_text(channels: str) -> str:
    """The layers of a network in the size space, with their widths.

    >>> print(size_text("8:8:8:16:32"))
    image ─▶ stem 8 ─▶ cell 8 ─▶ halve 8 ─▶ cell 8 ─▶ halve 16 ─▶ cell 32 ─▶ head
    """
    c1, *rest = read_widths(channels)
    kinds = ("halve", "cell", "halve", "cell")
    layers = [f"{kind} {width}" for kind, width in zip(kinds, rest, strict=True)]
    return " ─▶ ".join(["image", f"stem {c1}", f"cell {c1}", *layers, "head"])


def cell_svg(cell: str) -> str:
    """The cell as SVG: nodes on a line, edges as arcs above it."""
    place = {node: 60 + 200 * node for node in NODES}
    parts = [_arc(name, place[source], place[to]) for name, (source, to) in _list_paths(cell)]
    for node, x in place.items():
        parts.append(f'<circle cx="{x}" cy="250" r="18" fill="#f3f4f6" stroke="#111827"/>')
        parts.append(f'<text x="{x}" y="255" text-anchor="middle">{node}</text>')
    body = "\n".join(parts)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 290" width="720" height="290" role="img" '
        'font-family="sans-serif" font-size="14">\n'
        f"<title>{cell or BEST}</title>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 8 4 0 8z"/></marker></defs>\n{body}\n</svg>\n'
    )


def _list_paths(cell: str) -> list[tuple[str, tuple[int, int]]]:
    return [(name, edge) for name, edge in zip(read_cell(cell), EDGES, strict=True) if name != "none"]


def _arc(name: str, start: int, end: int) -> str:
    """The arc of an edge; longer edges rise higher, so that no two labels meet."""
    rise = {200: 0, 400: 110, 600: 220}[end - start]
    middle, top = (start + end) // 2, 232 - rise
    path = f"M{start + 13} 238 Q{middle} {232 - 2 * rise} {end - 13} 238"
    arc = f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="2" marker-end="url(#tip)"/>'
    return f'{arc}\n<text x="{middle}" y="{top - 8}" text-anchor="middle" fill="{COLOURS[name]}">{name}</text>'
