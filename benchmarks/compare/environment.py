"""Describes what is compared and where: the peers' virtual environment, our programs, and the
machine."""

import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = {"pytorch": ["torch"], "tensorflow": ["tensorflow-cpu", "keras"], "jax": ["jax", "jaxlib"]}
FLAGS = ("-std=c++20", "-O2")
LIMITS = {"clang": ("-fconstexpr-steps=50000000", "-fbracket-depth=1024"),
          "gnu": ("-fconstexpr-ops-limit=2000000000", "-fconstexpr-loop-limit=10000000")}  # of constant evaluation, for deep models
SIZES = """
import importlib.metadata, json, re, sys
packages, todo = {}, [sys.argv[1]]
while todo:
    name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
    if name in packages:
        continue
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        continue
    files = [(str(f), f.locate()) for f in package.files or ()]
    packages[name] = sum(f.stat().st_size for text, f in files if f.is_file()), sum(
        f.stat().st_size for text, f in files if f.is_file() and re.search(r"cuda|nvshmem", f.name))
    for line in package.requires or ():
        if "extra ==" not in line:
            todo.append(re.match(r"[A-Za-z0-9._-]+", line)[0])
for_devices = re.compile("nvidia-|cuda-|triton")
print(json.dumps([sum(all for all, _ in packages.values()),
                  sum(all - cuda for name, (all, cuda) in packages.items() if not for_devices.match(name))]))
"""


