#!/usr/bin/env python3
"""Times the CNN's training step beside busy processes: ours (bench_shared_machine), another build
of it (--before) and PyTorch's.

For each number of busy processes, alternating: milliseconds per step, and the slowdown relative to
none. The unavoidable loss is measured in the same way: as many independent busy loops as the step
has threads, which never wait for each other, count their rounds. "over the share" is the step's
slowdown divided by theirs: 1 is a step that loses only its share of the machine, and nothing by
waiting.

Usage: shared_machine.py PROGRAM [--before PROGRAM] [--batch 16] [--threads 2] [--seconds 5] [--turns 2] [--busy 0,1,2,4] [--no-torch]
"""
import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
import time

TORCH = r"""
import sys, time
import torch
batch, threads, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(1)
n = torch.nn
model = n.Sequential(
    n.Conv2d(3, 150, 3), n.ReLU(), n.BatchNorm2d(150), n.MaxPool2d(2),
    n.Conv2d(150, 300, 5), n.ReLU(), n.BatchNorm2d(300), n.MaxPool2d(2), n.Dropout(0.25),
    n.Conv2d(300, 200, 3), n.ReLU(), n.MaxPool2d(2), n.Flatten(), n.Dropout(0.25), n.Linear(3200, 1),
).to(memory_format=torch.channels_last)
x = torch.rand(batch, 3, 50, 50).to(memory_format=torch.channels_last)
y = (torch.arange(batch) % 2).float().reshape(batch, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
loss = n.BCEWithLogitsLoss()
def step():
    optimizer.zero_grad(set_to_none=True)
    loss(model(x), y).backward()
    optimizer.step()
step()
steps, start = 0, time.perf_counter()
while time.perf_counter() - start < seconds:
    step()
    steps += 1
print(steps, time.perf_counter() - start)
"""


def spin():
    while True:
        pass


def count(seconds, rounds):
    end, mine = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        mine += 1
    rounds.put(mine)


def independent(threads, seconds):
    """Returns the seconds per round of loops that never wait for each other."""
    rounds = multiprocessing.Queue()
    loops = [multiprocessing.Process(target=count, args=(seconds, rounds)) for _ in range(threads)]
    for p in loops:
        p.start()
    total = sum(rounds.get() for _ in loops)
    for p in loops:
        p.join()
    return seconds / total


def of_program(command):
    def measure(arguments):
        output = subprocess.run(command + [str(arguments.batch), str(arguments.threads), str(arguments.seconds)],
                                check=True, capture_output=True, text=True).stdout.split()
        return float(output[1]) / int(output[0])
    return measure


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--before")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--busy", default="0,1,2,4")
    parser.add_argument("--no-torch", action="store_true")
    arguments = parser.parse_args()
    os.environ.pop("OPENBLAS_CORETYPE", None)
    contestants = {"ours": of_program([arguments.program])}
    if arguments.before:
        contestants["before"] = of_program([arguments.before])
    if not arguments.no_torch:
        contestants["PyTorch"] = of_program([sys.executable, "-c", TORCH])
    counts = [int(n) for n in arguments.busy.split(",")]
    share = {n: [] for n in counts}
    times = {(name, n): [] for name in contestants for n in counts}
    for _ in range(arguments.turns):
        for n in counts:
            busy = [multiprocessing.Process(target=spin, daemon=True) for _ in range(n)]
            for p in busy:
                p.start()
            try:
                share[n].append(independent(arguments.threads, min(arguments.seconds, 3)))
                for name, measure in contestants.items():
                    times[name, n].append(measure(arguments))
            finally:
                for p in busy:
                    p.terminate()
                    p.join()
    first = counts[0]
    print(f"batch {arguments.batch}, {arguments.threads} threads, load average {os.getloadavg()[0]:.1f}\n")
    print("| busy processes | independent loops |" + "".join(f" {name}, ms | times as long | over the share |" for name in contestants))
    print("| ---: | ---: |" + " ---: | ---: | ---: |" * len(contestants))
    for n in counts:
        lost = statistics.median(share[n]) / statistics.median(share[first])
        row = f"| {n} | {lost:.2f} |"
        for name in contestants:
            mine = statistics.median(times[name, n])
            slower = mine / statistics.median(times[name, first])
            row += f" {1e3 * mine:.1f} | {slower:.2f} | {slower / lost:.2f} |"
        print(row)


if __name__ == "__main__":
    main()
