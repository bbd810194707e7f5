"""Measures a shared machine: the same work with and without busy processes beside it."""

import os
import signal
import statistics
import subprocess
import sys
import time

import protocol

ROUNDS = 7
TURN = 0.7


class Crowd:
    """Busy processes, which are stopped except between `go` and `halt`."""

    def __init__(self, count):
        self.processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True) for _ in range(count)]
        self.signal(signal.SIGSTOP)

    def signal(self, which):
        for process in self.processes:
            os.kill(process.pid, which)

    def go(self):
        self.signal(signal.SIGCONT)
        time.sleep(0.1)

    def halt(self):
        self.signal(signal.SIGSTOP)
        time.sleep(0.1)

    def close(self):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(row, contestants, busy, threads, cores, weights, patience=600):
    """Measures a row. `contestants` maps names to (Contestant, function from a row to its own),
    with ours first, which writes the weights if there are any. Turns with and without `busy`
    processes alternate. Returns a list of measurements and one of complaints."""
    times, counts, complaints = {}, {}, []
    reference = next(iter(contestants))
    for name, (contestant, own) in contestants.items():
        try:
            contestant.ask(f"prepare {own(row)} time {'-' if name == reference or not weights else weights}", patience)
            if name == reference and weights:
                contestant.ask(f"save {weights}", patience)
            contestant.ask("run 2", patience)
            start = time.perf_counter()
            contestant.ask("run 1", patience)
            counts[name] = int(min(max(TURN / (time.perf_counter() - start), 1), 2000))
            times[name] = ([], [])
        except protocol.Failure as e:
            complaints.append(f"{row}, {name}: {e}")
    crowd = Crowd(busy)
    try:
        for turn in range(2 * ROUNDS):
            crowded = turn % 2
            if crowded:
                crowd.go()
            for name in [*counts]:
                try:
                    times[name][crowded].extend(contestants[name][0].ask(f"run {counts[name]}", patience)[1:])
                except protocol.Failure as e:
                    complaints.append(f"{row}, {name}: {e}")
                    del counts[name]
            if crowded:
                crowd.halt()
    finally:
        crowd.close()
    share = max(1, (min(threads, cores) + busy) / cores)
    return [{"row": row, "name": name, "busy": busy, "idle": statistics.median(times[name][0]),
             "beside": statistics.median(times[name][1]), "share": share} for name in counts], complaints
