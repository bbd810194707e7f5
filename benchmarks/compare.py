#!/usr/bin/env python3
"""Compares TapeGraph with PyTorch, TensorFlow and JAX on this machine's CPU: models of the studies,
single operations and tiny ones. The peers are installed into a separate virtual environment
(compare/requirements.txt); a peer that cannot be installed is left out. All get the same weights
and data and must compute the same before they are timed; then they alternate, so that other load on
the machine affects all alike. Prints tables in Markdown and stores everything as JSON in
benchmarks/results/ after each row.

    benchmarks/compare.py --quick                     # the most important rows: ten minutes after installing and compiling
    benchmarks/compare.py                             # everything: some hours
    benchmarks/compare.py --only 'rnn|add' --peers pytorch
    benchmarks/compare.py --resume benchmarks/results/compare_....json     # rows that the file lacks
    benchmarks/compare.py --beside 1,2,4              # ours and PyTorch's with this many busy processes beside them
    benchmarks/compare.py --report benchmarks/results/compare_....json     # prints the tables again

A row is WORK/KIND/BATCH OR SIZE[/LENGTH]; --only takes a regular expression that is searched in it.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "compare"))

import busy  # noqa: E402
import contestants  # noqa: E402
import environment  # noqa: E402
import protocol  # noqa: E402
import race  # noqa: E402
import report  # noqa: E402

BESIDE_ROWS = ("cnn/training/32", "rnn/training/32")
SCRIPTS = {"pytorch": "with_torch.py", "tensorflow": "with_tensorflow.py", "jax": "with_jax.py"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="one: processor time is counted (default: all)")
    parser.add_argument("--peers", default="pytorch,tensorflow,jax", help="default: %(default)s")
    parser.add_argument("--ways", default="", metavar="PATTERN", help="of the contestants only these, and TapeGraph")
    parser.add_argument("--beside", metavar="N,...", help="busy processes; rows: " + ", ".join(BESIDE_ROWS))
    parser.add_argument("--minutes", type=float, help="no row begins after that (default: 9 with --quick)")
    parser.add_argument("--turn", type=float, help="seconds of a contestant's turn (default: 0.5, 0.2 with --quick)")
    parser.add_argument("--rounds", type=int, help="default: 7, 4 with --quick")
    parser.add_argument("--out", type=pathlib.Path, help="default: benchmarks/results/compare_DATE.json")
    parser.add_argument("--resume", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--work", type=pathlib.Path, default=HERE.parent / "build/compare", help="environment, programs, logs (%(default)s)")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--flags", default="", help="more of them for our programs, such as those that link the compiled component")
    parser.add_argument("--index", help="a further package index for pip: PyTorch without its GPU's libraries is at "
                                        "https://download.pytorch.org/whl/cpu")
    a = parser.parse_args()
    if a.threads < 1:
        parser.error("--threads: at least 1")
    if unknown := set(filter(None, a.peers.split(","))) - set(SCRIPTS):
        parser.error(f"--peers: unknown: {', '.join(sorted(unknown))}")
    if a.beside is not None and not re.fullmatch(r"\d+(,\d+)*", a.beside):
        parser.error("--beside: numbers, as 1,2,4")
    a.turn = a.turn or (0.2 if a.quick else 0.5)
    a.rounds = a.rounds or (4 if a.quick else 7)
    a.minutes = a.minutes or (9 if a.quick else 1e9)
    return a


def stored_command(words):
    """The command line without the paths of files, which are this machine's own."""
    words = [word for word in words if not word.startswith("--flags=")]
    return re.sub(r"(^| )--(out|work|resume|compiler)[ =]\S+", "", " ".join(words)).strip()


