#!/usr/bin/env python3
"""The README's figure: reading and writing Zarr, squall and its peers, as an SVG made of the JSON lines of one benchmark run.

bench/plot.py bench/zarr.jsonl docs/zarr.svg
"""

import json
import sys

IMPLS = {"squall": "#1b6ca8", "zarrs": "#e08e45", "tensorstore": "#8a9a5b", "zarr-python": "#b0a8b9"}
TASKS = [
    ("cube_raw", "all", "raw cube"),
    ("cube_zstd", "all", "zstd cube"),
    ("cube_sharded", "all", "sharded cube"),
    ("cube_sharded", "inner", "500 inner chunks"),
    ("weather", "all", "weather, Blosc"),
    ("weather", "chunks", "… chunk by chunk"),
    ("series", "series", "200 point series"),
    ("cube_zstd", "roundtrip", "zstd cube, there and back"),
]
BAR, GAP, LEFT, WIDTH, TOP = 11, 13, 172, 430, 46


def bars(rows):
    """Of each task: its name, and how many times as long as squall each implementation took."""
    seconds = {(r["store"], r["task"], r["impl"]): r["seconds"] for r in rows}
    for store, task, name in TASKS:
        own = seconds.get((store, task, "squall"))
        if own:
            yield name, [(impl, seconds[store, task, impl] / own) for impl in IMPLS if (store, task, impl) in seconds]


def svg(rows):
    tasks = list(bars(rows))
    longest = max(ratio for _, list_ in tasks for _, ratio in list_)
    out, y = [], TOP
    for name, list_ in tasks:
        out.append(f'<text x="{LEFT - 8}" y="{y + len(list_) * BAR / 2 + 4}" text-anchor="end">{name}</text>')
        for impl, ratio in list_:
            width = WIDTH * ratio / longest
            out.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 1}" fill="{IMPLS[impl]}"/>')
            if impl != "squall":
                out.append(f'<text x="{LEFT + width + 4:.1f}" y="{y + 9}" class="n">{ratio:.1f}</text>')
            y += BAR
        y += GAP
    legend, x = [], LEFT
    for impl, colour in IMPLS.items():
        legend.append(f'<rect x="{x}" y="24" width="10" height="10" fill="{colour}"/><text x="{x + 14}" y="33">{impl}</text>')
        x += 34 + 7 * len(impl)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 48} {y + 4}" font-family="sans-serif" font-size="12">'
    style = "<style>text{fill:#333}.n{font-size:10px}@media(prefers-color-scheme:dark){text{fill:#ccc}}</style>"
    title = f'<text x="{LEFT}" y="14" font-weight="bold">Time taken, in multiples of squall\'s</text>'
    return "\n".join([head, style, title, *legend, *out, "</svg>"]) + "\n"


def main():
    source, target = sys.argv[1:]
    with open(source) as f:
        rows = [json.loads(line) for line in f]
    with open(target, "w") as f:
        f.write(svg(rows))


if __name__ == "__main__":
    main()
