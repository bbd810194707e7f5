#!/usr/bin/env python3
"""Losses of the first steps of a model in double precision, by PyTorch, beside those in float: what
a library's losses in float should be compared with where two libraries differ. Weights are those
that one of our contestants has saved:

    printf 'prepare resnet18/training/8 check -\\nsave w.safetensors\\ncheck 5\\n' | resnet18_graph
    double_reference.py resnet18 8 w.safetensors [--rate 1e-3]
"""

import argparse

import torch
from safetensors.numpy import load_file

import works


def losses(module, batch, weights, rate, precision, steps=5):
    study = module.STUDY
    model = module.torch_model(weights).to(precision).train()
    x, y = study.data(batch, 0)
    x = torch.from_numpy(x).to(precision)
    x = x.permute(0, 3, 1, 2).contiguous() if x.ndim == 4 else x
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    made = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), torch.from_numpy(y).long())
        loss.backward()
        optimizer.step()
        made.append(loss.item())
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=[name for name in works.NAMES if works.module(name).STUDY.optimizer == "momentum"])
    parser.add_argument("batch", type=int)
    parser.add_argument("weights")
    parser.add_argument("--rate", type=float, help="default: the comparison's")
    o = parser.parse_args()
    module = works.module(o.work)
    for precision in (torch.float64, torch.float32):
        made = losses(module, o.batch, load_file(o.weights), o.rate or module.STUDY.rate, precision)
        print(precision, *(f"{each:.8g}" for each in made))


if __name__ == "__main__":
    main()
