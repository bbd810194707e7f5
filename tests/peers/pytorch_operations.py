"""PyTorch's table of operations (op_db) with the samples that it comes with, and awkward operands of ours: value, gradient and second
derivative by the library and by PyTorch, in double and in float.

Usage: pytorch_operations.py PROGRAM [NAME...]: of these operations of ours alone; ends with 77 where PyTorch is missing.

Where conventions differ, pytorch_operations/conventions.py says which is ours and why; every other difference fails.
"""
import pathlib
import subprocess
import sys
import tempfile
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]
try:
    import numpy
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)
sys.path.append(str(HERE / "pytorch_operations"))
import awkward
import conventions
import mapping
import mapping_of_shapes  # fills mapping.MAPPED, too

NAMES = {torch.float64: "f64", torch.float32: "f32", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool"}
TYPES = {"f64": numpy.float64, "f32": numpy.float32, "i64": numpy.int64, "i32": numpy.int32, "bool": numpy.bool_}
EPSILON = {torch.float64: 2.0 ** -52, torch.float32: 2.0 ** -23}


def samples(dtype):
    """The cases that PyTorch's samples make."""
    for op in op_db:
        name = op.name + ("/" + op.variant_test_name if op.variant_test_name else "")
        kind = torch.int64 if name in mapping.OF_INTEGERS else dtype
        if name not in mapping.MAPPED or not op.supports_dtype(kind, "cpu"):
            continue
        for i, sample in enumerate(op.reference_inputs("cpu", kind, requires_grad=False)):
            x = sample.input
            if isinstance(x, torch.Tensor) and (x.dtype != kind or x.numel() > 5000): # promoted types; slow, and nothing new
                continue
            if not isinstance(x, (torch.Tensor, list, tuple)):
                continue
            for case in mapping.MAPPED[name](op, sample.input, tuple(sample.args), dict(sample.kwargs)):
                case.source = f"{name} sample {i}"
                yield name, case


def theirs_of(case, dtype, generator):
    """PyTorch's value, gradients and second derivatives, and the cotangents that made them."""
    operands = [t.detach().clone().contiguous() for t in case.operands]
    sources = [t.requires_grad_() for t in operands if t.dtype == dtype]
    value = case.theirs(*operands)
    case.operands = [t.detach() for t in operands]
    result, cotangents = [value.detach()], []
    if case.derivatives == 0 or value.dtype != dtype or not sources:
        case.derivatives = 0
        return result, cotangents
    given = getattr(case, "given", None)

    def random(t):
        return given[len(cotangents)] if given else (torch.rand(t.shape, generator=generator, dtype=torch.float64) + 0.5).to(dtype)

    cotangents.append(random(value))
    if value.requires_grad:
        try:
            first = torch.autograd.grad(value, sources, cotangents[0], create_graph=True, allow_unused=True, materialize_grads=True)
        except (RuntimeError, NotImplementedError): # PyTorch knows no derivative
            case.derivatives = 0
            return result, []
    else:
        first = [torch.zeros_like(s) for s in sources]
    result += [g.detach() for g in first]
    if case.derivatives == 1:
        return result, cotangents
    chosen = getattr(case, "by", None)
    for k, g in enumerate(first):
        cotangents.append(random(g) if chosen in (None, k) else None)
    total = sum((g * v).sum() for g, v in zip(first, cotangents[1:]) if v is not None)
    if total.requires_grad:
        try:
            second = torch.autograd.grad(total, sources, allow_unused=True, materialize_grads=True)
        except (RuntimeError, NotImplementedError): # no second derivative there
            case.derivatives, cotangents = 1, cotangents[:1]
            return result, cotangents
    else:
        second = [torch.zeros_like(s) for s in sources]
    return result + [g.detach() for g in second], cotangents


def write_array(out, t):
    if t is None:
        out.write(b"none\n")
        return
    out.write(" ".join(map(str, [NAMES[t.dtype], t.ndim, *t.shape])).encode() + b"\n")
    out.write(t.contiguous().numpy(force=True).tobytes())


def write_case(out, case, dtype, cotangents):
    words = [NAMES[dtype], case.derivatives, len(case.whole), *case.whole, len(case.real), *map(repr, case.real),
             len(case.operands), len(cotangents)]
    out.write(f"{case.ours}\n{' '.join(map(str, words))}\n".encode())
    for t in [*case.operands, *cotangents]:
        write_array(out, t)


def read_answers(path, count):
    with open(path, "rb") as file:
        for _ in range(count):
            line = file.readline().decode()
            if not line.startswith("ok"):
                yield line.strip() or "error the program ended"
                continue
            arrays = []
            for _ in range(int(line.split()[1])):
                name, _, *dims = file.readline().decode().split()
                dims = [int(d) for d in dims]
                size = int(numpy.prod(dims, dtype=numpy.int64)) * numpy.dtype(TYPES[name]).itemsize
                arrays.append(numpy.frombuffer(file.read(size), TYPES[name]).reshape(dims))
            yield arrays


def in_double(case, result, cotangents):
    """PyTorch's results of the same numbers in double."""
    to = lambda t: t.double() if t is not None and t.dtype == torch.float32 else t
    wide = type(case)(case.ours, map(to, case.operands), case.theirs, derivatives=case.derivatives)
    wide.given = [to(t) for t in cotangents]
    return [t.numpy(force=True) for t in theirs_of(wide, torch.float64, None)[0]]


def far(case, part, ours, theirs, epsilon):
    """Where two arrays differ by more than rounding: a few units in the last place of elementwise values, of sums and
    derivatives relative to the largest numbers that are added."""
    if ours.dtype.kind != "f":
        return ours != theirs
    with numpy.errstate(all="ignore"):
        same = (ours == theirs) | (numpy.isnan(ours) & numpy.isnan(theirs))
        finite = theirs[numpy.isfinite(theirs)]
        largest = numpy.abs(finite).max(initial=0)
        allowed = 64 * epsilon * numpy.abs(theirs)
        if not case.elementwise:
            allowed = allowed + 2048 * epsilon * (max(largest, 1) if part else largest)
        elif part:
            allowed = 4096 * epsilon * (numpy.abs(theirs) + min(largest, 1))
        return ~same & ~(numpy.abs(ours - theirs) <= allowed + numpy.finfo(ours.dtype).tiny)


PARTS = ("value", "gradient", "second derivative")


def differences(case, answer, result, dtype, cotangents):
    """(part, what differs, a mask or None) of each difference."""
    if isinstance(answer, str):
        yield "value", answer, None
        return
    sources = sum(t.dtype == dtype for t in case.operands)
    for k, (ours, theirs) in enumerate(zip(answer, result)):
        part = 0 if k == 0 else 1 + (k - 1) // sources
        which = PARTS[part] + (f" by operand {(k - 1) % sources}" if part and sources > 1 else "")
        theirs = theirs.numpy(force=True)
        if ours.shape != theirs.shape:
            yield which, f"shape {list(ours.shape)}, PyTorch {list(theirs.shape)}", None
            continue
        if ours.dtype.kind != theirs.dtype.kind:
            yield which, f"type {ours.dtype}, PyTorch {theirs.dtype}", None
            continue
        wrong = far(case, part, ours, theirs, EPSILON[dtype])
        if wrong.any() and dtype == torch.float32 and theirs.dtype == numpy.float32: # what double says, rounded, is right, too
            exact = in_double(case, result, cotangents)
            if k < len(exact):
                with numpy.errstate(all="ignore"):
                    wrong &= far(case, part, ours, exact[k].astype(numpy.float32), EPSILON[dtype])
        if wrong.any():
            yield which, (ours, theirs), wrong
    if len(answer) != len(result):
        yield "value", f"{len(answer)} results, PyTorch {len(result)}", None


def shown(case, what, wrong, place=0):
    if isinstance(what, str):
        return f"{what}; operands {[list(t.shape) for t in case.operands]}"
    ours, theirs = what
    at = tuple(int(v) for v in numpy.argwhere(wrong)[place]) if wrong.ndim else ()
    text = f"{ours[at]}, PyTorch {theirs[at]}"
    if case.elementwise:
        try:
            operands = [float(t.expand(ours.shape)[at]) for t in case.operands]
            return f"{text}; operands {operands}"
        except RuntimeError:
            pass
    small = all(t.numel() <= 12 for t in case.operands)
    return f"{text} at {list(at)} of {list(ours.shape)}; operands {[t.tolist() if small else list(t.shape) for t in case.operands]}"


def main():
    warnings.simplefilter("ignore")
    program, *only = sys.argv[1:]
    listed = "-v" in only
    only = [name for name in only if name != "-v"]
    known = set(subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines())
    torch.manual_seed(1)
    failures, excused, names, counts = {}, {}, set(), [0, 0]
    for dtype in (torch.float64, torch.float32):
        generator = torch.Generator().manual_seed(2)
        cases = []
        for origin, made in ((0, samples(dtype)), (1, ((None, c) for c in awkward.cases(dtype)))):
            for name, case in made:
                if case.ours not in known:
                    raise SystemExit(f"the program does not know {case.ours}")
                if only and case.ours not in only:
                    continue
                try:
                    result, cotangents = theirs_of(case, dtype, generator)
                except (RuntimeError, IndexError, TypeError):
                    if origin == 0:
                        raise
                    continue # PyTorch refuses what ours need not
                if any(t.dtype not in NAMES for t in [*case.operands, *result]):
                    continue
                counts[origin] += 1
                names.add(name)
                cases.append((case, result, cotangents))
        with tempfile.TemporaryDirectory() as folder:
            questions, answers = pathlib.Path(folder, "questions"), pathlib.Path(folder, "answers")
            with open(questions, "wb") as out:
                for case, _, cotangents in cases:
                    write_case(out, case, dtype, cotangents)
            subprocess.run([program, questions, answers], check=True)
            for (case, result, cotangents), answer in zip(cases, read_answers(answers, len(cases))):
                for which, what, wrong in differences(case, answer, result, dtype, cotangents):
                    reasons, left = conventions.excuse(case, which, what, wrong)
                    for reason in reasons:
                        excused[reason] = excused.get(reason, 0) + 1
                    if wrong is None and not reasons or wrong is not None and left.any():
                        for place in range(left.sum() if listed and case.elementwise and wrong is not None else 1):
                            text = f"{NAMES[dtype]} {case.source}: {shown(case, what, left, place)}"
                            failures.setdefault((case.ours, which), []).append(text)
    for (ours, which), found in sorted(failures.items()):
        print(f"{ours}, {which}: {len(found)} differences")
        for text in found if listed else found[:4]:
            print(f"    {text}")
    print(f"{len(names - {None})} of PyTorch's operations, {counts[0]} of its samples and {counts[1]} of ours; "
          f"{sum(map(len, failures.values()))} differences beside {sum(excused.values())} by convention:")
    for reason, count in sorted(excused.items()):
        print(f"    {count}: {reason}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
