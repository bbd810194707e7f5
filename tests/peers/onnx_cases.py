"""ONNX's backend test suite on models that are loaded: onnx_cases.py PROGRAM [FOLDER]

PROGRAM is tests/peers/onnx_cases.cpp. The cases are those that the installed `onnx` carries or makes; they are written to FOLDER, or to a
folder of the moment. Every case ends as equal, refused by name, or wrong; fails if one is wrong, or fewer are equal than there were.
"""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.pop(0)  # whose onnx.py is another
try:
    import numpy
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case import node as node_cases
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

# Of a suite of 1,884 node cases and 132 others (onnx 1.23). Older ones have fewer.
LEAST_SHARE_EQUAL = 0.86
# Their stored outputs are the rounding errors of zeros, 1.9e-7, beside a tolerance of 1e-7; ours are 3e-15.
NOISE = {"test_dft_inverse", "test_dft_inverse_opset19"}
# Their stored outputs are numbers that numpy drew.
DRAWN = {f"test_bernoulli{kind}{form}" for kind in ("", "_double", "_seed") for form in ("", "_expanded")} | {
    f"test_training_dropout{kind}" for kind in ("", "_default", "_default_mask", "_mask")}


def write_case(case, folder):
    """A case as the files that onnx's own data have; what is no tensor is left out, and the program refuses the model by name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    graph = case.model.graph
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir(exist_ok=True)
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                try:
                    tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(numpy.asarray(value), info.name)
                except Exception:  # sequences, maps and absent values
                    continue
                (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def folders_of_cases(into):
    for case in node_cases.collect_testcases(None):
        write_case(case, into / case.name)
    found = sorted(p.parent for p in into.glob("*/model.onnx"))
    stored = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind in ("simple", "pytorch-operator", "pytorch-converted"):
        found += sorted(p.parent for p in (stored / kind).glob("*/model.onnx"))
    return found


def main(program, into):
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    lines = []
    folders = folders_of_cases(into)
    for i in range(0, len(folders), 200):
        run = subprocess.run([program, *map(str, folders[i:i + 200])], env=environment, capture_output=True, text=True)
        lines += run.stdout.splitlines()
    counts = collections.Counter(line.split(" ", 1)[0] for line in lines)
    wrong = [line for line in lines if line.startswith("wrong") and line.split(" ")[1].rstrip(":") not in NOISE | DRAWN]
    reasons = collections.Counter(line.rsplit(": ", 1)[-1][:70] for line in lines if line.startswith("refused"))
    for reason, count in reasons.most_common():
        print(f"refused {count:4}: {reason}")
    print(f"{len(folders)} cases: " + ", ".join(f"{counts[k]} {k}" for k in ("equal", "refused", "wrong")))
    for line in wrong:
        print(line)
    if len(lines) != len(folders) or wrong or counts["equal"] < LEAST_SHARE_EQUAL * len(folders):
        sys.exit(1)


if len(sys.argv) > 2:
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
else:
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1], pathlib.Path(folder))
