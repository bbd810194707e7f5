#!/usr/bin/env python3
"""Puts what the GPU benchmarks measured into tables, PyTorch's times beside them where it is installed and sees the GPU.

  gpu_table.py LAYERS [--measured LAYERS] [--recurrent LINES] [--steps PROGRAM] [--seconds 300]

LAYERS are the lines of bench_gpu_layers, which begin with this device's own ceilings, LINES those of bench_gpu_recurrent,
PROGRAM
is bench_gpu_training_step. PyTorch runs the same layers in channels_last, cuDNN choosing its fastest algorithm, TF32 on or off
as the row says, timed in the same way (gpu_pytorch.py). Training steps are measured in turns of all contestants, several
rounds of some hundred milliseconds each. What does not fit into the given time is left out, which the table says.
"""

import argparse
import contextlib
import functools
import os
import pathlib
import re
import signal
import statistics
import subprocess
import time

import gpu_pytorch

ROUNDS = 5
TURN = 0.25  # seconds
WAYS = ("batch", "fit")


class OutOfTime(BaseException):
    """Not an Exception: nobody between the alarm and us may take it for an error of their own."""


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
    """In Markdown; `left`: the columns that hold words."""
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
        """Microseconds; `numbers`: floats that must be read or written."""
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


# Of a cell: columns of units in x W + b and R, in dz, in what is kept beside the states, and how many states there are.
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