class Comparison:
    def __init__(self, options):
        self.o = options
        options.work.mkdir(parents=True, exist_ok=True)
        self.peers = environment.Peers(options.work / "venv", index=options.index)
        self.programs, self.commands = {}, {}
        now = datetime.datetime.now(datetime.timezone.utc)
        self.path = options.resume or options.out or HERE / f"results/compare_{now:%Y-%m-%d_%H%M}.json"
        self.stored = {
            "date": f"{now:%Y-%m-%d %H:%M} UTC", "machine": environment.machine(options.compiler, options.flags.split()), "peers": {},
            "options": {"threads": options.threads, "quick": options.quick, "turn": options.turn, "rounds": options.rounds,
                        "processor_time": options.threads == 1, "command": stored_command(sys.argv[1:])},
            "load": {"before": os.getloadavg()}, "rows": {}, "left_out": {}}
        if options.resume:
            self.stored = json.loads(options.resume.read_text(encoding="utf-8")) | {"left_out": {}}
            for name in ("threads", "quick", "turn", "rounds"):  # rows of one file are comparable
                setattr(options, name, self.stored["options"][name])

    def store(self):
        """Replaces the file by a complete one only."""
        self.stored["load"]["after"] = os.getloadavg()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(self.stored, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.path)

    def set_up(self, rows):
        """Sets up peers and programs for these rows; reports and leaves out what is not
        available."""
        wanted = [peer for peer in self.o.peers.split(",") if peer]
        self.libraries = {contestants.OURS, *self.peers.install(wanted)} if wanted else {contestants.OURS}
        for peer, why in self.peers.complaints.items():
            self.stored["peers"][peer] = {"error": why}
        for peer in wanted:
            if peer in self.libraries:
                try:
                    self.stored["peers"][peer] = self.peers.about(peer)
                except (OSError, subprocess.CalledProcessError) as e:
                    self.stored["peers"][peer] = {"error": environment.tail(e)}
                self.commands[peer] = [str(self.peers.python), str(HERE / "compare" / SCRIPTS[peer])]
        modes = dict.fromkeys((way.arguments or ("graph",))[0] for way in contestants.WAYS
                              if way.library == contestants.OURS and self.is_wanted(way))
        keys = dict.fromkeys((contestants.program_of(row), mode) for row in rows for mode in modes)
        self.programs = environment.compiled_programs(self.o.work / "programs", list(keys), self.o.compiler, self.o.flags.split())
        if "pytorch" in self.libraries and any(row.startswith("add/") for row in rows):
            made = environment.compiled_libtorch(self.o.work / "programs", self.peers.python, self.o.compiler)
            if isinstance(made, pathlib.Path):
                self.commands["libtorch"] = [str(made)]
                self.libraries.add("libtorch")
            else:
                self.stored["left_out"]["PyTorch C++"] = made
        if "shipped" not in self.stored and any(row.startswith("cnn/") for row in rows):
            try:
                self.stored["shipped"] = environment.shipped(self.o.work / "programs", self.o.compiler)
            except (OSError, subprocess.CalledProcessError) as e:
                self.stored["left_out"]["bytes to ship"] = environment.tail(e)
        self.stored["load"]["before"] = os.getloadavg()  # before measuring, not before compiling

    def is_wanted(self, way):
        return way.name == contestants.REFERENCE or bool(re.search(self.o.ways, way.name))

    def command(self, way, row):
        """Throws Failure if there is none."""
        threads = str(self.o.threads)
        if way.library != contestants.OURS:
            return [*self.commands[way.library], *way.arguments, *([threads] if way.library != "libtorch" else [])]
        mode, *more = way.arguments or ("graph",)
        program = self.programs[contestants.program_of(row), mode]
        if isinstance(program, str):
            raise protocol.Failure(program)
        return [str(program), "--threads", threads, *more]

    def contestants_for(self, group):
        """Returns {name: (Contestant, function)} of the ways that take part in any of a group's
        rows."""
        allowed = sorted(os.sched_getaffinity(0))
        processors = allowed[:self.o.threads] if self.o.threads < len(allowed) else None  # the same ones for all
        made, variables = {}, environment.process_environment(self.o.threads, self.o.work)
        (self.o.work / "logs").mkdir(exist_ok=True)
        for way in contestants.WAYS:
            if way.library not in self.libraries or not any(re.match(way.works, row) for row in group):
                continue
            if not self.is_wanted(way):
                continue
            try:
                log = self.o.work / "logs" / f"{re.sub('[^a-z0-9]+', '_', way.name.lower())}.log"
                log.unlink(missing_ok=True)
                made[way.name] = protocol.Contestant(self.command(way, group[0]), variables, log, processors), way.row
            except protocol.Failure as e:
                for row in group:
                    self.stored["left_out"][f"{row}, {way.name}"] = str(e)
        return made

    def run_group(self, group, end):
        everybody = self.contestants_for(group)
        if contestants.REFERENCE not in everybody:
            return
        settings = race.Settings(self.o.turn, self.o.rounds, patience=120 if self.o.quick else 900,
                                 few_checked=self.o.quick, processor_time=self.o.threads == 1,
                                 memory=int(0.8 * environment.memory("MemAvailable")))
        weights = self.o.work / "weights.safetensors"
        is_first = True
        try:
            for row in group:
                if time.monotonic() > end:
                    self.stored["left_out"][row] = "the time was over"
                    continue
                started = time.monotonic()
                ways = {way.name for way in contestants.ways_of(row, self.libraries)}
                taking_part = {name: pair for name, pair in everybody.items() if name in ways}
                for name in everybody.keys() - ways:
                    everybody[name][0].close()
                runner = race.Race(taking_part, settings, weights)
                runner.first_row, is_first = is_first, False
                self.stored["rows"][row] = runner.run(row, row.split("/")[0] in contestants.STUDIES)
                self.store()
                s = report.summary(row, self.stored["rows"][row])
                print(f"{row}: {s['ratio']:.2f} times as fast as {s['peer']}" if s["ratio"] else f"{row}: no ratio",
                      f"({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
        finally:
            for contestant, _ in everybody.values():
                contestant.close()

    def measured(self, row):
        return "median" in self.stored["rows"].get(row, {}).get(contestants.REFERENCE, {})

    def run(self):
        self.rows = [row for row in (contestants.QUICK if self.o.quick else contestants.FULL)
                     if re.search(self.o.only, row) and not self.measured(row)]
        self.set_up(self.rows)
        end, groups = time.monotonic() + 60 * self.o.minutes, {}
        for row in self.rows:
            groups.setdefault(contestants.group_of(row), []).append(row)
        for group in groups.values():
            self.run_group(group, end)

    def run_beside(self):
        rows = [row for row in BESIDE_ROWS if re.search(self.o.only, row)]
        self.set_up(rows)
        measured, complaints = self.stored.setdefault("beside", []), []
        for row in rows:
            for count in map(int, self.o.beside.split(",")):
                made = {name: pair for name, pair in self.contestants_for([row]).items() if name in ("TapeGraph", "PyTorch")}
                try:
                    more, why = busy.measure(row, made, count, self.o.threads, len(os.sched_getaffinity(0)),
                                             self.o.work / "weights.safetensors")
                finally:
                    for contestant, _ in made.values():
                        contestant.close()
                measured += more
                complaints += why
                self.store()
        for line in complaints:
            print(line, file=sys.stderr)


def main():
    options = arguments()
    if options.report:
        print(report.text(json.loads(options.report.read_text(encoding="utf-8"))), end="")
        return
    # Stopping the tool stops its contestants, too, which are in process groups of their own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    comparison = Comparison(options)
    try:
        if options.beside:
            comparison.run_beside()
        else:
            comparison.run()
    finally:
        comparison.store()
        print(report.text(comparison.stored), end="")
        print(f"stored in {comparison.path}", file=sys.stderr)


if __name__ == "__main__":
    main()
