"""PyTorch as a contestant: with_torch.py eager|fused|channels_last|compiled|sparse THREADS [cpu|cuda].
Optimizers are fused except in eager, whose are as they come."""

import sys

import torch
from safetensors.numpy import load_file
from torch import nn

import operations
import protocol
import studies
import torch_operations
import works
from study import digest

WAY = sys.argv[1]
DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
ON_GPU = DEVICE != "cpu"
LAST = ("channels_last", "compiled")
torch.set_num_threads(int(sys.argv[2]))
if hasattr(torch, "set_num_interop_threads"):
    torch.set_num_interop_threads(1)


class Lstm(nn.Module):
    """Returns the last step's output. Ours has one bias, so the second one here is zero and stays
    zero."""

    def __init__(self, values, units):
        super().__init__()
        self.layer = nn.LSTM(values["kernel"].shape[0], units, batch_first=True)
        fill(self.layer.weight_ih_l0, values["kernel"].T)
        fill(self.layer.weight_hh_l0, values["recurrent_kernel"].T)
        fill(self.layer.bias_ih_l0, values["bias"])
        fill(self.layer.bias_hh_l0, 0 * values["bias"])
        self.layer.bias_hh_l0.requires_grad_(False)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


class Average(nn.Module):
    def forward(self, x):
        return x.mean(-1)


class Flatten(nn.Module):
    """Flattens in channels-last order, which our weights have."""

    def forward(self, x):
        return x.movedim(1, -1).flatten(1)


def convolution(values, options, extent, rank):
    kernel, stride, padding = options["kernel"], options["stride"], []
    if options["padding"] == "same":
        before, after = studies.same_padding(extent, kernel[0], stride)
        padding = [nn.ConstantPad1d((before, after), 0)] if before != after else []
        amount = before if before == after else 0
    else:
        amount = 0
    module = (nn.Conv1d if rank == 1 else nn.Conv2d)(values["kernel"].shape[-2], options["filters"], kernel, stride, amount)
    fill(module.weight, values["kernel"].transpose(rank + 1, rank, *range(rank)))
    fill(module.bias, values["bias"])
    return [*padding, module]


def fill(parameter, values):
    with torch.no_grad():
        parameter.copy_(torch.from_numpy(values.copy()))


def modules(study, check, weights, length, sparse):
    """Builds the model's layers; `length` is that of the series, followed through the layers."""
    rank, made = len(study.shape) - 1, []
    for kind, name, options in study.layers_for(check):
        values = {key.rpartition("/")[2]: value for key, value in weights.items() if name and key.rpartition("/")[0] == name}
        if kind == "convolution":
            made += convolution(values, options, length, rank)
            same = options["padding"] == "same"
            length = (length - (1 if same else options["kernel"][0])) // options["stride"] + 1
        elif kind == "dense":
            made.append(nn.Linear(*values["kernel"].shape))
            fill(made[-1].weight, values["kernel"].T)
            fill(made[-1].bias, values["bias"])
        elif kind == "normalization":
            made.append(nn.BatchNorm2d(values["gamma"].size, eps=1e-3, momentum=0.01))
        elif kind == "embedding":
            made.append(nn.Embedding(*values["embeddings"].shape, sparse=sparse))
            fill(made[-1].weight, values["embeddings"])
        elif kind == "bag":
            made.append(nn.EmbeddingBag(*values["embeddings"].shape, mode="mean", sparse=sparse))
            fill(made[-1].weight, values["embeddings"])
        elif kind == "lstm":
            made.append(Lstm(values, options["units"]))
        else:
            made.append({"relu": nn.ReLU, "pool": lambda: nn.MaxPool2d(2), "flatten": Flatten, "average": Average,
                         "dropout": lambda: nn.Dropout(options["rate"])}[kind]())
    return nn.Sequential(*made)


def optimizers_of(study, model, sparse):
    fused = ON_GPU or WAY not in ("eager", "sparse") or None

    def make(parameters):
        if study.optimizer == "adam":
            return torch.optim.Adam(parameters, lr=study.rate, eps=1e-7, fused=fused)
        return torch.optim.SGD(parameters, lr=study.rate, momentum=0.9 if study.optimizer == "momentum" else 0, fused=fused)

    if not sparse:
        return [make([p for p in model.parameters() if p.requires_grad])]
    table = [p for name, p in model.named_parameters() if name == "0.weight"]
    return [make([p for name, p in model.named_parameters() if name != "0.weight" and p.requires_grad]),
            torch.optim.SparseAdam(table, lr=study.rate, eps=1e-7)]


def compiled_form(function):
    """On a GPU launches are recorded and replayed, as in graph mode."""
    return torch.compile(function, dynamic=False, mode="reduce-overhead" if ON_GPU else None)


def wait():
    if ON_GPU:
        torch.cuda.synchronize()


def tensor_of(values, series_first):
    """An input as PyTorch's layers expect it: images with their channels first, or first in name;
    series, too, with `series_first`."""
    x = torch.from_numpy(values).to(DEVICE)
    if not x.is_floating_point():
        return x.long()
    if x.ndim == 4:
        return x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last if WAY in LAST else torch.contiguous_format)
    return x.transpose(1, 2).contiguous() if x.ndim == 3 and series_first else x


def profile(step, count=5):
    """Lists the kernels of some steps, the longest first."""
    from torch.profiler import ProfilerActivity

    for _ in range(2):
        step()
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA if ON_GPU else ProfilerActivity.CPU]) as measured:
        for _ in range(count):
            step()
    key = "self_device_time_total" if ON_GPU else "self_cpu_time_total"
    return measured.key_averages().table(sort_by=key, row_limit=40, max_name_column_width=100)