class Program:
    """bench_gpu_training_step, which answers requests."""

    def __init__(self, path, **environment):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | environment)

    def run(self, mode, precision, batch, way, steps):
        """Microseconds a step. Throws RuntimeError with the program's words."""
        print(mode, precision, batch, way, steps, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            raise RuntimeError(answer or "the program has ended") from None

    def close(self):
        self.process.kill()
        self.process.wait()


def step_floor(ceilings, batch, mode):
    """Least time of the convolutions of a step: all passes of three layers but the gradient of the images."""
    total = 0
    for side, inputs, taps, outputs, passes in ((50, 3, 3, 150, 2), (24, 150, 5, 300, 3), (10, 300, 3, 200, 3)):
        pixels, filters = batch * (side - taps + 1) ** 2, taps * taps * inputs * outputs
        total += passes * ceilings.floor(mode, 2 * pixels * filters,
                                         batch * side * side * inputs + filters + pixels * outputs)
    return total


def take_turns(contestants, times, complaints):
    """Adds to `times`; contestants: key to a function of a number of steps that gives microseconds a step."""
    counts = {}

    def run(key, count):
        try:
            return contestants[key](count)
        except Exception as e:  # one that fails is no reason to lose the others' times
            complaints.append(f"{' '.join(map(str, key))}: {first_line(e)}")
            counts.pop(key, None)
            return None

    for key in contestants:
        first = run(key, 4)
        if first is not None:
            counts[key] = int(min(max(TURN * 1e6 / first, 4), 400))
    for _ in range(ROUNDS):
        for key, count in list(counts.items()):
            result = run(key, count)
            if result is not None:
                times.setdefault(key, []).append(result)


def measure_steps(program, torch, batches, times, complaints):
    def ours(mode, precision, batch, way):
        return lambda count: program.run(mode, precision, batch, way, count)

    # Compiling takes long, so first come all others; then the compiled ones, with graph mode once more.
    for compiled in (False, True) if torch else (False,):
        for batch in batches:
            for precision in ("tf32", "fp32"):
                modes = ("graph", "eager") if batch <= 128 and not compiled else ("graph",)
                contestants = {(batch, precision, way, mode): ours(mode, precision, batch, way)
                               for mode in modes for way in WAYS}
                other = None
                if torch:
                    name = "compiled" if compiled else "PyTorch"
                    try:
                        other = gpu_pytorch.TrainingSteps(torch, batch, precision, compiled)
                        contestants |= {(batch, precision, way, name): functools.partial(other.run, way) for way in WAYS}
                    except Exception as e:
                        complaints.append(f"{batch} {precision} {name}: {first_line(e)}")
                if other is not None or not compiled:
                    take_turns(contestants, times, complaints)
                contestants = other = None
                if torch:
                    gpu_pytorch.release(torch)


def steps(path, ceilings, torch, seconds):
    program, times, complaints = Program(path), {}, []
    batches = (32, 1, 128, 1024)  # what matters most comes first
    start = time.perf_counter()
    try:
        with limited(seconds, "Training steps"):
            measure_steps(program, torch, batches, times, complaints)
    finally:
        program.close()
    print("Training steps of the CNN of examples/models/cats_and_dogs.hpp (float, SGD) in microseconds, wall clock until the\n"
          "device has nothing left to do, medians of turns that all take alternately. Batch: on tensors on the device, every\n"
          "loss read. Fit: model.fit on shuffled records in the host's memory; PyTorch copies one pinned batch a step and\n"
          "reads its losses at the end. Compiled: torch.compile(mode='reduce-overhead'). Floor: the convolutions' least\n"
          "time over the measured rates, nothing else of a step. PyTorch has channels_last, cudnn.benchmark, and\n"
          f"allow_tf32 as the mode says. Measured in {time.perf_counter() - start:.0f} s.\n")
    rows = []
    for batch in sorted(batches):
        for precision in ("fp32", "tf32"):
            floor = step_floor(ceilings, batch, precision)
            for way in WAYS:
                medians = [statistics.median(times[key]) if key in times else None
                           for key in ((batch, precision, way, who) for who in ("PyTorch", "compiled", "eager", "graph"))]
                rows.append([str(batch), precision, way, number(floor), *map(number, medians), share(floor, medians[3])])
    head = ["batch", "mode", "way", "floor", "PyTorch", "compiled", "ours, eager", "ours, graph", "graph of floor"]
    print_table(head, rows, {1, 2})
    for complaint in complaints:
        print(f"- {complaint}")


# What may be set differently: the name of a column and the environment.
SETTINGS = {"as it is": {}, "programmatic launches off": {"TAPEGRAPH_PROGRAMMATIC_LAUNCH": "0"},
            "plans measured": {"TAPEGRAPH_GPU_PLANS": "measured"}}


def settings(path, seconds):
    """Steps in graph mode, by a program for each setting."""
    programs, times, complaints = {n: Program(path, **changes) for n, changes in SETTINGS.items()}, {}, []

    def steps_of(name, precision, batch):
        return lambda count: programs[name].run("graph", precision, batch, "batch", count)

    cases = [(batch, precision) for batch in (32, 1, 128) for precision in ("tf32", "fp32")]
    try:
        with limited(seconds, "Settings"):
            for batch, precision in cases:
                take_turns({(batch, precision, name): steps_of(name, precision, batch) for name in SETTINGS}, times,
                           complaints)
    finally:
        for program in programs.values():
            program.close()
    print("The same steps in graph mode (way: batch) with other settings, in turns.\n")
    rows = []
    for batch, precision in sorted(cases):
        found = [times.get((batch, precision, name)) for name in SETTINGS]
        rows.append([str(batch), precision, *(number(statistics.median(each) if each else None) for each in found)])
    print_table(["batch", "mode", *SETTINGS], rows, {1})
    for complaint in complaints:
        print(f"- {complaint}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers")
    parser.add_argument("--measured", metavar="LAYERS", help="the same with plans that were measured")
    parser.add_argument("--recurrent", metavar="LINES")
    parser.add_argument("--steps", metavar="PROGRAM")
    parser.add_argument("--seconds", type=float, default=300, help="for everything (default: %(default)s)")
    options = parser.parse_args()

    kinds = dict.fromkeys(("batch", "M", "N", "K", "units", "steps"), int)
    kinds |= dict.fromkeys(("floor", "cuBLAS", "ours"), float)
    names = ["layer", "pass", "batch", "mode", "M", "N", "K", "floor", "cuBLAS", "ours"]
    lines, notes = read_lines(options.layers, names, kinds)
    ceilings = Ceilings(notes)
    end = time.perf_counter() + options.seconds
    torch, about = gpu_pytorch.find()
    kernels = gpu_pytorch.Kernels(torch) if torch else None
    print(*notes, about + ".", "", sep="\n")

    measured = read_lines(options.measured, names, kinds)[0] if options.measured else []
    layers(lines, measured, kernels, options.seconds / 4)
    if options.recurrent:
        names = ["cell", "units", "steps", "batch", "pass", "way", "mode", "ours"]
        recurrent(read_lines(options.recurrent, names, kinds)[0], ceilings, kernels, options.seconds / 8)
    if options.steps:
        if torch:
            kernels = None
            gpu_pytorch.release(torch)
        settings(options.steps, (end - time.perf_counter()) / 4)
        steps(options.steps, ceilings, torch, end - time.perf_counter())


if __name__ == "__main__":
    main()
