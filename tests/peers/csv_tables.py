#!/usr/bin/env python3
"""csv_tables.py PROGRAM: tables of pandas, with nasty texts and numbers, go through our reader and writer and come back to pandas as they were."""

import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import numpy
    import pandas
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

PIECES = ['"', '""', ",", ";", "\t", "\n", "\r\n", " ", "", "a", "NA", "\u00e9\u4e2d\U0001f600", "'", "\\", "1e5", "\ufeff", "#", "\u2028"]


def table(seed):
    draw, numbers = random.Random(seed), numpy.random.default_rng(seed)
    rows = [0, 1, 2, 40, 3000][seed % 5]
    columns = {"text": ["".join(draw.choice(PIECES) for _ in range(draw.randrange(6))) for _ in range(rows)]}
    if seed % 3:
        bits = numbers.integers(0, 2**63, rows, dtype=numpy.uint64) * 2 + numbers.integers(0, 2, rows, dtype=numpy.uint64)
        doubles = bits.view(numpy.float64)
        doubles[~numpy.isfinite(doubles)] = -0.0
        columns["f64"] = doubles
        columns["f32"] = numbers.normal(size=rows).astype(numpy.float32)
        columns["i64, " + draw.choice(PIECES)] = bits.view(numpy.int64)
        columns["more"] = [draw.choice(PIECES) for _ in range(rows)]
    return pandas.DataFrame(columns)


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        source, copy = pathlib.Path(folder) / "in.csv", pathlib.Path(folder) / "out.csv"
        for seed in range(60):
            frame, separator = table(seed), ",;\t"[seed % 3]
            frame.to_csv(source, index=False, sep=separator, lineterminator=["\n", "\r\n"][seed % 2], encoding=["utf-8", "utf-8-sig"][seed % 2])
            done = subprocess.run([program, source, copy, separator], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"table {seed}: {done.stderr}")
            back = pandas.read_csv(copy, dtype=str, keep_default_na=False, lineterminator="\n", skip_blank_lines=False)
            for name in frame:
                texts = name in ("text", "more")
                same = name in back and len(back) == len(frame)
                if same:
                    read = back[name] if texts else numpy.array([frame[name].dtype.type(each) for each in back[name]], frame[name].dtype)
                    same = bool((numpy.asarray(read) == frame[name].to_numpy()).all())
                if not same:
                    sys.exit(f"table {seed}, column {name!r}:\n{back}\nexpected\n{frame}")
    print(f"60 tables of pandas {pandas.__version__}")


main(sys.argv[1])
