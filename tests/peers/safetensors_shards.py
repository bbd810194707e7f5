"""Shards that we write are read by Python's safetensors, and those that it writes, with an index as Hugging Face's, by us."""

import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import save_file
except ImportError:
    sys.exit(77)

program = sys.argv[1]
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    subprocess.run([program, "write", name], check=True)
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    expected = {f"layer/{i}/kernel": (numpy.arange(10 * i, dtype=numpy.float32) + i).reshape(5, -1 if i else 0) for i in range(7)}
    assert sorted(index["weight_map"]) == sorted(expected), index
    assert index["metadata"]["total_size"] == sum(4 * x.size for x in expected.values()), index
    for key, file in index["weight_map"].items():
        with safe_open(folder / file, framework="numpy") as shard:
            assert shard.metadata() == {"format": "pt"}, shard.metadata()
            assert numpy.array_equal(shard.get_tensor(key), expected[key]), key
    assert len(set(index["weight_map"].values())) > 1, index

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    parts = [{"a.weight": numpy.ones((2, 3), numpy.float32)},
             {"b.weight": numpy.full(5, 2, numpy.float32), "c": numpy.array(7, numpy.float32)}]
    weight_map = {}
    for i, part in enumerate(parts):
        file = f"model-{i + 1:05d}-of-00002.safetensors"
        save_file(part, folder / file, metadata={"format": "np"})
        weight_map.update({key: file for key in part})
    index = {"metadata": {"total_size": 48}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    read = subprocess.run([program, "read", name], check=True, capture_output=True, text=True).stdout
    assert read == "a.weight 6\nb.weight 10\nc 7\n", read
print("safetensors: shards both ways")
