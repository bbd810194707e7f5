"""Where ours differs from PyTorch on purpose: which operations, which of value, gradient and second derivative, where, and why.

A place is a function of the call (with ours and theirs, the results) and the operands, broadcast; of operations that are not
elementwise it says of the whole call. Of the reasons: JAX is 0.10, TensorFlow 2.21, PyTorch 2.15; "the limit" is what the others miss.
"""
import re

import numpy

GRADIENT, SECOND = ("gradient",), ("second derivative",)
DERIVATIVES, ALL = GRADIENT + SECOND, ("value",) + GRADIENT + SECOND
nan, inf = numpy.isnan, numpy.isinf


def far_out(c, *x):
    """Theirs is NaN where an operand is infinite or so large or small that what it is made of is."""
    edge = numpy.zeros(c.shape, bool)
    for v in x:
        edge |= ~(numpy.abs(v) < 80) | (numpy.abs(v) < 1e-30)
    return edge & nan(c.theirs) & ~nan(c.ours)


def vanished(c, *x):
    """Both are less than what rounds to 0 beside the function's values of order one."""
    bound = 32 * numpy.finfo(c.ours.dtype).eps
    return (numpy.abs(c.ours) < bound) & (numpy.abs(c.theirs) < bound)


def any_nan(c, *x):
    return numpy.logical_or.reduce([nan(v) for v in numpy.broadcast_arrays(*x)])


def not_finite(c, *x):
    return any(not numpy.isfinite(v).all() for v in x)


def within(c, roundings, terms):
    return numpy.abs(c.ours - c.theirs) < roundings * numpy.finfo(c.ours.dtype).eps * terms


def beyond_reduction(c, x):
    return numpy.abs(x) > (2.0 ** 19 if c.ours.dtype == numpy.float32 else 2.0 ** 30)


def on_bounds(c, x, low=None, high=None):
    low, high = (c.case.real if low is None else (low, high))
    return (x == low) | (x == high) | nan(x) | nan(low) | nan(high)


def at_number(c, x):
    return (x == c.case.real[0]) | nan(x)