def model_row(work, kind, batch, length, check, file):
    study, sparse, compiled = studies.STUDIES[work], kind == "sparse_training", WAY == "compiled"
    x, y = study.data(batch, length)
    weights = load_file(file)
    if compiled:
        torch._dynamo.reset()  # compilations for other sizes count towards a limit
    if whole := works.function_of(work, "torch_prepared"):
        return whole(weights, batch, compiled_form if compiled else None)
    make = works.function_of(work, "torch_model")
    model = (make(weights) if make else modules(study, check, weights, length, sparse)).to(DEVICE)
    if len(study.shape) == 3 and WAY in LAST:
        model = model.to(memory_format=torch.channels_last)
    x = tuple(tensor_of(each, not make) for each in (x if isinstance(x, tuple) else (x,)))
    y = torch.from_numpy(y).to(DEVICE)
    if kind == "inference":
        forward = compiled_form(model.eval()) if compiled else model.eval()

        def step():
            with torch.inference_mode():
                result = forward(*x)
            wait()
            return result

        return protocol.Prepared(step, lambda count: digest(step().cpu().numpy()))
    entropy = nn.functional.cross_entropy if study.classes > 2 else nn.functional.binary_cross_entropy_with_logits
    own = works.function_of(work, "torch_loss")
    labels, optimizers = y.long() if study.classes > 2 else y, optimizers_of(study, model.train(), sparse)

    def loss():
        return own(model(*x), x, labels) if own else entropy(model(*x), labels)

    forward = compiled_form(loss) if compiled else loss

    done = 0

    def train():
        nonlocal done
        done += 1
        if compiled and ON_GPU:
            torch.compiler.cudagraph_mark_step_begin()
        for each in optimizers:
            each.zero_grad(set_to_none=True)
        value = forward()
        value.backward()
        if check and isinstance(optimizers[0], torch.optim.Adam):
            # PyTorch adds epsilon to the corrected root, Keras and TapeGraph to the other one.
            optimizers[0].param_groups[0]["eps"] = 1e-7 / (1 - 0.999**done) ** 0.5
        for each in optimizers:
            each.step()
        number = value.item()
        wait()
        return number

    return protocol.Prepared(train, lambda count: [train() for _ in range(count)], profile=lambda: profile(train))


def lstm_operation(arrays):
    names = ("kernel", "recurrent_kernel", "bias")
    module = Lstm(dict(zip(names, arrays[1:])), arrays[2].shape[0])
    parameters = [module.layer.weight_ih_l0, module.layer.weight_hh_l0, module.layer.bias_ih_l0]
    module.to(DEVICE)
    return (lambda x, *_: module(x), [torch.from_numpy(arrays[0]), *parameters], [None, (1, 0), (1, 0), None])


def tiny(kind, arrays):
    a, b = map(torch.from_numpy, arrays)
    a.requires_grad_(kind == "gradient")

    def chain():
        z = a
        for _ in range(operations.TINY):
            z = z + b
        return z

    def step():
        return torch.autograd.grad(chain().sum(), a)[0] if kind == "gradient" else chain()

    return protocol.Prepared(step, lambda count: digest(step().numpy()), operations.TINY)


def adam(arrays):
    """Updates of a parameter whose gradient is given."""
    parameter = nn.Parameter(torch.from_numpy(arrays[0]).to(DEVICE))
    parameter.grad = torch.from_numpy(arrays[1]).to(DEVICE)
    optimizer = torch.optim.Adam([parameter], lr=1e-3, eps=1e-7, fused=ON_GPU or WAY != "eager" or None)
    update = compiled_form(optimizer.step) if WAY == "compiled" else optimizer.step

    def step():
        update()
        wait()

    def numbers(count):
        for done in range(1, 4):  # where epsilon is added: see model_row
            optimizer.param_groups[0]["eps"] = 1e-7 / (1 - 0.999**done) ** 0.5
            step()
        return digest(parameter.detach().cpu().numpy())

    return protocol.Prepared(step, numbers)


def operation_row(work, kind, size, check):
    arrays = operations.operands(work, size)
    if work == "adam":
        return adam(arrays)
    if work == "add" and ON_GPU:
        raise protocol.Failure("additions of a few numbers are compared on the CPU")
    if work == "add":
        return tiny(kind, arrays)
    if work == "lstm":
        function, tensors, orders = lstm_operation(arrays)
    else:
        function, tensors, orders = torch_operations.of(work, arrays, last=WAY in LAST, random=not check)
    tensors = [each.to(DEVICE) for each in tensors]

    def numbers(results):
        results = [result.detach().cpu() for result in results]
        return [number for result, order in zip(results, orders)
                for number in digest((result.permute(order) if order else result).numpy())]

    if kind == "forward":
        compiled = compiled_form(function) if WAY == "compiled" else function

        def step():
            with torch.inference_mode():
                result = compiled(*tensors)
            wait()
            return result

        return protocol.Prepared(step, lambda count: numbers([step()]))
    for tensor in tensors:
        tensor.requires_grad_(True)

    def loss(*operands):
        return function(*operands).square().mean()

    compiled = compiled_form(loss) if WAY == "compiled" else loss

    def differentiate():
        gradients = torch.autograd.grad(compiled(*tensors), tensors)
        wait()
        return gradients

    return protocol.Prepared(differentiate, lambda count: numbers(differentiate()))


def prepare(row, check, file):
    work, kind, size, length = row
    work, _, precision = work.partition("@")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = ON_GPU
    if work in studies.STUDIES:
        return model_row(work, kind, size, length, check, file)
    return operation_row(work, kind, size, check)


def forgotten():
    if ON_GPU:  # others need the memory
        torch.cuda.empty_cache()


protocol.serve(prepare, forgotten)
