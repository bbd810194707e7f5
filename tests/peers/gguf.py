#!/usr/bin/env python3
"""gguf.py PROGRAM: what we read of GGUF files is what llama.cpp's package `gguf` makes of them, bit for bit."""

import pathlib
import subprocess
import sys
import tempfile

sys.path.pop(0)  # whose gguf.py is another
try:
    import gguf
    import numpy
    from gguf.quants import dequantize, quantize
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

kinds = gguf.GGMLQuantizationType
random = numpy.random.default_rng(1)
plain = {"F32": numpy.float32, "F16": numpy.float16, "F64": numpy.float64, "I8": numpy.int8, "I16": numpy.int16, "I32": numpy.int32,
         "I64": numpy.int64}
blocks = ["BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"]


def quantised(kind, values):
    """Blocks as the package makes them, or random bytes whose halves are finite where it cannot."""
    try:
        return quantize(values, kind)
    except NotImplementedError:
        count, size = gguf.GGML_QUANT_SIZES[kind]
        return random.integers(0, 256, (values.shape[0], values.shape[1] // count * size), dtype=numpy.uint8) & 0xBF


expected = {}
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    writer = gguf.GGUFWriter(folder / "in.gguf", "llama")
    writer.add_block_count(2)
    writer.add_rope_freq_base(1e-8)
    writer.add_token_list(["a", "bc", "\u00fc"])
    writer.add_array("lists", [[1, 2], [3]])
    for kind, dtype in plain.items():
        if kind not in kinds.__members__:
            continue
        values = (random.standard_normal((3, 5)) * 50).astype(dtype)
        writer.add_tensor(kind, values)
        expected[kind] = values
    for kind in blocks:
        if kind not in kinds.__members__:
            continue
        raw = quantised(kinds[kind], random.standard_normal((3, 512)).astype(numpy.float32) * 0.1)
        writer.add_tensor(kind, raw, raw_dtype=kinds[kind])
        expected[kind] = dequantize(raw, kinds[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    text = subprocess.run([sys.argv[1], folder / "in.gguf", folder / "out.npz"], check=True, capture_output=True, text=True).stdout
    entries = dict(line.split("\t", 1) for line in text.splitlines())
    assert entries["general.architecture"] == "llama" and entries["llama.block_count"] == "2", entries
    assert numpy.float32(entries["llama.rope.freq_base"]) == numpy.float32(1e-8), entries
    assert entries["tokenizer.ggml.tokens"] == "3 texts", entries
    back = numpy.load(folder / "out.npz")
    assert sorted(back.files) == sorted(expected), sorted(back.files)
    for kind, values in expected.items():
        assert back[kind].dtype == values.dtype and back[kind].shape == values.shape, (kind, back[kind].shape)
        assert numpy.array_equal(back[kind], values), kind
print(f"{len(expected)} types of gguf")
