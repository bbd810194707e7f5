#!/usr/bin/env python3
"""Draws one chart, as SVG, of the results that compare.py stored: the speed of each row relative to
the fastest peer.

    benchmarks/chart.py benchmarks/results/compare_....json [more.json ...] -o docs/results/compare.svg [--only training]

If several files contain a row, the last one counts. Bars: default settings. Marks: the fastest
available option, where it differs. A bar's title, which browsers show where the chart is part of a
page, has the milliseconds.
"""

import argparse
import html
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "compare"))

import report  # noqa: E402

BAR, GAP, LEFT, RIGHT, TOP, WIDTH = 18, 8, 310, 240, 48, 420


def title_of(row):
    work, kind, size, *length = row.split("/")
    words = [work.replace("_", " "), kind, ("batch " if report.contestants.group_of(row) != "operations" else "") + size]
    return ", ".join(words + [f"length {each}" for each in length])


def chart(summaries, about):
    """Draws the SVG of the summaries (report.py) that have a ratio."""
    most = max([2.0, *(max(s["ratio"], s["best_ratio"]) for s in summaries)])
    step = max(1, math.ceil(most / 8))
    scale, height = WIDTH / most, TOP + len(summaries) * (BAR + GAP) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="100%" height="100%" fill="#ffffff"/>',
             f'<text x="12" y="18" font-size="14">Times as fast as the fastest of PyTorch, TensorFlow and JAX</text>',
             f'<text x="12" y="36" fill="#666666">{html.escape(about)}</text>']
    for tick in range(0, math.floor(most) + 1, step):
        x = LEFT + tick * scale
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - 24}" stroke="#dddddd"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 8}" text-anchor="middle" fill="#666666">{tick}</text>')
    for i, s in enumerate(summaries):
        y = TOP + i * (BAR + GAP)
        colour = "#2a6f97" if s["ratio"] >= 1 else "#b5651d"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{html.escape(title_of(s["row"]))}</text>')
        times = f"{1000 * s['default_time']:.3g} ms, {s['peer']} {1000 * s['peer_time']:.3g} ms"
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{s["ratio"] * scale:.1f}" height="{BAR}" fill="{colour}">'
                     f'<title>{html.escape(times)}</title></rect>')
        label, end = f"{s['ratio']:.2f}", s["ratio"]
        if s["best_ratio"] > s["ratio"]:
            x, end = LEFT + s["best_ratio"] * scale, s["best_ratio"]
            parts.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + BAR}" stroke="#012a4a" stroke-width="3"/>')
            label += f" ({s['best_ratio']:.2f} {report.way_of_ours(s['best'])})"
        parts.append(f'<text x="{LEFT + end * scale + 6:.1f}" y="{y + 13}">{html.escape(label)}, {html.escape(s["peer"])}</text>')
    one = LEFT + scale
    parts.append(f'<line x1="{one:.1f}" y1="{TOP}" x2="{one:.1f}" y2="{height - 24}" stroke="#333333" stroke-dasharray="3 3"/>')
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="PATTERN")
    a = parser.parse_args()
    stored = [json.loads(file.read_text(encoding="utf-8")) for file in a.files]
    rows = {row: results for each in stored for row, results in each["rows"].items()}
    summaries = [s for row, results in rows.items() if re.search(a.only, row) and (s := report.summary(row, results))["ratio"]]
    if not summaries:
        sys.exit("chart.py: no row has a ratio")
    last = stored[-1]
    about = f"{last['machine']['processor']}, {last['options']['threads']} threads, {last['date']}"
    a.out.write_text(chart(summaries, about), encoding="utf-8")


if __name__ == "__main__":
    main()
