#!/usr/bin/env python3
"""Puts the lines of bench_gpu_layers into a table, with PyTorch's times beside them where it is installed and sees the GPU.

  gpu_table.py LINES

PyTorch runs the same layers in channels_last, cuDNN choosing its fastest algorithm, timed in the same way: medians of the
times between two events, after memory as large as several level 2 caches has been written. It has no 3xTF32.
"""

import argparse
import pathlib
import re
import statistics

RUNS = 21


def pytorch():
    """A function from a line's fields to microseconds, or why there is none."""
    try:
        import torch
    except ImportError:
        return None, "PyTorch is not installed"
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} sees no GPU"
    torch.backends.cudnn.benchmark = True
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")

    def median(work):
        for _ in range(3):
            work()
        events = []
        for _ in range(RUNS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.fill_(1)
            begin.record()
            work()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        return statistics.median(1000 * begin.elapsed_time(end) for begin, end in events)

    def convolution(line):
        taps, inputs, outputs = map(int, re.search(r"(\d+)x\d+ (\d+)->(\d+)", line["layer"]).groups())
        batch = line["batch"]
        pixels = {"forward": line["M"], "filter": line["K"]}.get(line["pass"])
        side = round((pixels / batch) ** 0.5) if pixels else round((line["M"] / batch) ** 0.5) - taps + 1
        size = side + taps - 1
        like = dict(device="cuda", memory_format=torch.channels_last)
        x = torch.rand(batch, inputs, size, size, device="cuda").to(**like) - 0.5
        w = torch.rand(outputs, inputs, taps, taps, device="cuda").to(**like) - 0.5
        y = torch.rand(batch, outputs, side, side, device="cuda").to(**like) - 0.5
        if line["pass"] == "forward":
            return lambda: torch.nn.functional.conv2d(x, w)
        wanted = [line["pass"] == "input", line["pass"] == "filter", False]
        return lambda: torch.ops.aten.convolution_backward(y, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, wanted)

    def time(line):
        if line["mode"] == "tf32x3":
            return None
        tf32 = line["mode"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        if line["pass"] != "product":
            return median(convolution(line))
        a = torch.rand(line["M"], line["K"], device="cuda") - 0.5
        b = torch.rand(line["K"], line["N"], device="cuda") - 0.5
        return median(lambda: a @ b)

    return time, f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines")
    names = ["layer", "pass", "batch", "mode", "M", "N", "K", "floor", "cuBLAS", "ours"]
    lines, notes = [], []
    for text in pathlib.Path(parser.parse_args().lines).read_text(encoding="utf-8").splitlines():
        if text.startswith("#"):
            notes.append(text)
            continue
        line = dict(zip(names, text.split("\t")))
        for name in ("batch", "M", "N", "K"):
            line[name] = int(line[name])
        for name in ("floor", "cuBLAS", "ours"):
            line[name] = float(line[name])
        lines.append(line)

    time, about = pytorch()
    rows = [["layer", "pass", "batch", "mode", "product M x N x K", "floor", "cuBLAS", "PyTorch", "ours", "of floor"]]
    for line in lines:
        other = time(line) if time else None
        best = line["ours"] if line["ours"] >= 0 else line["cuBLAS"]
        shown = [f"{value:.1f}" if value is not None and value >= 0 else "-"
                 for value in (line["floor"], line["cuBLAS"], other, line["ours"])]
        rows.append([line["layer"], line["pass"], str(line["batch"]), line["mode"],
                     f"{line['M']} x {line['N']} x {line['K']}", *shown,
                     f"{100 * line['floor'] / best:.0f}%" if best > 0 else "-"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = {0, 1, 3, 4}
    print(*notes, sep="\n")
    print(f"# {about}. Times in microseconds; floor: the larger of arithmetic and bytes over the measured rates; cuBLAS: a\n"
          "# plain product of that size, for a convolution without the gathering of its operand; of floor: floor over ours.")
    for row in rows:
        print("  ".join(text.ljust(width) if i in left else text.rjust(width)
                        for i, (text, width) in enumerate(zip(row, widths))).rstrip())


if __name__ == "__main__":
    main()
