#!/usr/bin/env python3
"""Times scaled_dot_product_attention of PyTorch on the CPU beside PROGRAM, bench_attention, in turns,
so that other load on the machine affects both: median milliseconds of processor time of all threads,
of the value and of the value and all derivatives.

Usage: attention.py PROGRAM [--threads 1] [--turns 3] [--rounds 5] [--longest 8192]
"""
import argparse
import statistics
import subprocess
import time

import torch


def median(rounds, f):
    f()
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        f()
        times.append((time.process_time() - begin) * 1e3)
    return statistics.median(times)


def pytorch(length, causal, rounds):
    made = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(1, 8, length, 64, generator=made, requires_grad=True) for _ in range(3))
    dy = torch.randn(1, 8, length, 64, generator=made)

    def value():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    def every():
        q.grad = k.grad = v.grad = None
        value().backward(dy)

    with torch.no_grad():
        alone = median(rounds, value)
    return alone, median(rounds, every)


def ours(program, length, causal, rounds, threads):
    words = [program, "--threads", threads, "--length", length, "--causal", int(causal), "--rounds", rounds]
    line = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout.split()
    return float(line[3]), float(line[5])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--longest", type=int, default=8192)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    for causal in (False, True):
        for length in (128, 256, 512, 1024, 2048, 4096, 8192):
            if length > chosen.longest:
                continue
            rounds = max(chosen.rounds, 2048 // length * chosen.rounds)
            turns = [(ours(chosen.program, length, causal, rounds, chosen.threads), pytorch(length, causal, rounds))
                     for _ in range(chosen.turns)]
            a, b, c, d = (statistics.median(t[i][j] for t in turns) for i in (0, 1) for j in (0, 1))
            print(f"{'causal' if causal else 'full':6} {length:5d}  ours {a:9.3f} {b:9.3f}  PyTorch {c:9.3f} {d:9.3f}  "
                  f"times {c / a:.2f} {d / b:.2f}", flush=True)


if __name__ == "__main__":
    main()
