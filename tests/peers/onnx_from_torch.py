"""Networks of PyTorch, exported by it, made headers of by tools/onnx_to_model.py, compiled, and compared with PyTorch.

Usage: onnx_from_torch.py COMPILER [FLAGS...]; ends with 77 where a library is missing.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]
try:
    import numpy
    import onnx  # noqa: F401
    import torch
    from torch import nn
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)


def loaded(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.grouped = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.wide = nn.Conv2d(8, 16, 1)
        self.score = nn.Linear(16, 5)

    def forward(self, x):
        h = self.pool(torch.relu(self.norm(self.stem(x))))
        h = nn.functional.hardswish(self.wide(torch.relu(self.grouped(h) + h)))
        return self.score(nn.functional.adaptive_avg_pool2d(h, 1).flatten(1))


class Flattened(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 5), nn.Conv2d(4, 6, 3, padding=(1, 0))
        self.hidden, self.score = nn.Linear(6 * 12 * 10, 10), nn.Linear(10, 3)

    def forward(self, x):
        h = nn.functional.avg_pool2d(torch.relu(self.first(x)), 2)
        h = nn.functional.elu(self.second(h))
        return torch.softmax(self.score(torch.clamp(self.hidden(h.view(h.size(0), -1)), -0.5, 0.5)), 1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 6)
        self.both = nn.LSTM(6, 5, num_layers=2, batch_first=True, bidirectional=True)
        self.gru, self.score = nn.GRU(10, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        h, _ = self.both(self.table(x))
        h, last = self.gru(h)
        return self.score(h) + last[-1][:, None, :3]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.parts, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
        self.wide = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, 2, 4).transpose(1, 2) for y in self.parts(self.norm(x)).chunk(3, -1))
        a = torch.softmax(q @ k.transpose(-2, -1) / 2.0, -1) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        return x + self.wide(self.norm(x))  # one norm twice


class Series(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(3, 6, 5, padding=2), nn.BatchNorm1d(6), nn.LeakyReLU(0.1), nn.MaxPool1d(2),
                                    nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1), nn.PReLU(4))

    def forward(self, x):
        return self.layers(x).mean(-1)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.weight = nn.Linear(6, 6), nn.Parameter(torch.randn(6))

    def forward(self, x):
        h = torch.tanh(self.layer(torch.tanh(self.layer(x)))) * self.weight
        a, b = h.split([2, 4], 1)
        return torch.cat([b, a, h[:, 1:4]], 1).unsqueeze(1).squeeze(1) ** 2


class Strange(nn.Module):
    def forward(self, x):
        return torch.det(x @ x.transpose(1, 2))


def main():
    warnings.filterwarnings("ignore")
    compiler = sys.argv[1:]
    trip = loaded("onnx_round_trip")
    torch.manual_seed(0)
    networks = {"residual": (Residual(), torch.randn(2, 3, 17, 17)), "flattened": (Flattened(), torch.randn(2, 1, 28, 28)),
                "recurrent": (Recurrent(), torch.randint(0, 20, (3, 7))), "attention": (Attention(), torch.randn(2, 5, 8)),
                "series": (Series(), torch.randn(2, 3, 20)), "shared_layer": (Shared(), torch.randn(3, 6)),
                "strange": (Strange(), torch.randn(2, 3, 3))}
    models, wrong = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        for name, (network, x) in networks.items():
            network.eval()
            for part in network.modules():
                if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
                    part.running_mean.normal_()
                    part.running_var.uniform_(0.5, 2)
            axes = {0: "batch", 1: "time"} if name == "recurrent" else {0: "batch"}
            torch.onnx.export(network, (x,), f"{name}.onnx", dynamo=False, opset_version=17, input_names=["data"],
                              output_names=["out"], dynamic_axes={"data": axes})
            problems = trip.tool.convert(folder / f"{name}.onnx", name, folder / f"{name}.hpp", folder / f"{name}.safetensors")
            if name == "strange":
                if len(problems) != 1 or "Det" not in problems[0] or (folder / "strange.hpp").exists():
                    wrong.append(f"strange: {problems}")
            elif problems:
                wrong.append(f"{name}: {'; '.join(problems)}")
            else:
                models.append((name, 0, [([x.numpy()], network(x).detach().numpy())]))
        (folder / "driver.cpp").write_text(trip.driver([m[0] for m in models], models))
        subprocess.run(compiler + [f"-I{folder}", "driver.cpp", "-o", "driver"], check=True)
        subprocess.run([str(folder / "driver")], check=True)
        for name, _, runs in models:
            worst = trip.peer.distance(numpy.fromfile(f"{name}.0.out", numpy.float32).reshape(runs[0][1].shape), runs[0][1])
            print(f"{name:20} {'ok' if worst <= 1e-5 else 'WRONG'}  {worst:.1e}")
            if worst > 1e-5:
                wrong.append(name)
    sys.exit("; ".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
