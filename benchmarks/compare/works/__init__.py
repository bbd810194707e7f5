"""Models that are no chain of layers: a file NAME.py for each holds what Python needs to know of it,
beside NAME.cpp in the folder above. A new file is all that a new model needs. It has

    STUDY                                 its data and its optimizer (study.py); layers, if it is a chain after all
    ROWS                                  KIND/BATCH[/LENGTH] of the rows that compare.py measures
    step_flop(batch, length)              floating-point operations of the products in a training step (a chain needs none)

and for each peer that takes part one function, with its imports inside, since every peer runs in a
process of its own; weights maps paths to arrays, x is the input, a tuple where there are several:

    torch_model(weights)                  a module; images come to it with their channels first (torch_layers.py)
    tensorflow_model(weights, x)          a Keras model (tensorflow_layers.py)
    jax_model(weights, x, training)       its value, and {path: value} of the moving averages that it changed (jax_layers.py)

A model that adds to the cross entropy does so by add_loss in Keras; for the others it returns in
training what torch_loss(value, x, y) and jax_loss(value, x, y) need. A chain of layers (studies.py)
needs none of these functions.

A work that is more than one call of a model has instead, where a library takes part,

    torch_prepared(weights, batch, compiled)   a protocol.Prepared; `compiled` compiles a function, None in eager mode
    jax_prepared(weights, batch)               the same"""

import importlib
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent
NAMES = tuple(sorted(file.stem for file in FOLDER.glob("[a-z]*.py")))


def module(name):
    return importlib.import_module(f"works.{name}")


def function_of(name, function):
    """Returns a model's function of that name, or None."""
    return getattr(module(name), function, None) if name in NAMES else None


def has_peer(name, library):
    """Whether a library takes part in this work."""
    short = {"pytorch": "torch", "tensorflow": "tensorflow", "jax": "jax"}.get(library)
    if short is None or name not in NAMES or module(name).STUDY.layers is not None:
        return True
    return any(hasattr(module(name), f"{short}_{end}") for end in ("model", "prepared"))
