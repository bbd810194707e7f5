#!/usr/bin/env python3
"""Times training steps of whole models, and single operations, on a GPU: graph mode, graph mode
with measured plans, eager mode, PyTorch eager and compiled, alternating.

    gpu_steps.py PROGRAMS [--only PATTERN] [--seconds 200] [--out FILE] [--profiles FOLDER]
    gpu_steps.py PROGRAMS --warm PATTERN          compiles PyTorch's programs in advance

PROGRAMS is the folder of bench_compare_* (benchmarks/CMakeLists.txt). All have the same weights and
data, and must compute the same before they are timed (PyTorch compiled counts as PyTorch, and is
not checked again). Channels last, cuDNN choosing its fastest algorithm, fused optimizers, CUDA
graphs for compiled code; TF32 on or off as the row says. A row is WORK[@tf32]/KIND/BATCH[/LENGTH];
a line is printed as soon as a row is measured: microseconds per step, medians of wall-clock times
until the device has finished. Failures are named in their line, and rows that did not fit into the
time below the table.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "compare"))

import contestants  # noqa: E402
import gpu_table  # noqa: E402
import protocol  # noqa: E402
import race  # noqa: E402
import studies  # noqa: E402

GRAPH, MEASURED, EAGER, PYTORCH, COMPILED = "graph", "measured", "eager", "PyTorch", "compiled"
OURS = (GRAPH, MEASURED, EAGER)
# The most important rows come first. "+": PyTorch's compiled form, too, which takes long.
ROWS = ("+cnn@tf32/training/128", "+rnn/training/128", "+conv1d_small/training/32/140", "+resnet18@tf32/training/128",
        "+gpt@tf32/training/16", "+cnn/training/128", "+cnn@tf32/training/1", "+rnn/training/1", "+cnn@tf32/training/1024",
        "+conv1d_medium@tf32/training/32/1400", "+resnet18/training/128", "+gpt/training/16", "+rnn@tf32/training/1024",
        "+cnn@tf32/training/32", "cnn/training/32", "rnn/training/32", "rnn/training/1024", "cnn/training/1", "conv1d_small/training/1/140",
        "conv1d_small/training/1024/140", "conv1d_medium/training/32/1400", "resnet18@tf32/training/1", "gpt@tf32/training/1",
        "rnn@tf32/training/4096", "cnn/training/1024", "conv1d_small/training/4096/140", "+conv1d_medium@tf32/training/256/1400",
        "cnn@tf32/training/4096", "cnn@tf32/inference/128", "rnn/inference/128",
        *(f"{work}/forward/{n}" for work in ("matmul", "matmul@tf32") for n in (512, 4096)),
        *(f"{work}/forward/{n}" for n in (1_000_000, 50_000_000)
          for work in ("chain", "softmax", "sum", "sum_of_rows", "sum_of_columns", "layer_normalization", "cumulative_sum")),
        *(f"{work}/forward/{n}" for n in (1_000_000, 10_000_000) for work in ("sort", "sort_whole", "top_k")),
        *(f"conv{i}@tf32/gradient/128" for i in (1, 2, 3)), "lstm/gradient/128", "layer_normalization/gradient/50000000")
MODELS = contestants.STUDIES


def work_of(row):
    return row.split("/")[0].partition("@")[0]


def program_of(row):
    return work_of(row) if work_of(row) in MODELS else "operations"


def is_image(row):
    return re.match(contestants.IMAGES, work_of(row) + "/")


def convolves(row):
    return is_image(row) or work_of(row).startswith("conv")


class Steps:
    def __init__(self, options):
        self.o = options
        self.logs = options.out.parent
        self.environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
        self.environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(options.cache))
        self.ours, self.others, self.results, self.hung = {}, {}, {}, set()
        try:
            self.rates = gpu_table.Ceilings(gpu_table.read_lines(options.layers, ["layer"], {})[1]).flop if options.layers else {}
        except (OSError, SystemExit) as e:
            print(f"no floors: {e}", file=sys.stderr)
            self.rates = {}

    def contestant(self, name, command, **variables):
        return protocol.Contestant([str(word) for word in command], self.environment | variables, self.logs / f"log-{name}.txt")

    def our(self, row):
        """Returns ours for this row; contestants of another model end, so that their memory is
        free."""
        program = program_of(row)
        if program not in self.ours:
            self.close(self.ours)
            made = {}
            for name in OURS:
                mode = EAGER if name == EAGER else GRAPH
                command = [self.o.programs / f"bench_compare_{program}_{mode}", "--device", self.o.device]
                if name != GRAPH and not command[0].is_file():  # an archive of some programs
                    continue
                plans = {"TAPEGRAPH_GPU_PLANS": "measured", "TAPEGRAPH_LOG_PLACEMENT": "1"} if name == MEASURED else {}
                made[name] = self.contestant(f"{program}-{name}", command, **plans)
            self.ours = {program: made}
        return self.ours[program]

    def peer(self, way):
        if way not in self.others:
            self.others[way] = self.contestant(f"torch-{way}", [sys.executable, HERE / "compare/with_torch.py", way, 4, self.o.torch_device])
        return self.others[way]

    @staticmethod
    def close(groups):
        for group in groups.values():
            for each in group.values():
                each.close()

    def end(self):
        self.close(self.ours)
        for each in self.others.values():
            each.close()

    def everybody(self, row, compiled):
        made = {name: each for name, each in self.our(row).items() if name != MEASURED or convolves(row)}
        if self.o.peers:
            made[PYTORCH] = self.peer("channels_last" if is_image(row) else "eager")
            if compiled and self.o.compiled:
                made[COMPILED] = self.peer("compiled")
        return {name: (contestant, lambda text: text) for name, contestant in made.items()}

    def floor(self, row):
        """Returns the microseconds that a model's products take at the measured rate; None where it
        is unknown."""
        work, _, rest = row.partition("/")
        kind, batch, *length = rest.split("/")
        rate = self.rates.get("tf32" if work.endswith("@tf32") else "fp32")
        if work_of(row) not in MODELS or not rate or kind != "training":
            return None
        return studies.step_flop(work_of(row), int(batch), int(length[0]) if length else 0) / rate

    def run(self, row, compiled, seconds):
        patience = max(min(self.o.patience, seconds), 1)
        settings = race.Settings(self.o.turn, self.o.rounds, patience=patience, few_checked=True,
                                 tolerance=3e-2 if "@tf32" in row else 2e-4, unchecked=frozenset([COMPILED, MEASURED]))
        everybody = self.everybody(row, compiled)
        runner = race.Race(everybody, settings, self.logs / "weights.safetensors")
        result = runner.run(row, program_of(row) != "operations")
        if self.o.profiles and program_of(row) != "operations":
            self.profile(row, everybody, result, min(patience, 20))
        for name in everybody:
            try:
                if everybody[name][0].process is not None:
                    runner.ask(name, "forget")
            except protocol.Failure:
                pass
        return result

    def profile(self, row, everybody, result, patience):
        self.o.profiles.mkdir(parents=True, exist_ok=True)
        for name in (GRAPH, PYTORCH):
            if "median" not in result.get(name, {}):
                continue
            try:
                contestant = everybody[name][0]
                contestant.ask(f"prepare {row} time {self.logs / 'weights.safetensors'}", patience)
                contestant.ask(f"profile {self.o.profiles / re.sub('[^a-z0-9_]', '-', row)}-{name}.txt", patience)
            except protocol.Failure as e:
                print(f"profile of {row}, {name}: {e}", file=sys.stderr, flush=True)

    def line(self, row, result):
        def time_of(name):
            found = result.get(name, {})
            return f"{1e6 * found['median']:.1f}" if "median" in found and "error" not in found else "-"

        floor, numbers = self.floor(row), {name: time_of(name) for name in (*OURS, PYTORCH, COMPILED)}
        peers = [float(numbers[name]) for name in (PYTORCH, COMPILED) if numbers[name] != "-"]
        best = f"{min(peers) / float(numbers[GRAPH]):.2f}" if peers and numbers[GRAPH] != "-" else "-"
        errors = "; ".join(f"{name}: {each['error']}" for name, each in result.items() if "error" in each)
        return "\t".join([row, f"{floor:.1f}" if floor else "-", *numbers.values(), best, errors])

    def warm(self):
        """Runs every compiled row of the pattern once."""
        for row, compiled in self.rows(self.o.warm):
            if not compiled:
                continue
            try:
                start = time.monotonic()
                self.weights_for(row)
                contestant = self.peer("compiled")
                contestant.ask(f"prepare {row} time {self.logs / 'weights.safetensors'}", self.o.patience)
                contestant.ask("run 3", self.o.patience)
                contestant.ask("forget", self.o.patience)
                print(f"warm\t{row}\t{time.monotonic() - start:.1f} s", flush=True)
            except protocol.Failure as e:
                print(f"warm\t{row}\t{e}", flush=True)

    def weights_for(self, row):
        ours = self.our(row)[GRAPH]
        ours.ask(f"prepare {row} time -", self.o.patience)
        ours.ask(f"save {self.logs / 'weights.safetensors'}", self.o.patience)
        ours.ask("forget", self.o.patience)

    def rows(self, pattern):
        return [(row.lstrip("+"), row.startswith("+")) for row in ROWS if re.search(pattern, row.lstrip("+"))]

    def main(self):
        end, left = time.monotonic() + self.o.seconds, []
        print("row", "floor", *OURS, PYTORCH, COMPILED, "ratio", "errors", sep="\t")
        for row, compiled in self.rows(self.o.only):
            if time.monotonic() > end - 3 or program_of(row) in self.hung:
                left.append(row)
                continue
            try:
                result = self.run(row, compiled, end - time.monotonic() + 15)
            except Exception as e:  # a failure never stops the rest
                result = {GRAPH: {"error": f"{type(e).__name__}: {e}"}}
            if "no answer" in result.get(GRAPH, {}).get("error", ""):  # its other rows would take as long
                self.hung.add(program_of(row))
            self.results[row] = {name: {k: v for k, v in each.items() if k != "numbers"} for name, each in result.items()}
            self.o.out.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
            print(self.line(row, result), flush=True)
        for row in left:
            why = f"{program_of(row)} did not answer" if program_of(row) in self.hung else "the time was over"
            print(f"{row}\tnot measured: {why}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="PATTERN", help="rows in which it is found")
    parser.add_argument("--warm", metavar="PATTERN")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--turn", type=float, default=0.08, help="seconds of a contestant's turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--patience", type=float, default=30, help="seconds for one answer (%(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("gpu_steps.json"))
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("/tmp/tapegraph_inductor"))
    parser.add_argument("--layers", type=pathlib.Path, metavar="FILE", help="lines of bench_gpu_layers, for this device's ceilings")
    parser.add_argument("--profiles", type=pathlib.Path, metavar="FOLDER", help="writes where the time of each row's steps goes")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--no-compiled", dest="compiled", action="store_false")
    options = parser.parse_args()
    options.torch_device = "cpu" if options.device == "cpu" else "cuda"
    options.out = options.out.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # contestants end, too
    steps = Steps(options)
    try:
        steps.warm() if options.warm is not None else steps.main()
    finally:
        steps.end()


if __name__ == "__main__":
    main()
