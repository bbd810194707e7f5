#!/usr/bin/env python3
"""Formats the measurements of the GPU benchmarks as tables, with PyTorch's times where it is
installed and sees the GPU.

  gpu_table.py LAYERS [--measured LAYERS] [--recurrent LINES] [--seconds 300]

LAYERS are the lines of bench_gpu_layers, which begin with this device's own ceilings, LINES those
of bench_gpu_recurrent. PyTorch runs the same layers in channels_last, cuDNN choosing its fastest
algorithm, TF32 on or off as the row says, timed in the same way (gpu_pytorch.py). What does not fit
into the given time is left out, and the table says so.
"""

import argparse
import contextlib
import pathlib
import re
import signal

import gpu_pytorch


class OutOfTime(BaseException):
    """Not an Exception, so that no code between the alarm and us mistakes it for an error of its
    own."""


@contextlib.contextmanager
def limited(seconds, what):
    """Leaves the block when its time is over."""

    def stop(*_):
        raise OutOfTime

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01))
    try:
        yield
    except OutOfTime:
        print(f"{what}: the time ({seconds:.0f} s) was over before everything was measured.\n")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def number(value):
    return "-" if value is None or value < 0 else f"{value:.1f}"


def share(floor, value):
    return f"{100 * floor / value:.0f}%" if value is not None and value > 0 else "-"


