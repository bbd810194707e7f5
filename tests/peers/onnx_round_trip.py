"""Every model of the program of onnx.cpp: exported, made a header and a safetensors file of by tools/onnx_to_model.py, compiled, and run again.

Usage: onnx_round_trip.py PROGRAM COMPILER [FLAGS...]; ends with 77 where a library is missing.
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != HERE]
try:
    import numpy
    import onnx  # noqa: F401
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


peer = loaded("peer_onnx", HERE / "onnx.py")
tool = loaded("onnx_to_model", HERE.parent.parent / "tools" / "onnx_to_model.py")

MAIN = """
#include <tapegraph/io/weights.hpp>
#include <cstdio>
#include <fstream>
namespace tg = tapegraph;
template <class T>
tg::tensor<T> read(const char* file, const tg::shape& dims) {
    auto x = tg::tensor<T>::uninitialized(dims);
    std::ifstream(file, std::ios::binary).read(static_cast<char*>(x.write()), static_cast<std::streamsize>(x.size() * static_cast<std::int64_t>(sizeof(T))));
    return x;
}
template <class T>
void write(const char* file, const tg::tensor<T>& x) {
    std::ofstream(file, std::ios::binary).write(static_cast<const char*>(x.read()), static_cast<std::streamsize>(x.size() * static_cast<std::int64_t>(sizeof(T))));
}
"""
TYPES = {"float32": "float", "int32": "std::int32_t", "int64": "std::int64_t", "float64": "double"}


def driver(names, models):
    """A program that runs the converted models on the stored inputs."""
    text = "".join(f'#include "{n}.hpp"\n' for n in names) + MAIN + "int main() {\n"
    for name, _, runs in models:
        if name not in names:
            continue
        text += f'    {{\n        auto m = tg::compile<tg::eager>({name}{{}}, {name}::inputs{{}});\n        m.load("{name}.safetensors");\n'
        for k, (inputs, _) in enumerate(runs):
            x = inputs[0]
            x.tofile(f"{name}.{k}.in")
            dims = ", ".join(map(str, x.shape))
            text += f'        write("{name}.{k}.out", tg::tensor<float>(m.predict(read<{TYPES[str(x.dtype)]}>("{name}.{k}.in", {{{dims}}}))));\n'
        text += "    }\n"
    return text + "}\n"


def main():
    import os
    program, compiler = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.chdir(folder)
        listing = subprocess.run([program, name], check=True, capture_output=True, text=True).stdout
        models = peer.cases(listing, folder)
        names = []
        for model, _, _ in models:
            problems = tool.convert(folder / f"{model}.onnx", model, folder / f"{model}.hpp", folder / f"{model}.safetensors")
            if problems:
                print(f"{model}: {'; '.join(problems)}")
                wrong.append(model)
            else:
                names.append(model)
        (folder / "driver.cpp").write_text(driver(names, models))
        subprocess.run(compiler + [f"-I{folder}", "driver.cpp", "-o", "driver"], check=True)
        subprocess.run([str(folder / "driver")], check=True)
        for model, _, runs in models:
            if model not in names:
                continue
            worst = max(peer.distance(numpy.fromfile(f"{model}.{k}.out", numpy.float32).reshape(y.shape), y) for k, (_, y) in enumerate(runs))
            print(f"{model:20} {'ok' if worst <= 1e-5 else 'WRONG'}  {worst:.1e}")
            if worst > 1e-5:
                wrong.append(model)
    sys.exit(f"not equal: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
