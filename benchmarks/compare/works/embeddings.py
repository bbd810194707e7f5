"""The mean of words' rows (benchmarks/models/bag_of_words.hpp)."""

from study import Study, dense, layer

STUDY = Study([("bag", "embedding", {"units": 128}), dense("hidden", 128), layer("relu"), dense("score", 10)], (64,), "adam",
              1e-3, classes=10, vocabulary=50000)
ROWS = ("training/1", "training/32", "training/128", "inference/32")
