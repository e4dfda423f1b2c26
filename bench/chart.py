"""The end-to-end results as SVG: a row for each save, a mark for each contestant, log scale.

Text and lines take the colours of the reader's light or dark theme.
"""

import math
from xml.sax.saxutils import escape

from text import duration, tensor

ROW, TOP, LEFT, RIGHT, PLOT = 20, 64, 300, 30, 590
TITLE = "Time of one save: left is faster"
# Colours of Okabe and Ito, which colour-blind readers can tell apart; the shapes differ as well.
MARKS = {
    "ours": ("circle", "#009e73"),
    "peer": ("square", "#d55e00"),
    "np.save": ("up", "#0072b2"),
    "torch.save": ("down", "#cc79a7"),
    "safetensors": ("diamond", "#e69f00"),
    "write()": ("bar", "#7f7f7f"),
    "memcpy": ("bar", "#7f7f7f"),
}
LEGEND = {"write()": "write() or memcpy", "memcpy": None}
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d0d7de }
.span { stroke: #8c959f; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .grid { stroke: #30363d }
  .span { stroke: #6e7681 }
}
"""


def chart(rows):
    """Gives the SVG text of the end-to-end rows."""
    seconds = [value for row in rows for value in _positive(row).values()]
    first = math.floor(math.log10(min(seconds)))
    last = math.ceil(math.log10(max(seconds)))

    def x(value):
        return LEFT + PLOT * (math.log10(value) - first) / max(last - first, 1)

    bottom = TOP + ROW * len(rows)
    width, height = LEFT + PLOT + RIGHT, bottom + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{TITLE}">',
        f"<style>{STYLE}</style>",
        _text(LEFT, 20, TITLE, "start", "title"),
        *_legend(rows),
    ]
    for power in range(first, last + 1):
        at = x(10.0**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{bottom}"/>')
        parts.append(_text(at, bottom + 18, duration(10.0**power), "middle"))
    parts.append(_text(LEFT + PLOT / 2, bottom + 38, "time of one save, log scale", "middle"))
    for number, row in enumerate(rows):
        parts += _row(row, TOP + ROW * (number + 0.5), x)
    return "\n".join([*parts, "</svg>", ""])


def label(row):
    where = "" if row["framework"] == "pytorch" else "MindSpore "
    return f"{where}{row['task']}: {tensor(row)}"


def _row(row, y, x):
    yield f'<g class="row"><title>{escape(_tooltip(row))}</title>'
    yield _text(LEFT - 10, y + 4, label(row), "end")
    places = {name: x(value) for name, value in _positive(row).items()}
    if places:
        low, high = min(places.values()), max(places.values())
        yield f'<line class="span" x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}"/>'
    for name in reversed(MARKS):  # ours on top
        if name in places:
            yield _mark(name, places[name], y)
    yield "</g>"


def _positive(row):
    """A difference of two times (a graph with and without a save) may drown in the noise."""
    return {name: value for name, value in row["seconds"].items() if value > 0}


def _tooltip(row):
    taken = (f"{name} {duration(value)}" for name, value in row["seconds"].items())
    return f"{label(row)}: {', '.join(taken)}"


def _legend(rows):
    used = {name for row in rows for name in row["seconds"]}
    at = LEFT
    for name in MARKS:
        text = LEGEND.get(name, name)
        if name not in used or text is None:
            continue
        yield _mark(name, at + 6, 42)
        yield _text(at + 16, 46, text, "start")
        at += 34 + 7 * len(text)


def _text(x, y, text, anchor, kind=None):
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _mark(name, x, y):
    shape, colour = MARKS[name]
    corners = {
        "square": ((-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)),
        "up": ((0, -5.5), (5.5, 4.5), (-5.5, 4.5)),
        "down": ((0, 5.5), (5.5, -4.5), (-5.5, -4.5)),
        "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)),
        "bar": ((-1.5, -7), (1.5, -7), (1.5, 7), (-1.5, 7)),
    }
    about = f'class="mark" data-name="{escape(name)}" fill="{colour}"'
    if shape == "circle":
        return f'<circle {about} cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners[shape])
    return f'<polygon {about} points="{points}"/>'
