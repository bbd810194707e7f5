"""The transformer of gpt.py writes a text, character by character, from keys and values that it
keeps (benchmarks/models/generation.hpp)."""

from works import gpt

STUDY = gpt.STUDY
ROWS = ("inference/1", "inference/8")
WRITTEN = 128


def step_flop(batch, length):
    """Of a character."""
    return 2 * batch * (gpt.BLOCKS * (12 * gpt.WIDTH**2 + WRITTEN * gpt.WIDTH) + gpt.WIDTH * 65)


def numbers(scores, characters):
    """The logits after the last character, and all characters."""
    import numpy
    from study import digest

    return digest(scores) + digest(numpy.asarray(characters, dtype=numpy.float32))


def torch_prepared(weights, batch, compiled):
    """`compiled(f)` is how a function of tensors is compiled, or None. Compiled code wants the same
    shapes at each step, so it attends to all of the capacity under a mask."""
    import protocol
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    model, first = gpt.torch_model(weights).eval(), torch.from_numpy(STUDY.data(batch, 0)[0].reshape(-1)[:batch].copy()).long()[:, None]
    size = gpt.BLOCKS, 2, batch, gpt.HEADS, gpt.TIME, gpt.WIDTH // gpt.HEADS
    kept, places = torch.zeros(size), torch.arange(gpt.TIME)

    def attend(i, place, whole):
        keys, values = kept[i]

        def attention(q, k, v):
            if whole:
                keys.index_copy_(2, place, k)
                values.index_copy_(2, place, v)
                return scaled_dot_product_attention(q, keys, values, attn_mask=(places <= place)[None, None, None])
            keys[:, :, place:place + 1], values[:, :, place:place + 1] = k, v
            return scaled_dot_product_attention(q, keys[:, :, :place + 1], values[:, :, :place + 1])

        return attention

    def scores(character, place, whole):
        h = model.embedding(character) + model.positions[place]
        for i, block in enumerate(model.blocks):
            h = block(h, attend(i, place, whole))
        return model.next(model.norm(h))

    def one(character, place):
        logits = scores(character, place, compiled is not None)
        return logits, logits.argmax(-1)

    step = compiled(one) if compiled else one

    def write():
        character, text = first, []
        with torch.inference_mode():
            for place in range(WRITTEN):
                logits, character = step(character, torch.tensor([place]) if compiled else place)
                text.append(character)
        return logits, torch.cat(text, 1)

    return protocol.Prepared(write, lambda count: numbers(*(each.numpy() for each in write())), WRITTEN)


def jax_prepared(weights, batch):
    """The whole text is one compiled function."""
    import jax
    import jax.numpy as jnp
    import protocol
    from jax import lax

    first = jnp.asarray(STUDY.data(batch, 0)[0].reshape(-1)[:batch])[:, None]
    size = gpt.BLOCKS, batch, gpt.TIME, gpt.HEADS, gpt.WIDTH // gpt.HEADS

    def step(weights, state, place):
        character, keys, values = state
        seen = (jnp.arange(gpt.TIME) <= place)[None, None, None]

        def attend(i):
            def attention(q, k, v):
                nonlocal keys, values
                keys = lax.dynamic_update_slice(keys, k[None], (i, 0, place, 0, 0))
                values = lax.dynamic_update_slice(values, v[None], (i, 0, place, 0, 0))
                return jax.nn.dot_product_attention(q, keys[i], values[i], mask=seen)

            return attention

        scores = gpt.jax_logits(weights, character, weights["positions"][place], attend)
        following = jnp.argmax(scores, -1)[:, None].astype(jnp.int32)
        return (following, keys, values), (scores, following)

    def text(weights, first):
        state = first, jnp.zeros(size), jnp.zeros(size)
        _, (scores, characters) = lax.scan(lambda state, place: step(weights, state, place), state, jnp.arange(WRITTEN))
        return scores[-1], jnp.moveaxis(characters[:, :, 0], 0, 1)

    compiled = jax.jit(text)

    def write():
        return jax.block_until_ready(compiled(weights, first))

    return protocol.Prepared(write, lambda count: numbers(*write()), WRITTEN)
