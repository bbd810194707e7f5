"""A contestant of benchmarks/compare.py that computes nothing: fake_contestant.py STYLE MILLISECONDS"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks/compare"))

import protocol  # noqa: E402

STYLE, SECONDS = sys.argv[1], float(sys.argv[2]) / 1000


def prepare(row, check, weights):
    print("what libraries print", row)  # must not come between the answers
    if STYLE == "refuses":
        raise ValueError("two\nlines")

    def step():
        if STYLE == "ends" and not check:
            sys.stderr.write("the reason\n")
            sys.stderr.flush()
            raise SystemExit(3)
        if STYLE == "hangs" and not check:
            time.sleep(60)
        time.sleep(SECONDS)

    def numbers(count):
        made = [1.0 + 0.1 * i for i in range(count)]
        if STYLE == "differs" and count > 1:
            made[-1] *= 1.001
        return [float("nan")] if STYLE == "nan" else made

    return protocol.Prepared(step, numbers, 10 if STYLE == "tiny" else 1)


protocol.serve(prepare)