def first_line(error):
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def print_table(head, rows, left):
    """Prints a table in Markdown; `left` are the columns of text."""
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rows.insert(1, ["-" * w if i in left else "-" * (w - 1) + ":" for i, w in enumerate(widths)])
    for row in rows:
        cells = [text.ljust(w) if i in left else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |")
    print()


def read_lines(path, names, kinds):
    lines, notes = [], []
    for text in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if text.startswith("#"):
            notes.append(text[1:].strip())
        elif text.count("\t") == len(names) - 1:  # a run that was stopped may end in the middle of a line
            lines.append({n: kinds.get(n, str)(field) for n, field in zip(names, text.split("\t"))})
    return lines, notes


class Ceilings:
    """Rates that bench_gpu_layers measured, per microsecond."""

    def __init__(self, notes):
        found = re.search(r"copy ([\d.]+) TB/s, products in TFLOP/s: fp32 ([\d.]+), tf32 ([\d.]+)", " ".join(notes))
        if found is None:
            raise SystemExit("the lines of bench_gpu_layers lack the measured ceilings")
        self.bytes, fp32, tf32 = (1e6 * float(x) for x in found.groups())
        self.flop = {"fp32": fp32, "tf32": tf32}

    def floor(self, mode, flop, numbers):
        """Microseconds; `numbers` counts the floats that must be read or written."""
        return max(flop / self.flop[mode], 4 * numbers / self.bytes)


def layers(lines, measured, kernels, seconds):
    def key(line):
        return tuple(line[n] for n in ("layer", "pass", "batch", "mode"))

    by_trials = {key(line): line["ours"] for line in measured}
    with limited(seconds, "PyTorch on the layers"):
        for line in lines:
            line["PyTorch"] = kernels.layer(line) if kernels else None
    print("Kernels in microseconds, medians of CUDA events, cold level 2 cache. Floor: the larger of arithmetic and bytes\n"
          "over the measured rates. cuBLAS: a plain product of that size, for a convolution without the gathering of its\n"
          "operand. Measured: ours with TAPEGRAPH_GPU_PLANS=measured, whose plans are in gpu_layers_measured.log.\n")
    rows = []
    for line in lines:
        best = line["ours"] if line["ours"] >= 0 else line["cuBLAS"]
        rows.append([line["layer"], line["pass"], str(line["batch"]), line["mode"],
                     f"{line['M']} x {line['N']} x {line['K']}", number(line["floor"]), number(line["cuBLAS"]),
                     number(line.get("PyTorch")), number(line["ours"]), number(by_trials.get(key(line))),
                     share(line["floor"], best)])
    head = ["layer", "pass", "batch", "mode", "product M x N x K", "floor", "cuBLAS", "PyTorch", "ours", "measured",
            "of floor"]
    print_table(head, rows, {0, 1, 3, 4})


# For each cell: columns of units in x W + b and R, in dz, in what is kept besides the states, and
# the number of states.
CELLS = {"lstm": (4, 4, 4, 2), "gru": (3, 4, 4, 1), "gru, reset first": (3, 3, 3, 1), "simple_rnn": (1, 1, 0, 1)}


def recurrent_floor(ceilings, line):
    gates, columns, kept, states = CELLS[line["cell"]]
    units, lines = line["units"], line["steps"] * line["batch"]
    one = 2 * gates * lines * units * units  # a product of all steps, in FLOP
    state, weights = lines * units, gates * units * units
    if line["way"] != "layer":
        if line["pass"] == "forward":  # x W + b, h, perhaps c, what is kept
            return ceilings.floor("fp32", one, (gates + states + kept) * state + weights)
        return ceilings.floor("fp32", one, (2 + kept + columns) * state + weights)  # dh, c or h, what was kept, dz
    if line["pass"] == "forward":  # x, h, perhaps c, what is kept; W, R
        return ceilings.floor(line["mode"], 2 * one, (1 + states + kept) * state + 2 * weights)
    # x, h, perhaps c, what was kept, dh, dx; W, R, dW, dR
    return ceilings.floor(line["mode"], 4 * one, (3 + states + kept) * state + 4 * weights)


def recurrent(lines, ceilings, kernels, seconds):
    def key_of(line):
        return tuple(line[n] for n in ("cell", "units", "steps", "batch", "mode"))

    others = {}
    with limited(seconds, "PyTorch's recurrent layers"):
        for line in lines:
            key = key_of(line)
            if kernels and line["way"] == "layer" and key not in others:
                others[key] = kernels.recurrent(*key)
    print("Recurrent layers in microseconds, medians of CUDA events around replayed CUDA graphs, cold level 2 cache. Steps,\n"
          "grid, cluster: the recurrence alone, in float, run in that way. Layer: the recurrence as the library runs it, and the\n"
          "products before or after it in the mode that is named. PyTorch: nn.LSTM, nn.GRU (whose reset gate comes after the\n"
          "product) and nn.RNN, replayed, too; backward is both passes less forward. Floor: as for the kernels, of the cell's\n"
          "own products, weights and kept values; it knows nothing of steps that wait for each other.\n")
    rows = []
    for line in lines:
        other = others.get(key_of(line)) if line["way"] == "layer" else None
        floor, ours = recurrent_floor(ceilings, line), line["ours"]
        rows.append([*(str(line[n]) for n in ("cell", "units", "steps", "batch", "pass", "way", "mode")), number(floor),
                     number(other[line["pass"]] if other else None), number(ours),
                     f"{ours / line['steps']:.2f}" if ours >= 0 else "-", share(floor, ours)])
    head = ["cell", "units", "steps", "batch", "pass", "way", "mode", "floor", "PyTorch", "ours", "a step", "of floor"]
    print_table(head, rows, {0, 4, 5, 6})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers")
    parser.add_argument("--measured", metavar="LAYERS", help="the same with plans that were measured")
    parser.add_argument("--recurrent", metavar="LINES")
    parser.add_argument("--seconds", type=float, default=300, help="for everything (default: %(default)s)")
    options = parser.parse_args()

    kinds = dict.fromkeys(("batch", "M", "N", "K", "units", "steps"), int)
    kinds |= dict.fromkeys(("floor", "cuBLAS", "ours"), float)
    names = ["layer", "pass", "batch", "mode", "M", "N", "K", "floor", "cuBLAS", "ours"]
    lines, notes = read_lines(options.layers, names, kinds)
    ceilings = Ceilings(notes)
    torch, about = gpu_pytorch.find()
    kernels = gpu_pytorch.Kernels(torch) if torch else None
    print(*notes, about + ".", "", sep="\n")

    measured = read_lines(options.measured, names, kinds)[0] if options.measured else []
    layers(lines, measured, kernels, options.seconds * 2 / 3)
    if options.recurrent:
        names = ["cell", "units", "steps", "batch", "pass", "way", "mode", "ours"]
        recurrent(read_lines(options.recurrent, names, kinds)[0], ceilings, kernels, options.seconds / 3)


if __name__ == "__main__":
    main()
