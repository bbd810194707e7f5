"""The transformer of gpt.py with 50,000 tokens instead of characters."""

from works.gpt import flop_of, jax_model, study_of, tensorflow_model, torch_model  # noqa: F401

STUDY = study_of(50000)
ROWS = ("training/1", "training/8", "inference/1")


def step_flop(batch, length):
    return flop_of(50000, batch)
