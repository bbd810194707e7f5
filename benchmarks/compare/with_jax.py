"""JAX as a contestant, with everything compiled by jax.jit: with_jax.py THREADS"""

import jax
import jax.numpy as jnp
from jax import lax
from safetensors.numpy import load_file

import jax_operations
import operations
import protocol
import studies
import works
from jax_layers import convolve, max_pool, normalize
from jax_operations import lstm
from study import digest


def network(layers, weights, x, training, key):
    """Returns the model's value and the moving averages that it changed."""
    moved = {}
    for number, (kind, name, options) in enumerate(layers):
        values = {path.rpartition("/")[2]: value for path, value in weights.items() if name and path.rpartition("/")[0] == name}
        if kind == "convolution":
            x = convolve(x, values["kernel"], options["stride"], options["padding"].upper()) + values["bias"]
        elif kind == "dense":
            x = x @ values["kernel"] + values["bias"]
        elif kind == "normalization":
            x, changed = normalize(x, values, training)
            moved.update({f"{name}/{path}": value for path, value in changed.items()})
        elif kind == "embedding":
            x = values["embeddings"][x]
        elif kind == "bag":
            x = values["embeddings"][x].mean(1)
        elif kind == "lstm":
            x = lstm(x, values["kernel"], values["recurrent_kernel"], values["bias"])
        elif kind == "relu":
            x = jax.nn.relu(x)
        elif kind == "pool":
            x = max_pool(x)
        elif kind == "flatten":
            x = x.reshape(x.shape[0], -1)
        elif kind == "average":
            x = x.mean(1)
        elif kind == "dropout" and training:
            kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - options["rate"], x.shape)
            x = jnp.where(kept, x / (1 - options["rate"]), 0)
    return x, moved


def entropy(study, scores, y):
    if study.classes > 2:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), y[..., None], -1))
    return jnp.mean(jax.nn.relu(scores) - scores * y + jnp.log1p(jnp.exp(-jnp.abs(scores))))


def updated(study, weights, gradients, state, step):
    if study.optimizer == "sgd":
        return {path: value - study.rate * gradients[path] for path, value in weights.items()}, state
    if study.optimizer == "momentum":
        state = {path: 0.9 * state[path] + g for path, g in gradients.items()}
        return {path: value - study.rate * state[path] for path, value in weights.items()}, state
    rate = study.rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    m = {path: 0.9 * state[0][path] + 0.1 * g for path, g in gradients.items()}
    v = {path: 0.999 * state[1][path] + 0.001 * g * g for path, g in gradients.items()}
    return {path: w - rate * m[path] / (jnp.sqrt(v[path]) + 1e-7) for path, w in weights.items()}, (m, v)


def trained(study, model, loss_of, weights, x, y):
    """Returns a function that makes a step and returns its loss. `model` maps weights, x, whether it
    trains, and a key of random numbers to a value and the moving averages that changed."""
    fixed = {path: value for path, value in weights.items() if "/moving_" in path}
    free = {path: value for path, value in weights.items() if path not in fixed}
    zeros = jax.tree.map(jnp.zeros_like, free)
    state = {"adam": (zeros, jax.tree.map(jnp.copy, zeros)), "momentum": zeros, "sgd": ()}[study.optimizer]
    all_of_it = [free, fixed, state]

    def loss(free, fixed, x, y, key):
        value, moved = model(free | fixed, x, True, key)
        return loss_of(value, x, y), moved

    def step(free, fixed, state, x, y, count):
        key = jax.random.fold_in(jax.random.key(1), count)
        (value, moved), gradients = jax.value_and_grad(loss, has_aux=True)(free, fixed, x, y, key)
        free, state = updated(study, free, gradients, state, count.astype(jnp.float32))
        return value, free, fixed | moved, state

    compiled, done = jax.jit(step, donate_argnums=(0, 1, 2)), 0

    def train():
        nonlocal all_of_it, done
        done += 1
        value, *all_of_it = compiled(*all_of_it, x, y, jnp.int32(done))
        return float(value)

    return train


def model_row(work, kind, batch, length, check, file):
    study = studies.STUDIES[work]
    weights = {path: jnp.array(value) for path, value in load_file(file).items()}
    if whole := works.function_of(work, "jax_prepared"):
        return whole(weights, batch)
    x, y = jax.tree.map(jnp.asarray, study.data(batch, length))
    if own := works.function_of(work, "jax_model"):
        model = lambda weights, x, training, key: own(weights, x, training)  # noqa: E731
    else:
        layers = study.layers_for(check)
        model = lambda *arguments: network(layers, *arguments)  # noqa: E731
    if kind == "inference":
        compiled = jax.jit(lambda weights, x: model(weights, x, False, None)[0])

        def predict():
            return compiled(weights, x).block_until_ready()

        return protocol.Prepared(predict, lambda count: digest(predict()))
    loss_of = works.function_of(work, "jax_loss") or (lambda scores, x, y: entropy(study, scores, y))
    train = trained(study, model, loss_of, weights, x, y)
    return protocol.Prepared(train, lambda count: [train() for _ in range(count)])


def tiny(kind, operands):
    """Runs operation by operation, which JAX is not made for; a gradient would be traced anew every
    time."""
    a, b = operands
    if kind == "gradient":
        raise protocol.Failure("JAX differentiates functions, not single operations")

    def step():
        z = a
        for _ in range(operations.TINY):
            z = z + b
        return z.block_until_ready()

    return protocol.Prepared(step, lambda count: digest(step()), operations.TINY)


def adam(operands):
    """Updates of an array whose gradient is given."""
    weight, gradient = operands
    study = studies.Study(None, (), "adam", 1e-3)
    zeros = {"w": jnp.zeros_like(weight)}
    now, done = ({"w": weight}, (zeros, jax.tree.map(jnp.copy, zeros))), 0
    update = jax.jit(lambda w, state, g, step: updated(study, w, {"w": g}, state, step), donate_argnums=(0, 1))

    def step():
        nonlocal now, done
        done += 1
        now = jax.block_until_ready(update(*now, gradient, jnp.float32(done)))

    return protocol.Prepared(step, lambda count: [step() for _ in range(3)] and digest(now[0]["w"]))


def prepare(row, check, file):
    work, kind, size, length = row
    if work in studies.STUDIES:
        return model_row(work, kind, size, length, check, file)
    operands = [jnp.asarray(each) for each in operations.operands(work, size)]
    if work == "add":
        return tiny(kind, operands)
    if work == "adam":
        return adam(operands)
    function = jax_operations.of(work, random=not check)
    if kind == "gradient":
        compiled = jax.jit(jax.grad(lambda *x: jnp.mean(jnp.square(function(*x))), tuple(range(len(operands)))))
    else:
        compiled = jax.jit(lambda *x: (function(*x),))

    def step():
        return jax.block_until_ready(compiled(*operands))

    return protocol.Prepared(step, lambda count: [number for each in step() for number in digest(each)])


jax.config.update("jax_default_matmul_precision", "highest")
protocol.serve(prepare)
