"""A multilayer perceptron (benchmarks/models/mlp.hpp)."""

from study import Study, dense, layer

RELU = layer("relu")
STUDY = Study([dense("hidden/0", 512), RELU, dense("hidden/1", 512), RELU, dense("score", 10)], (784,), "adam", 1e-4, classes=10)
ROWS = tuple(f"{kind}/{batch}" for kind in ("training", "inference") for batch in (1, 32, 128, 1024))
