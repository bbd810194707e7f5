#!/usr/bin/env python3
"""Times images per second of one core in torchvision, alternating with bench_image_decode.

Both use the same files and processor time: decode 500x375, random-resized crop, flip, normalise to
224. Other load on the machine affects both.

Usage: image_decode.py PROGRAM [--turns 3] [--seconds 2]
"""
import argparse
import io
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

import numpy
from PIL import Image


def pictures(folder, count=24):
    """Makes smooth noise of several sizes with edges, quality 92: about as many bytes as photos of
    this size have."""
    random = numpy.random.default_rng(1)
    for i in range(count):
        whole = numpy.zeros((375, 500, 3))
        for cells in (3, 8, 25, 80, 200):
            noise = random.uniform(0, 255, (cells * 3 // 4 + 1, cells, 3)).astype(numpy.uint8)
            whole += numpy.asarray(Image.fromarray(noise).resize((500, 375), Image.BICUBIC), float) / cells**0.35
        whole[100:200, 150 + i : 300 + i] *= 0.5
        whole = (whole - whole.min()) / (whole.max() - whole.min()) * 255
        Image.fromarray(whole.astype(numpy.uint8)).save(folder / f"{i:03}.jpg", quality=92)


def with_pillow(files):
    from torchvision import transforms

    change = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    return lambda i: change(Image.open(io.BytesIO(files[i])).convert("RGB"))


def with_tensors(files):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms import v2

    change = v2.Compose([
        v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    packed = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files]
    return lambda i: change(decode_jpeg(packed[i], mode=ImageReadMode.RGB))


def rate(make, files, seconds):
    step = make(files)
    for i in range(5):
        step(i)
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        step(count % len(files))
        count += 1
    return count / (time.process_time() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        pictures(folder)
        files = [path.read_bytes() for path in sorted(folder.iterdir())]
        print(f"{len(files)} files of {statistics.mean(map(len, files)) / 1024:.0f} KiB")
        found = {}
        for _ in range(options.turns):
            done = subprocess.run([options.program, str(folder), str(options.seconds)], capture_output=True, text=True, check=True)
            for line in done.stdout.splitlines():
                print(line)
                found.setdefault("tapegraph " + line.split()[0], []).append(float(re.search(r"([\d.]+) images/s", line)[1]))
            for name, make in (("torchvision, Pillow", with_pillow), ("torchvision, tensors", with_tensors)):
                found.setdefault(name, []).append(rate(make, files, options.seconds))
    for name, rates in found.items():
        print(f"{name:24} {statistics.median(rates):8.1f} images/s")
    best = max(statistics.median(r) for n, r in found.items() if n.startswith("torchvision"))
    print(f"ratio to the faster torchvision: {statistics.median(found['tapegraph turbo']) / best:.2f}")


if __name__ == "__main__":
    main()
