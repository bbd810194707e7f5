#!/usr/bin/env python3
"""Times the training step of benchmarks/models/rnn.hpp in PyTorch on the CPU: median milliseconds
with Adam for everything, and with a sparse embedding under SparseAdam, alternating. With --beside
PROGRAM, bench_lstm, that program's training steps run between them, so that other load on the
machine affects all. With one thread both measure processor time.

Usage: lstm.py [--threads 2] [--seconds 3] [--turns 3] [--beside build/default/benchmarks/bench_lstm]
"""
import argparse
import os
import re
import statistics
import subprocess
import time

os.environ.pop("OPENBLAS_CORETYPE", None)
import torch  # noqa: E402

TIME, VOCABULARY, UNITS = 40, 40691, 128


class RNN(torch.nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, UNITS, sparse=sparse)
        self.lstm = torch.nn.LSTM(UNITS, UNITS, batch_first=True)
        self.hidden = torch.nn.Linear(UNITS, 100)
        self.score = torch.nn.Linear(100, 3)

    def forward(self, x):
        h, _ = self.lstm(self.embedding(x))
        return self.score(torch.relu(self.hidden(h[:, -1])))


def trainer(sparse, batch):
    torch.manual_seed(1)
    model = RNN(sparse)
    rest = [p for name, p in model.named_parameters() if not name.startswith("embedding")]
    if sparse:
        optimizers = [torch.optim.Adam(rest), torch.optim.SparseAdam(list(model.embedding.parameters()))]
    else:
        optimizers = [torch.optim.Adam(model.parameters())]
    loss = torch.nn.CrossEntropyLoss()
    x = (torch.arange(batch * TIME) * 7919 % VOCABULARY).reshape(batch, TIME)
    y = torch.arange(batch) % 3

    def step():
        for o in optimizers:
            o.zero_grad(set_to_none=True)
        value = loss(model(x), y)
        value.backward()
        for o in optimizers:
            o.step()
        return value.item()

    return step


def beside(program, arguments):
    """Returns milliseconds by batch size: dense gradient, sparse."""
    command = [program, "--threads", str(arguments.threads), "--seconds", str(arguments.seconds), "--layers", "0"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|", text, re.MULTILINE)
    return {int(batch): (float(dense), float(sparse)) for batch, dense, sparse in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--beside")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    batches = (1, 32, 128)
    steps = {(batch, sparse): trainer(sparse, batch) for batch in batches for sparse in (False, True)}
    for step in steps.values():
        for _ in range(3):
            step()
    times = {key: [] for key in steps}
    ours = {batch: [] for batch in batches}
    for _ in range(arguments.turns):
        for batch in batches:
            end = clock() + arguments.seconds / arguments.turns
            while clock() < end:
                for sparse in (False, True):
                    start = clock()
                    steps[batch, sparse]()
                    times[batch, sparse].append((clock() - start) * 1e3)
        if arguments.beside:
            for batch, pair in beside(arguments.beside, arguments).items():
                ours[batch].append(pair)
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads, medians in ms\n")
    heads = ["batch", "Adam", "SparseAdam"] + (["TapeGraph, dense", "sparse", "PyTorch / TapeGraph"] if arguments.beside else [])
    print("| " + " | ".join(heads) + " |\n|" + " ---: |" * len(heads))
    for batch in batches:
        dense, sparse = (statistics.median(times[batch, s]) for s in (False, True))
        cells = [str(batch), f"{dense:.2f}", f"{sparse:.2f}"]
        if arguments.beside:
            own = [statistics.median(pair[k] for pair in ours[batch]) for k in (0, 1)]
            cells += [f"{own[0]:.2f}", f"{own[1]:.2f}", f"{dense / own[0]:.1f}, {sparse / own[1]:.1f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
