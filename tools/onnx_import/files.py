"""Writes files, which appear complete or not at all."""

import json
import os
import struct
import tempfile


def write_safetensors(path, tensors):
    kinds = {"float32": "F32", "float64": "F64", "float16": "F16"}
    header, at = {}, 0
    for name, array in sorted(tensors.items()):
        header[name] = {"dtype": kinds[str(array.dtype)], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    replace(path, [struct.pack("<Q", len(text)), text] + [array.tobytes() for _, array in sorted(tensors.items())])


def replace(path, pieces):
    """Writes a temporary file, then renames it."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        for piece in pieces:
            file.write(piece)
    os.chmod(beside, 0o644)
    os.replace(beside, path)
