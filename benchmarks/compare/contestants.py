"""Lists which contestants take part in which rows."""

import dataclasses
import re

import operations
import studies
import works


@dataclasses.dataclass(frozen=True)
class Way:
    """One way of using one library. `works` is a pattern of the rows it takes part in; `kind` maps
    a row's kind to the contestant's."""

    name: str
    library: str
    arguments: tuple = ()
    works: str = ".*"
    kind: str = ""

    def row(self, text):
        work, kind, rest = text.split("/", 2)
        return f"{work}/{self.kind or kind}/{rest}"


CONVOLVES = r"(cnn|conv)"
MODELS = "(" + "|".join(studies.STUDIES) + ")/"
IMAGES = "(" + "|".join(name for name, study in studies.STUDIES.items() if len(study.shape) == 3) + r"|conv\w+|group_normalization|batch_normalization)/"
EVERY = r"(?!add/)"
WAYS = (
    Way("TapeGraph", "tapegraph"),
    Way("TapeGraph eager", "tapegraph", ("eager",), EVERY),
    Way("TapeGraph direct", "tapegraph", ("graph", "--convolution", "direct"), CONVOLVES),
    Way("TapeGraph fast", "tapegraph", ("graph", "--convolution", "fast"), CONVOLVES),
    Way("TapeGraph sparse", "tapegraph", (), "(rnn|embeddings)/training", "sparse_training"),
    Way("PyTorch", "pytorch", ("eager",)),
    Way("PyTorch fused", "pytorch", ("fused",), f"({MODELS}training|adam/)"),
    Way("PyTorch channels_last", "pytorch", ("channels_last",), IMAGES),
    Way("PyTorch compiled", "pytorch", ("compiled",), EVERY),
    Way("PyTorch sparse", "pytorch", ("sparse",), "(rnn|embeddings)/training", "sparse_training"),
    Way("PyTorch C++", "libtorch", (), "add/"),
    Way("tf.function", "tensorflow", ("function",)),
    Way("TensorFlow XLA", "tensorflow", ("xla",), EVERY),
    Way("Keras", "tensorflow", ("keras",), MODELS),
    Way("JAX", "jax"),
)
OURS = "tapegraph"
REFERENCE = WAYS[0].name


def ways_of(row, libraries):
    return [way for way in WAYS if way.library in libraries and re.match(way.works, row) and works.has_peer(row.split("/")[0], way.library)]


STUDIES = tuple(studies.STUDIES)


def program_of(row):
    """Our program that computes the row."""
    work = row.split("/")[0]
    if operations.product_of(work):
        return "products"
    return work if work in STUDIES else "layer_operations" if work in operations.LAYER_OPERATIONS else "operations"


def group_of(row):
    """The same processes compute the rows of a group one after the other, such as those of a
    study's training."""
    work, kind = row.split("/")[:2]
    return f"{work}/{kind}" if work in STUDIES else program_of(row)


# The most important rows come first: when the time is over, the rest is left out.
QUICK = ("cnn/training/1", "cnn/training/32", "rnn/training/1", "rnn/training/32", "conv1d_small/training/32/140",
         "conv1d_medium/training/32/140", "add/forward/8", "add/gradient/8", "matmul/forward/512", "conv1/forward/16",
         "conv2/forward/16", "conv2/gradient/16", "conv3/forward/16", "chain/forward/1000000", "softmax/forward/1000000",
         "sum_of_rows/forward/1000000", "lstm/gradient/32", "cnn/inference/1", "cnn/inference/32", "rnn/inference/1",
         "rnn/inference/32", "conv1d_small/inference/32/140")
FULL = (*(f"cnn/training/{n}" for n in (1, 16, 32, 128)), *(f"rnn/training/{n}" for n in (1, 32, 128, 1024)),
        *(f"conv1d_small/training/32/{n}" for n in (140, 1400)), *(f"conv1d_medium/training/32/{n}" for n in (140, 1400)),
        "add/forward/8", "add/gradient/8", *(f"matmul/forward/{n}" for n in (64, 256, 1024, 2048)),
        *(f"conv{i}/{kind}/{n}" for i in (1, 2, 3) for kind in ("forward", "gradient") for n in (1, 32, 128)),
        *(f"{work}/forward/{n}" for work in ("chain", "softmax", "sum_of_rows", "sum_of_columns")
          for n in (10_000, 1_000_000, 10_000_000)),
        *(f"{work}/{kind}/1000000" for work in ("gelu", "gelu_tanh", "swish", "layer_normalization") for kind in ("forward", "gradient")),
        *(f"{work}/forward/1000000" for work in ("sum", "cumulative_sum", "sort", "top_k")),
        *(f"{work}/gradient/1000000" for work in ("softmax", "sum_of_rows", "sum_of_columns")),
        *(f"{work}/{row}" for work, rows in operations.LAYER_OPERATIONS.items() for row in rows),
        *(f"cross_entropy/{kind}/3200000" for kind in ("forward", "gradient")),
        "adam/update/10000000", *(f"lstm/gradient/{n}" for n in (1, 32, 128)), *(f"cnn/inference/{n}" for n in (1, 128)),
        *(f"rnn/inference/{n}" for n in (1, 128)),
        *(f"{model}/inference/{n}/140" for model in ("conv1d_small", "conv1d_medium") for n in (1, 128)),
        "conv1d_large/inference/1/1400", "conv1d_large/training/32/1400", "cnn/training/512",
        *(f"{name}/{row}" for name in works.NAMES for row in works.module(name).ROWS))
