"""Two layers of a graph network, ten edges for each node (benchmarks/models/graph_network.hpp)."""

from study import Study, noise

FEATURES, HIDDEN, EDGES, CLASSES = 64, 64, 10, 10


class Graph(Study):
    def data(self, batch, length):
        import numpy

        places = (noise((2 * batch * EDGES,), 1).astype(numpy.float64) + 1) / 2 * batch
        ends = numpy.minimum(places, batch - 1).astype(numpy.int32).reshape(2, batch, EDGES)
        return (noise((batch, FEATURES), 1), ends[0], ends[1]), (numpy.arange(batch) % CLASSES).astype(numpy.int32)


STUDY = Graph(None, (FEATURES,), "adam", 1e-3, classes=CLASSES)
ROWS = tuple(f"{kind}/{nodes}" for kind in ("training", "inference") for nodes in (1000, 10_000))


def step_flop(batch, length):
    """Of the products; messages are 3 additions more for each of a node's features and edges."""
    first = 2 * FEATURES * HIDDEN
    return 2 * batch * (3 * (first + 2 * HIDDEN * CLASSES) - first)


def torch_model(weights):
    import torch
    from scopes import Scope
    from torch import nn
    from torch_layers import linear

    class Graph(nn.Module):
        def __init__(self, scope):
            super().__init__()
            self.own = nn.ModuleList(linear(scope / i / "self") for i in range(2))
            self.messages = nn.ModuleList(linear(scope / i / "messages") for i in range(2))

        def layer(self, i, h, start, end):
            received = torch.zeros_like(h).index_add(0, end, h[start])
            return self.own[i](h) + self.messages[i](0.1 * received)

        def forward(self, nodes, start, end):
            start, end = start.flatten(), end.flatten()
            return self.layer(1, torch.relu(self.layer(0, nodes, start, end)), start, end)

    return Graph(Scope(weights))


def tensorflow_model(weights, x):
    import keras
    from keras import ops
    from tensorflow_layers import Named

    named = Named(weights)
    nodes, start, end = (named.input(each) for each in x)
    flat = [ops.reshape(each, (-1,)) for each in (start, end)]

    def layer(at, h, units):
        received = ops.segment_sum(ops.take(h, flat[0], axis=0), flat[1], num_segments=x[0].shape[0])
        own = named(f"{at}/self", keras.layers.Dense(units))(h)
        return own + named(f"{at}/messages", keras.layers.Dense(units, use_bias=False))(0.1 * received)

    return named.model([nodes, start, end], layer("1", ops.relu(layer("0", nodes, HIDDEN)), CLASSES))


def jax_model(weights, x, training):
    import jax
    from jax_layers import Layers

    layers, (nodes, start, end) = Layers(weights, training), x

    def layer(at, h):
        received = jax.ops.segment_sum(h[start.reshape(-1)], end.reshape(-1), h.shape[0])
        return layers.dense(f"{at}/self", h) + layers.dense(f"{at}/messages", 0.1 * received)

    return layer("1", jax.nn.relu(layer("0", nodes))), {}
