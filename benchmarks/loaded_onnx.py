#!/usr/bin/env python3
"""Networks that PyTorch exported, run by load_onnx and by onnxruntime in turns: loaded_onnx.py PROGRAM [--threads N] [NAME...]

PROGRAM is benchmarks/loaded_onnx.cpp. One thread and processor time, or several and the clock on the wall; medians; weights are random. Needs torch, torchvision, onnx, onnxruntime.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

THREADS = int(sys.argv.pop(sys.argv.index("--threads") + 1)) if "--threads" in sys.argv else 1
if "--threads" in sys.argv:
    sys.argv.remove("--threads")
os.environ["OMP_NUM_THREADS"] = str(THREADS)
clock = time.process_time if THREADS == 1 else time.perf_counter
HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "peers" / "pytorch_exports"))

import numpy
import onnxruntime
import torch
from torch import nn
from torchvision import models as vision

import networks

LENGTH = 64


class Encoder(nn.Module):
    """Six layers as wide as those of the first transformer."""

    def __init__(self):
        super().__init__()
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 6, enable_nested_tensor=False)

    def forward(self, x):
        return self.body(x)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.LSTM(128, 512, 2, batch_first=True), nn.Linear(512, 10)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


NETWORKS = {
    "ResNet-18": (lambda: vision.resnet18(weights=None), (3, 224, 224), torch.float32),
    "MobileNetV2": (lambda: vision.mobilenet_v2(weights=None), (3, 224, 224), torch.float32),
    "MobileNetV3": (lambda: vision.mobilenet_v3_large(weights=None), (3, 224, 224), torch.float32),
    "EfficientNet": (lambda: vision.efficientnet_b0(weights=None), (3, 224, 224), torch.float32),
    "ShuffleNet": (lambda: vision.shufflenet_v2_x1_0(weights=None), (3, 224, 224), torch.float32),
    "DenseNet": (lambda: vision.densenet121(weights=None), (3, 224, 224), torch.float32),
    "ConvNeXt": (lambda: vision.convnext_tiny(weights=None), (3, 224, 224), torch.float32),
    "ViT": (lambda: vision.vit_b_16(weights=None), (3, 224, 224), torch.float32),
    "encoder": (Encoder, (LENGTH, 512), torch.float32),
    "LSTM": (Lstm, (LENGTH, 128), torch.float32),
    "GPT-2 small": (lambda: networks.Gpt(768, 12, 12, 50257, 1024), (LENGTH,), torch.int64),
}


def given(dims, kind):
    return torch.randn(*dims) if kind == torch.float32 else (torch.arange(torch.Size(dims).numel()) * 7 % 50).reshape(dims)


def session_of(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.force_spinning_stop", "1")  # threads that wait by spinning would take ours' turn
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def main(program, chosen):
    warnings.filterwarnings("ignore")
    torch.backends.mha.set_fastpath_enabled(False)
    print("| network | batch | load to first result, s | onnxruntime | a prediction, ms | onnxruntime | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, dims, kind) in NETWORKS.items():
            if chosen and name not in chosen:
                continue
            torch.manual_seed(1)
            network, file = make().eval(), pathlib.Path(folder) / "m.onnx"
            with torch.no_grad():
                torch.onnx.export(network, (given((2, *dims), kind),), str(file), dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
            del network
            for batch in (1, 32):
                x = given((batch, *dims), kind).numpy()
                before = clock()
                session = session_of(file)
                session.run(None, {"x": x})
                theirs_first = clock() - before
                ours = subprocess.Popen([program, str(file), ",".join(map(str, x.shape))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                ours_first = float(ours.stdout.readline())
                mine, others, begin = [], [], time.monotonic()
                while len(mine) < 3 or (time.monotonic() - begin < 10 and len(mine) < 100):
                    ours.stdin.write("\n")
                    ours.stdin.flush()
                    mine.append(float(ours.stdout.readline()))
                    before = clock()
                    session.run(None, {"x": x})
                    others.append(clock() - before)
                ours.stdin.close()
                ours.wait()
                a, b = statistics.median(mine), statistics.median(others)
                print(f"| {name} | {batch} | {ours_first:.2f} | {theirs_first:.2f} | {a * 1e3:.1f} | {b * 1e3:.1f} | {a / b:.2f} |", flush=True)


main(sys.argv[1], sys.argv[2:])
