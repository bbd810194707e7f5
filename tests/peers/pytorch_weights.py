#!/usr/bin/env python3
"""pytorch_weights.py PROGRAM: what we read of torch.save's files is what PyTorch put into them."""

import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import torch
except (ImportError, OSError):
    sys.exit(77)

torch.manual_seed(1)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.LSTM(8, 5, 2, bidirectional=True),
                              torch.nn.TransformerEncoderLayer(8, 2, 16))
base = torch.randn(6, 7, 8)
files = {
    "a network": network.state_dict(),
    "views of one storage": {"turned": base.permute(2, 0, 1), "part": base[1:4, ::2, 3], "last": base[5, 6, 7], "none": base[:0]},
    "types": {str(t).replace("torch.", ""): (torch.randn(9) * 50).to(t)
              for t in [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int16, torch.int32,
                        torch.int64, torch.uint8, torch.bool]},
    "types without a storage of their own": {name: torch.arange(5).to(getattr(torch, name))
                                             for name in ["uint16", "uint32", "uint64"] if hasattr(torch, name)},
    "negative views": {"imaginary": torch.randn(3, dtype=torch.complex64).conj().imag, "half": torch._neg_view(torch.randn(5).half()),
                       "integers": torch._neg_view(torch.arange(-3, 4)), "bytes": torch._neg_view(torch.arange(5, dtype=torch.uint8))},
    "repeated elements": {"row": torch.ones(1).expand(4), "column": torch.randn(2, 1).expand(2, 3), "base": base},
}
# What stands beside weights and cannot be read; the weights are read all the same.
beside = {"a set": {1, 2}, "bytes": b"xy", "an array": numpy.arange(3), "a type": torch.float16, "complex": torch.ones(2, dtype=torch.complex64),
          "sparse": torch.eye(3).to_sparse()}
if hasattr(torch, "float8_e4m3fn"):
    beside["float8"] = torch.ones(2).to(torch.float8_e4m3fn)

count = 0
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for what, tensors in files.items():
        for protocol, archive in [(2, True), (3, True), (4, True), (5, True), (2, False)]:  # the last is of before PyTorch 1.6
            torch.save({**beside, **tensors}, folder / "in.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=archive)
            subprocess.run([sys.argv[1], folder / "in.pt", folder / "out.npz"], check=True)
            back = numpy.load(folder / "out.npz")
            assert sorted(back.files) == sorted(tensors), what
            for key, tensor in tensors.items():
                expected = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).resolve_neg().numpy()
                assert back[key].dtype == expected.dtype and back[key].shape == expected.shape, (what, key)
                assert (back[key] == expected).all(), (what, key)
                count += 1
print(f"{count} tensors of PyTorch {torch.__version__}")