def output_of(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def tail(error):
    text = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
    return text[-1][:200] if text else type(error).__name__


class Peers:
    """A virtual environment in which peers are installed on demand."""

    def __init__(self, folder, python=sys.executable, index=None):
        self.folder, self.base, self.index = pathlib.Path(folder), python, index
        self.python = self.folder / "bin" / "python"
        self.complaints = {}

    def install(self, peers):
        """Returns the peers that are installed afterwards; `complaints` collects the reasons for
        the others."""
        if not self.python.is_file():
            try:
                output_of([self.base, "-m", "venv", str(self.folder)])
            except (subprocess.CalledProcessError, OSError) as e:
                self.complaints = dict.fromkeys(peers, f"no virtual environment: {tail(e)}")
                return []
        wanted = re.sub(r"^#.*\n", "", (HERE / "requirements.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
        for peer in peers:
            stamp = self.folder / f"{peer}.installed"
            if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
                continue
            print(f"installing {peer} into {self.folder}", file=sys.stderr, flush=True)
            command = [str(self.python), "-m", "pip", "install", "-q", "-c", str(HERE / "requirements.txt")]
            command += ["--extra-index-url", self.index] if self.index else []
            try:
                output_of([*command, *PACKAGES[peer], "numpy", "safetensors"])
                stamp.write_text(wanted, encoding="utf-8")
            except (subprocess.CalledProcessError, OSError) as e:
                self.complaints[peer] = f"not installed: {tail(e)}"
        return [peer for peer in peers if peer not in self.complaints]

    def about(self, peer):
        """Returns versions, and bytes on the disk with all dependencies: in total, and without
        those that only GPUs use."""
        program = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
        versions = json.loads(output_of([str(self.python), "-c", program, *PACKAGES[peer], "numpy"]))
        everything, on_cpu = json.loads(output_of([str(self.python), "-c", SIZES, PACKAGES[peer][0]]))
        return {"versions": versions, "bytes": everything, "bytes_without_gpu": on_cpu}


def compiled_programs(folder, programs, compiler, flags=()):
    """Returns {(program, mode): path or complaint} of our contestants. `flags` follow the source, as
    libraries must. Programs are recompiled when one of their headers is newer."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def build(key):
        program, mode = key
        target, listed = folder / f"{program}_{mode}", folder / f"{program}_{mode}.d"
        if target.is_file() and listed.is_file():
            needed = listed.read_text(encoding="utf-8").replace("\\\n", " ").partition(":")[2].split()
            if str(HERE / f"{program}.cpp") in needed and all(os.path.exists(f) and os.path.getmtime(f) <= target.stat().st_mtime for f in needed):
                return target
        print(f"compiling {program}, {mode} mode", file=sys.stderr, flush=True)
        try:
            output_of([compiler, *FLAGS, *LIMITS["clang" if "clang" in compiler else "gnu"], f"-DCOMPARE_MODE={mode}", f"-I{ROOT / 'include'}", "-MMD", "-MF", str(listed),
                  str(HERE / f"{program}.cpp"), *flags, "-o", str(target)])
            return target
        except (subprocess.CalledProcessError, OSError) as e:
            return f"{program}, {mode} mode, does not compile: {tail(e)}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip(programs, pool.map(build, programs)))


def compiled_libtorch(folder, python, compiler):
    """Returns the program with_libtorch.cpp, compiled against the wheel's headers and libraries, or
    a complaint."""
    target = pathlib.Path(folder) / "with_libtorch"
    source = HERE / "with_libtorch.cpp"
    if target.is_file() and target.stat().st_mtime >= source.stat().st_mtime:
        return target
    print("compiling with_libtorch", file=sys.stderr, flush=True)
    try:
        program = "import torch, os; print(os.path.dirname(torch.__file__), int(torch.compiled_with_cxx11_abi()))"
        torch, abi = output_of([str(python), "-c", program]).split()
        output_of([compiler, "-std=c++20", "-O2", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{torch}/include",
              f"-I{torch}/include/torch/csrc/api/include", str(source), "-o", str(target), f"-L{torch}/lib", "-ltorch_cpu",
              "-lc10", f"-Wl,-rpath,{torch}/lib"])
        return target
    except (subprocess.CalledProcessError, OSError, ValueError) as e:
        return f"with_libtorch does not compile: {tail(e)}"


def shipped(folder, compiler):
    """Returns the processor seconds of compiling a CNN's training program, and its size in bytes,
    stripped."""
    target = pathlib.Path(folder) / "shipped"
    before = os.times()
    start = time.perf_counter()
    output_of([compiler, *FLAGS, f"-I{ROOT / 'include'}", str(ROOT / "benchmarks/compile_time/cnn_graph.cpp"), "-o", str(target)])
    after = os.times()
    output_of(["strip", str(target)])
    return {"program": "benchmarks/compile_time/cnn_graph.cpp", "bytes": target.stat().st_size,
            "compile_processor_seconds": after.children_user + after.children_system - before.children_user - before.children_system,
            "compile_seconds": time.perf_counter() - start}


def processor_name():
    try:
        text = output_of(["lscpu"], env={**os.environ, "LC_ALL": "C"})
        fields = dict(re.findall(r"^([^:]+):\s*(.+)$", text, re.MULTILINE))
        return f"{fields.get('Model name', 'unknown')}, family {fields.get('CPU family', '?')}, model {fields.get('Model', '?')}"
    except (OSError, subprocess.CalledProcessError):
        return platform.processor() or "unknown"


def memory(field="MemTotal"):
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


def machine(compiler, flags=()):
    has_git = shutil.which("git") and (ROOT / ".git").exists()
    commit = output_of(["git", "-C", str(ROOT), "rev-parse", "HEAD"]).strip() if has_git else "unknown"
    return {"processor": processor_name(), "cores": len(os.sched_getaffinity(0)), "memory": memory(), "system": platform.platform(),
            "compiler": output_of([compiler, "--version"]).splitlines()[0], "flags": [*FLAGS, *(f for f in flags if not f.startswith("-L"))], "commit": commit}


def process_environment(threads, cache):
    """Returns the environment that contestants are started with."""
    e = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    e |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    e |= {"CUDA_VISIBLE_DEVICES": "-1", "JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2",
          "TORCHINDUCTOR_CACHE_DIR": str(pathlib.Path(cache) / "inductor"), "PYTHONDONTWRITEBYTECODE": "1"}
    return e
