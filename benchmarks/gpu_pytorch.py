"""The same work as gpu_layers.cu, gpu_recurrent.cu and gpu_training_step.cu in PyTorch, timed in the same way. See gpu_table.py."""

import gc
import re
import statistics
import time

RUNS = 21
PRECISIONS = {"fp32": False, "tf32": True}


def find():
    """Torch or None, and what to say about it."""
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
    """Medians in microseconds of the times between two events, after memory larger than the level 2 cache was written."""

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
        """What replays work as a CUDA graph."""
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
        """Of a line of bench_gpu_layers; None where PyTorch has no such mode."""
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
        """Forward and backward of a layer, replayed from CUDA graphs as ours is; backward is both passes less forward. None
        where PyTorch has no such cell."""
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


class TrainingSteps:
    """The model of examples/models/cats_and_dogs.hpp in channels_last, with SGD, for one batch size and precision.

    `compiled`: model and loss by torch.compile(mode="reduce-overhead"), which replays CUDA graphs; else eager.
    """

    def __init__(self, torch, batch, precision, compiled):
        self.torch, self.precision, self.is_compiled = torch, precision, compiled
        nn = torch.nn
        if compiled:
            torch._dynamo.reset()  # what was compiled for other batch sizes counts towards a limit
        self.model = nn.Sequential(
            nn.Conv2d(3, 150, 3), nn.ReLU(), nn.BatchNorm2d(150), nn.MaxPool2d(2),
            nn.Conv2d(150, 300, 5), nn.ReLU(), nn.BatchNorm2d(300), nn.MaxPool2d(2), nn.Dropout(0.25),
            nn.Conv2d(300, 200, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.25),
            nn.Linear(4 * 4 * 200, 1)).cuda().to(memory_format=torch.channels_last).train()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5)
        self.x = torch.rand(batch, 3, 50, 50, device="cuda").to(memory_format=torch.channels_last)
        self.y = (torch.arange(batch, device="cuda") % 2).float().unsqueeze(1)
        self.host = [torch.empty_like(t, device="cpu", pin_memory=True).copy_(t) for t in (self.x, self.y)]
        model = self.model

        def loss(x, y):
            return nn.functional.binary_cross_entropy_with_logits(model(x), y)

        self.loss = torch.compile(loss, mode="reduce-overhead", dynamic=False) if compiled else loss
        self.run("batch", 4)

    def step(self):
        if self.is_compiled:
            self.torch.compiler.cudagraph_mark_step_begin()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.x, self.y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, way, steps):
        """Microseconds a step, wall clock. `batch` reads every loss; `fit` copies each batch from pinned memory and reads
        the sum of the losses at the end."""
        torch = self.torch
        allow_tf32(torch, self.precision)
        torch.cuda.synchronize()
        start = time.perf_counter()
        if way == "batch":
            for _ in range(steps):
                self.step().item()
        else:
            total = torch.zeros((), device="cuda")
            for _ in range(steps):
                self.x.copy_(self.host[0], non_blocking=True)
                self.y.copy_(self.host[1], non_blocking=True)
                total += self.step()
            total.item()
        torch.cuda.synchronize()
        return 1e6 * (time.perf_counter() - start) / steps


def release(torch):
    """Gives cached memory back: another process measures next."""
    gc.collect()
    torch.cuda.empty_cache()
