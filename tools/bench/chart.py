"""A chart of ratios as SVG text: for each case, how many times the time of s2s each of the others
takes, on a logarithmic scale.
"""

from __future__ import annotations

import math
from html import escape

OTHERS = {
    "/hand": ("by hand", "#4c72b0"),
    "jax": ("JAX", "#dd8452"),
    "torch": ("PyTorch", "#55a868"),
    "autograd": ("autograd", "#8172b3")
}
LEFT, WIDTH, BAR, GAP, TOP = 130, 640, 7, 12, 40


def bars(rows: list[dict]) -> str:
    """One group of bars for each row of the table of run.py; a bar to the left of 1 is faster than
    s2s.
    """
    ratios = [{
        name: (1 / r[name] if name == "/hand" else r[name]) if r[name] else None
        for name in OTHERS
    } for r in rows]
    found = [x for each in ratios for x in each.values() if x] or [1.0]
    low, high = min(0, math.floor(math.log10(min(found)))), max(1,
                                                                math.ceil(math.log10(max(found))))

    def place(x: float) -> float:
        return LEFT + WIDTH * (math.log10(x) - low) / (high - low)

    group = BAR * len(OTHERS) + GAP
    height = TOP + group * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{LEFT + WIDTH + 60}" height="{height}" fill="white"/>'
    ]
    for k, (label, colour) in enumerate(OTHERS.values()):
        parts += [f'<rect x="{LEFT + 110 * k}" y="12" width="12" height="12" fill="{colour}"/>',
                  f'<text x="{LEFT + 110 * k + 17}" y="22">{label}</text>']
    for power in range(low, high + 1):
        x = place(10.0**power)
        parts += [
            f'<line x1="{x:.1f}" y1="{TOP - 6}" x2="{x:.1f}" y2="{height - 34}" stroke="{"black" if power == 0 else "#dddddd"}"/>',
            f'<text x="{x:.1f}" y="{height - 20}" text-anchor="middle">{10.0**power:g}</text>'
        ]
    for j, (r, each) in enumerate(zip(rows, ratios)):
        y = TOP + group * j
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + group / 2 - 2:.1f}" text-anchor="end">{escape(r["case"])}</text>'
        )
        for k, (name, (_, colour)) in enumerate(OTHERS.items()):
            if each[name]:
                start, end = sorted((place(1.0), place(each[name])))
                parts.append(
                    f'<rect x="{start:.1f}" y="{y + BAR * k}" width="{max(end - start, 1):.1f}" height="{BAR - 1}" fill="{colour}"/>'
                )
    parts.append(
        f'<text x="{LEFT + WIDTH / 2}" y="{height - 4}" text-anchor="middle">time of value and gradient, in units of s2s\'s</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"
