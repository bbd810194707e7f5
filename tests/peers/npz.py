#!/usr/bin/env python3
"""npz.py PROGRAM: arrays of every type and order go through our reader and writer and come back to NumPy as they were."""

import io
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    sys.exit(77)

generator = numpy.random.default_rng(1)
arrays = {}
for code in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"]:
    for order in "<>":
        values = (generator.random((3, 5, 2)) * 200).astype(order + code)
        arrays[f"{code}{'le' if order == '<' else 'be'}"] = values
        arrays[f"{code}{'le' if order == '<' else 'be'}_columns"] = numpy.asfortranarray(values)
    arrays[code + "_one"] = numpy.array(1, code)
    arrays[code + "_none"] = numpy.zeros((4, 0, 2), code)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    numpy.savez_compressed(folder / "in.npz", **arrays)
    subprocess.run([sys.argv[1], folder / "in.npz", folder], check=True)
    for back in [numpy.load(folder / "stored.npz"), numpy.load(folder / "packed.npz")]:
        assert sorted(back.files) == sorted(arrays)
        for key, value in arrays.items():
            assert back[key].dtype == value.dtype.newbyteorder("="), key
            assert back[key].shape == value.shape and (back[key] == value).all(), key
    for key, value in arrays.items():
        expected = io.BytesIO()
        numpy.save(expected, numpy.ascontiguousarray(value).reshape(value.shape).astype(value.dtype.newbyteorder("=")))
        assert (folder / (key + ".npy")).read_bytes() == expected.getvalue(), key
print(f"{len(arrays)} arrays of NumPy {numpy.__version__}")
