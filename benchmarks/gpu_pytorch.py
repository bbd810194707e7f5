"""Times the work of gpu_layers.cu and gpu_recurrent.cu in PyTorch, in the same way. See
gpu_table.py."""

import re
import statistics

RUNS = 21
PRECISIONS = {"fp32": False, "tf32": True}


def find():
    """Returns torch or None, and a message about it."""
    try:
        import torch
    except ImportError:
        return None, "PyTorch is not installed"
    if not torch.cuda.is_available():
        return None, f"PyTorch {torch.__version__} sees no GPU"
    torch.backends.cudnn.benchmark = True
    return torch, f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"


def allow_tf32(torch, mode):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = PRECISIONS[mode]


class Kernels:
    """Medians in microseconds of the times between two events, after writing memory larger than the
    level 2 cache."""

    def __init__(self, torch):
        self.torch = torch
        self.flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")

    def median(self, work):
        torch = self.torch
        for _ in range(3):
            work()
        events = []
        for _ in range(RUNS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.fill_(1)
            begin.record()
            work()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize()
        return statistics.median(1000 * begin.elapsed_time(end) for begin, end in events)

    def captured(self, work):
        """Returns a function that replays work as a CUDA graph."""
        torch = self.torch
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                work()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # its memory stays the graph's own when the results are gone
            work()
        return graph.replay

    def random(self, *extents):
        return self.torch.rand(*extents, device="cuda") - 0.5

    def layer(self, line):
        """Times a line of bench_gpu_layers; None where PyTorch has no such mode."""
        if line["mode"] not in PRECISIONS:
            return None
        allow_tf32(self.torch, line["mode"])
        if line["pass"] != "product":
            return self.median(self.convolution(line))
        a, b = self.random(line["M"], line["K"]), self.random(line["K"], line["N"])
        return self.median(lambda: a @ b)

    def convolution(self, line):
        torch = self.torch
        taps, inputs, outputs = map(int, re.search(r"(\d+)x\d+ (\d+)->(\d+)", line["layer"]).groups())
        batch = line["batch"]
        pixels = {"forward": line["M"], "filter": line["K"]}.get(line["pass"])
        side = round((pixels / batch) ** 0.5) if pixels else round((line["M"] / batch) ** 0.5) - taps + 1
        size = side + taps - 1
        like = dict(device="cuda", memory_format=torch.channels_last)
        x = self.random(batch, inputs, size, size).to(**like)
        w = self.random(outputs, inputs, taps, taps).to(**like)
        y = self.random(batch, outputs, side, side).to(**like)
        if line["pass"] == "forward":
            return lambda: torch.nn.functional.conv2d(x, w)
        wanted = [line["pass"] == "input", line["pass"] == "filter", False]
        return lambda: torch.ops.aten.convolution_backward(y, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, wanted)

    def recurrent(self, cell, units, steps, batch, mode):
        """Times forward and backward of a layer, replayed from CUDA graphs as ours are; backward is
        both passes less forward. None where PyTorch has no such cell."""
        torch = self.torch
        kinds = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "simple_rnn": torch.nn.RNN}
        if cell not in kinds:
            return None
        allow_tf32(torch, mode)
        layer = kinds[cell](units, units).cuda()
        x = self.random(steps, batch, units).requires_grad_()
        dy = self.random(steps, batch, units)
        wanted = [x, *layer.parameters()]
        forward = self.median(self.captured(lambda: layer(x)[0]))
        both = self.median(self.captured(lambda: torch.autograd.grad(layer(x)[0], wanted, dy)))
        return {"forward": forward, "backward": both - forward}
