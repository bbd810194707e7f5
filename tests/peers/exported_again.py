"""Files that tests/peers/pytorch_exports.cpp wrote again, by ONNX's checker and onnxruntime. Scripts beside this one append their folder to sys.path."""

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper


def tensor(file):
    return numpy_helper.to_array(onnx.load_tensor(file))


def check_again(folder, file):
    """What is wrong with a file that we exported again, by ONNX's checker and onnxruntime."""
    onnx.checker.check_model(str(file), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    worst = 0.0
    for data in sorted(folder.glob("test_data_set_*")):
        given = {x.name: tensor(data / f"input_{k}.pb") for k, x in enumerate(session.get_inputs())}
        for k, got in enumerate(session.run(None, given)):
            expected = tensor(data / f"output_{k}.pb")
            if got.shape != expected.shape or got.dtype != expected.dtype:
                return f"{got.dtype} {got.shape} for {expected.dtype} {expected.shape}"
            if expected.size:
                a, b = got.astype(float), expected.astype(float)
                with numpy.errstate(invalid="ignore"):  # of infinities; what is then NaN counts as infinite
                    off = numpy.where((a == b) | (numpy.isnan(a) & numpy.isnan(b)), 0, numpy.abs(a - b))
                scale = numpy.max(numpy.abs(b), where=numpy.isfinite(b), initial=1)
                worst = max(worst, float(numpy.max(numpy.nan_to_num(off, nan=numpy.inf)) / scale))
    return "" if worst <= 1e-4 else f"differs by {worst:.1e}"


def compare(folders, needs_numbers):
    wrong, count = [], 0
    for folder in folders:
        if folder.name.removesuffix("_dynamo") not in needs_numbers and len(list(folder.glob("again_*.onnx"))) < 2:
            wrong.append(f"not again {folder.name}")
        for file in sorted(folder.glob("again_*.onnx")):
            count += 1
            try:
                why = check_again(folder, file)
            except Exception as error:
                why = str(error).strip().splitlines()[0][:300]
            if why:
                wrong.append(f"wrong {folder.name}/{file.name}: {why}")
    print("\n".join(wrong + [f"{count} exported again: {count - len(wrong)} equal"]))
    return not wrong
