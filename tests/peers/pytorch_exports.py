"""Networks exported by PyTorch, by both of its exporters, loaded, compared with onnxruntime, and exported again: pytorch_exports.py PROGRAM [--folder FOLDER] [NAME...]

PROGRAM is tests/peers/pytorch_exports.cpp. The files are written to FOLDER, or to a folder of the moment. Weights are random. Axes of the batch have no number: outputs are compared at two batches.
"""

import argparse
import contextlib
import io
import logging
import pathlib
import shutil
import sys
import tempfile
import warnings

sys.path.pop(0)  # whose onnx.py is another
try:
    import numpy  # noqa: F401
    import onnx
    import onnxruntime  # noqa: F401
    import onnxscript  # noqa: F401
    import torch
    from torch import nn
except (ImportError, OSError) as missing:
    print(f"left out: {missing}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE / "pytorch_exports")]
import exported_again  # noqa: E402
import onnx_stored  # noqa: E402
import networks  # noqa: E402


OLDER_LACKS = {"rms_norm", "encoder_any_length"}  # an operator; masks of a length that is no number

NEEDS_NUMBERS = {"embedding_bag", "resized_odd"}  # a loop over the batch, and sizes of images: not written again for any of them


def settle(module):
    """Gives batch normalization random averages, as training would."""
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            part.running_mean.normal_(std=0.1)
            part.running_var.uniform_(0.5, 2)


def export(case, file, dynamo):
    given = case.inputs(2)
    names = [f"in_{k}" for k in range(len(given))]
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), torch.no_grad():
        if dynamo:
            dims = [{axis: torch.export.Dim.DYNAMIC for axis in case.axes} for _ in given]
            torch.onnx.export(case.module, given, str(file), dynamo=True, input_names=names, dynamic_shapes=tuple(dims), external_data=False)
        else:
            torch.onnx.export(case.module, given, str(file), dynamo=False, input_names=names, dynamic_axes={name: case.axes for name in names})


def write(folder, chosen):
    """The folders of all exports that PyTorch makes, and what it does not."""
    folders, failed = [], []
    for case_name, make in networks.all_cases().items():
        if chosen and case_name not in chosen:
            continue
        for dynamo in (False, True):
            if not dynamo and case_name in OLDER_LACKS:
                continue
            torch.manual_seed(7)
            case = make()
            settle(case.module)
            into = folder / f"{case_name}{'_dynamo' if dynamo else ''}"
            shutil.rmtree(into, ignore_errors=True)
            into.mkdir(parents=True)
            try:
                export(case, into / "model.onnx", dynamo)
            except Exception as why:  # PyTorch's own
                failed.append(f"not exported {into.name}: {str(why).strip().splitlines()[0][:200]}")
                continue
            onnx_stored.store(into, onnx.load(into / "model.onnx"), [[x.numpy() for x in case.inputs(n)] for n in (2, 3)])
            folders.append(into)
    return folders, failed


# Of 88: 44 networks by two exporters. torch 2.15 writes 86.
LEAST_EXPORTED = 80


def main():
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.backends.mha.set_fastpath_enabled(False)  # its operators are no exporter's
    options = argparse.ArgumentParser()
    options.add_argument("program")
    options.add_argument("names", nargs="*")
    options.add_argument("--folder", type=pathlib.Path)
    given = options.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as moment:
        folders, failed = write(given.folder or pathlib.Path(moment), given.names)
        print("\n".join(failed))
        if not folders or (not given.names and len(folders) < LEAST_EXPORTED):
            sys.exit(f"only {len(folders)} files were exported")
        onnx_stored.compare(given.program, folders)
        if not exported_again.compare(folders, NEEDS_NUMBERS):
            sys.exit(1)


main()
