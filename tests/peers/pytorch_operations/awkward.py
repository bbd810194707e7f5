"""Operands of ours beside PyTorch's samples: zeros of both signs, ones, what is subnormal, largest, infinite or NaN, ties and bounds; and
shapes without elements, of one element, broadcast, of primes."""
import itertools

import torch
from torch.testing._internal.common_methods_invocations import op_db

from mapping import BINARY, MAPPED, SWAPPED, UNARY


def numbers(dtype):
    info = torch.finfo(dtype)
    far = [710.0, -745.0] if dtype == torch.float64 else [88.5, -103.0]
    return [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 6.0, 20.0, -20.0, 1000.0, -1000.0, 1e-9, -1e-9, 0.25,
            info.smallest_normal / 16, -info.smallest_normal / 16, info.smallest_normal, info.max, -info.max, float("inf"),
            -float("inf"), float("nan"), *far]


LINES = [[], [0], [-0.0], [1], [-3], ["nan"], ["inf"], ["-inf"], [1, 1], [0, 0], [0, -0.0], [2, 1, 2, 0], [-1, -1, -1],
         [0, 3, 0, 2], [0, 2, 3], ["nan", 1, 2], [3, "nan", "nan"], ["inf", 1, 2], ["-inf", 1, 2], ["inf", "inf", 1],
         ["-inf", "-inf"], ["inf", "-inf"], ["inf", "nan"], ["-inf", "nan", 0], [1e4, -1e4, 0], [5, 4, 3, 2, 1, 5, 4],
         [0.5, -2, 1e-2, 3, -0.25, 1, 7]]
SHAPES = [(), (1,), (7,), (0,), (3, 0), (0, 3), (1, 1), (3, 1), (1, 5), (2, 3, 5), (2, 1, 3), (13, 11)]
PAIRS = [((), (5,)), ((3, 1), (1, 4)), ((2, 3, 5), (3, 1)), ((1,), (7,)), ((0,), (1,)), ((2, 0), (1, 1)), ((13, 1), (11,)), ((), ())]
ALONG = ("softmax", "log_softmax", "cumsum", "cumprod")
OVER = ("sum", "prod", "amax", "amin", "mean", "any", "all", "logsumexp", "count_nonzero")


def line(words, dtype):
    return torch.tensor([float(w) for w in words], dtype=dtype)


def calls(dtype, random):
    """(PyTorch's name, input, args, kwargs)"""
    x = torch.tensor(numbers(dtype), dtype=dtype)
    others = ("nn.functional.gelu", "nn.functional.elu", "nn.functional.leaky_relu", "nn.functional.softplus", "nn.functional.hardtanh",
              "zeros_like", "ones_like")
    for name in [*UNARY, *others]:
        yield name, x, (), {}
        for shape in SHAPES:
            yield name, random(shape), (), {}
    yield "nn.functional.gelu", x, (), {"approximate": "tanh"}
    for alpha in (0.3, -1.5, 0.0):
        yield "nn.functional.elu", x, (alpha,), {}
        yield "nn.functional.leaky_relu", x, (alpha,), {}
    a, b = (torch.tensor(v, dtype=dtype) for v in zip(*itertools.product(numbers(dtype), repeat=2)))
    for name in [*BINARY, *SWAPPED]:
        floor = {"rounding_mode": "floor"} if name == "div/floor_rounding" else {}
        yield name, a, (b,), floor
        for left, right in PAIRS:
            yield name, random(left).abs(), (random(right),), floor
        for value in (0.0, 1.0, 2.0, -1.0, 0.5, 3.0):
            yield name, x, (value,), floor
    few = [0.0, 1.0, -1.0, 2.0, float("inf"), -float("inf"), float("nan")]
    a, b, c = (torch.tensor(v, dtype=dtype) for v in zip(*itertools.product(few, repeat=3)))
    yield "clamp", a, (b, c), {}
    yield "lerp", a, (b, c), {}
    yield "where", a, (c > 0, b), {}
    yield "clamp", x, (-1.0, 1.0), {}
    yield "clamp", x, (2.0, -2.0), {}
    yield "nn.functional.prelu", torch.stack([x, x], 1), (torch.tensor([0.25, -0.5], dtype=dtype),), {}
    for words in LINES:
        v = line(words, dtype)
        forms = [(v, 0), (v.reshape(1, -1), 1), (v.reshape(-1, 1), 1), (torch.stack([v, v.flip(0)], 1), 0)]
        for w, axis in forms:
            for name in (*ALONG, "sort", "argsort"):
                yield name, w, (axis,), {}
            for name in (*OVER, "argmax", "argmin"):
                yield name, w, (axis,), {}
                yield name, w, (axis, True), {}
            for order in (2, 1, 0, 3, 0.5, float("inf"), -float("inf"), -1):
                yield "linalg.vector_norm", w, (order,), {"dim": axis}
            yield "sort", w, (axis, True), {}
            for correction in (0, 1):
                yield "var", w, (), {"dim": axis, "correction": correction}
                yield "std", w, (), {"dim": axis, "correction": correction}
            if w.shape[axis] > 1:
                yield "topk", w, (2, axis), {}
        for name in ("nonzero", "unique"):
            yield name, v, (), {}
    for shape in SHAPES:
        for axes in ([], *[[k] for k in range(len(shape))], *([[0, len(shape) - 1]] if len(shape) > 1 else [])):
            for keep in (False, True):
                for name in OVER:
                    if axes or name not in ("logsumexp", "prod", "any", "all"): # of no axes PyTorch reduces all or none
                        yield name, random(shape), (axes[0] if name == "prod" else tuple(axes), keep), {}


def cases(dtype):
    operations = {op.name + ("/" + op.variant_test_name if op.variant_test_name else ""): op for op in op_db}
    generator = torch.Generator().manual_seed(3)
    random = lambda shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
    for name, x, args, kwargs in calls(dtype, random):
        try:
            made = list(MAPPED[name](operations[name], x, args, kwargs))
        except (RuntimeError, IndexError, TypeError): # PyTorch refuses them
            continue
        for case in made:
            case.source = f"{name} of {'awkward numbers' if x.numel() > 20 else x.tolist() if x.ndim < 2 else list(x.shape)}"
            count = sum(t.dtype == dtype for t in case.operands)
            for by in range(count) if count > 1 and case.derivatives > 1 else [None]:
                each = type(case)(case.ours, case.operands, case.theirs, case.whole, case.real, case.derivatives, case.elementwise)
                each.source, each.by = case.source, by
                yield each