CONVENTIONS = [
    (("sin", "cos", "tan"), ALL, beyond_reduction, "arguments beyond 2^19 and 2^30 are to be reduced first (docs/accuracy.md)"),
    (("sign",), ("value",), any_nan, "sign of NaN is NaN (NumPy, JAX, TensorFlow; PyTorch 0)"),
    (("abs",), GRADIENT, any_nan, "the gradient of abs at NaN is NaN (TensorFlow; PyTorch 0, JAX -1)"),
    (("acosh",), DERIVATIVES, lambda c, x: (x < 1) & nan(c.ours), "acosh has no derivative where it has no value (TensorFlow)"),
    (("acosh", "asinh", "atanh", "erf", "erfc", "gelu", "gelu_tanh", "swish", "mish", "hard_swish", "softplus", "softsign",
      "log_sigmoid", "atan2", "divide", "remainder"), ALL, far_out,
     "far out, where theirs is NaN by infinity times 0 or infinity minus infinity, ours is the limit"),
    (("gelu", "gelu_tanh"), ("value",), lambda c, x: x < -4, "gelu's tail has its digits (1 + erf cancels in PyTorch)"),
    (("softplus", "log_sigmoid", "swish", "sigmoid"), SECOND, vanished, "slopes of a sigmoid that rounds to 1 are 0"),
    (("relu", "relu6"), GRADIENT, any_nan, "relu and relu6 pass nothing at NaN (JAX, TensorFlow)"),
    (("elu of number", "selu"), DERIVATIVES, any_nan, "elu and selu: NaN stays NaN in derivatives (JAX)"),
    (("elu of number", "selu"), SECOND, lambda c, x: x == 0, "elu and selu at 0 are their left arms to any order (JAX)"),
    (("leaky_relu",), SECOND, lambda c, x, alpha: x == 0, "prelu at 0 is its left arm to any order"),
    (("hard_sigmoid",), GRADIENT, lambda c, x: numpy.abs(c.ours - c.theirs) < 1e-7 * numpy.abs(c.ours),
     "PyTorch's hardsigmoid multiplies by 1/6 rounded to float"),
    (("clip", "clip to numbers"), GRADIENT, on_bounds,
     "clip passes to x on its bounds (TensorFlow; JAX a half, PyTorch a half of tensors, 0 of numbers), nothing at NaN (JAX, TensorFlow)"),
    (("maximum", "minimum"), DERIVATIVES, any_nan, "maximum and minimum pass nothing where an operand is NaN (JAX)"),
    (("maximum with number", "minimum with number"), GRADIENT, at_number, "a number ties as a tensor does, a half to each (JAX)"),
    (("lerp",), ("value",), lambda c, x, y, t: within(c, 4, numpy.abs(x) + numpy.abs(y)),
     "lerp rounds as its terms do, where they cancel"),
    (("pow of number",), SECOND, any_nan, "pow of NaN: NaN stays NaN in derivatives"),
    (("lerp",), ALL, lambda c, *x: inf(x[0]) | inf(x[1]) | inf(x[2]), "lerp is x + t (y - x) for every t, beside infinities too"),
    (("hypot",), DERIVATIVES, lambda c, x, y: (x == 0) & (y == 0) | nan(c.theirs) & ~nan(c.ours),
     "the gradient of hypot is 0 at the origin, x / r far out (PyTorch NaN)"),
    (("atan2",), DERIVATIVES, lambda c, y, x: numpy.hypot(x, y) ** 2 < numpy.finfo(c.ours.dtype).tiny,
     "atan2 near the origin: the square of the distance underflows in PyTorch"),
    (("hypot", "atan2"), SECOND, lambda c, x, y: within(c, 512, 1 / numpy.hypot(x, y) + 1 / numpy.hypot(x, y) ** 2),
     "second derivatives of hypot and atan2 are differences of terms of 1 / r and 1 / r^2"),
    (("pow",), ("gradient by operand 1", "second derivative"), lambda c, x, n: (x <= 0) | inf(x),
     "pow of 0, of negative numbers and infinities: derivatives by the exponent differ in all libraries"),
    (("prod", "cumulative_product"), DERIVATIVES, lambda c, x: not_finite(c, x) & nan(c.theirs) & ~nan(c.ours),
     "the product of the others has a value beside an infinite or NaN factor, too (JAX, of prod TensorFlow; PyTorch divides)"),
    (("norm",), GRADIENT, lambda c, x: (x == 0) | not_finite(c, x),
     "norms at elements that are 0, beside infinities and NaN: a positive order gives 0 at zeros; all libraries differ"),
    (("norm",), SECOND, lambda c, x: not_finite(c, x) or (x == 0).any(), "the same of second derivatives"),
    (("pow",), SECOND, lambda c, x, n: n == 0, "pow to the 0: the mixed derivative is 1 / x, which PyTorch leaves out"),
    (("pow of number",), ALL, lambda c, x: nan(c.theirs) & (x == -numpy.inf), "pow(-inf, 0.5) is inf, as IEEE 754 says (JAX, TensorFlow)"),
    (("sort", "argsort", "top_k values"), ALL, lambda c, *x: any(nan(v).any() for v in x),
     "sort and top_k take NaN last in either direction; PyTorch takes it for the largest"),
    (("variance", "stddev"), GRADIENT, not_finite, "beside an infinity the slopes of variances are NaN (JAX, TensorFlow)"),
]
TEXTS = [
    (None, "axis outside the rank", lambda case: case.operands[0].ndim == 0, "an axis of a scalar is refused (NumPy, JAX, TensorFlow)"),
    (("take_along",), r"is outside \[0", lambda case: (case.operands[1] < 0).any(),
     "negative indices are refused (torch.gather; take_along_dim counts them from the end)"),
    (("unique",), "shape", lambda case: case.operands[0].isnan().any(), "unique gives NaN once (NumPy, JAX)"),
]


class Call:
    def __init__(self, case, ours, theirs):
        self.case, self.ours, self.theirs, self.shape = case, ours, theirs, ours.shape


def places(call, where):
    """A convention's places as an array of the results' shape."""
    operands = [t.numpy(force=True) for t in call.case.operands]
    if not call.case.elementwise:
        return numpy.broadcast_to(where(call, *operands), call.shape)
    wide = numpy.broadcast_arrays(*operands)
    shape = wide[0].shape
    if shape == call.shape:
        return numpy.broadcast_to(where(call, *wide), shape)
    whole = Call(call.case, *(numpy.broadcast_to(v, shape) for v in (call.ours, call.theirs))) # a gradient that was summed
    found = numpy.broadcast_to(where(whole, *wide), shape)
    lead = len(shape) - len(call.shape)
    axes = tuple(range(lead)) + tuple(lead + i for i, n in enumerate(call.shape) if n == 1)
    return found.any(axis=axes).reshape(call.shape)


def excuse(case, which, what, wrong):
    """The reasons that apply, and the mask of what they leave."""
    if isinstance(what, str):
        return [reason for ours, text, holds, reason in TEXTS
                if (ours is None or case.ours in ours) and re.search(text, what) and holds(case)][:1], None
    call, reasons, left = Call(case, *what), [], wrong.copy()
    with numpy.errstate(all="ignore"):
        for ours, parts, where, reason in CONVENTIONS:
            if case.ours in ours and (which in parts or which.split(" by ")[0] in parts) and left.any():
                found = left & places(call, where)
                if found.any():
                    reasons.append(reason)
                    left = left & ~found
    return reasons, left
