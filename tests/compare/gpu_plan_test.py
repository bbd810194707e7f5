"""tests/gpu_plan.sh without a GPU: what it says of programs that pass, fail and hang, and where it ends."""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COUNTS = "[doctest] test cases: {0} | {0} passed | 0 failed\n[doctest] assertions: {0} | {0} passed | 0 failed |"


class GpuPlanTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        shutil.copy(ROOT / "tests/gpu_plan.sh", self.folder)
        shutil.copytree(ROOT / "benchmarks", self.folder / "benchmarks", ignore=shutil.ignore_patterns("results", "__pycache__"))
        (self.folder / "commit").write_text("0123456789abcdef\n", encoding="utf-8")
        for name, words in {"bin/program_by_nvcc": "true", "bin/test_gpu_context_test": f"echo '{COUNTS.format(2)}'",
                            "bin/test_gpu_good_test": f"echo '{COUNTS.format(3)}'", "bin/test_gpu_bad_test": "echo why; exit 1",
                            "stub/nvidia-smi": "echo 'A GPU, 9.0'", "stub/ldconfig": "echo libcublasLt.so.13"}.items():
            self.program(name, words)

    def program(self, name, words):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{words}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_plan(self, *stages, **variables):
        environment = os.environ | {"PATH": f"{self.folder / 'stub'}:{os.environ['PATH']}", "OUT": str(self.folder / "out"), "WARM": "0"}
        done = subprocess.run([self.folder / "gpu_plan.sh", *stages], env=environment | variables, capture_output=True, text=True, timeout=60)
        lines = [line.split("\t") for line in (self.folder / "out/results.tsv").read_text(encoding="utf-8").splitlines()]
        return done, {line[1]: line for line in lines if len(line) == 5}

    def test_all_that_ran_is_told(self):
        done, lines = self.run_plan("sanity", "numerics")
        self.assertEqual(done.returncode, 1)  # one failed
        self.assertEqual(lines["test_gpu_good_test"][2], "ok")
        self.assertIn("test cases: 3 | 3 passed", lines["test_gpu_good_test"][4])
        self.assertEqual(lines["test_gpu_bad_test"][2], "FAILED, status 1")
        self.assertIn("test_gpu_bad_test", done.stdout.partition("not well")[2])
        self.assertTrue((self.folder / "out/logs.tgz").is_file())

    def test_what_hangs_is_ended_and_named(self):
        self.program("bin/test_gpu_hanging_test", "sleep 50")
        _, lines = self.run_plan("numerics", PLAN_SECONDS="3")
        self.assertRegex(lines["test_gpu_hanging_test"][2], "not finished in [23] s")
        self.assertEqual(lines["test_gpu_good_test"][2], "ok")

    def test_without_sanity_nothing_else_is_tried(self):
        self.program("bin/test_gpu_context_test", "echo no driver; exit 1")
        done, lines = self.run_plan("sanity", "numerics")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no driver", done.stdout)
        self.assertNotIn("test_gpu_good_test", lines)

    def test_steps_of_those_who_answer(self):
        for mode, style in ("graph", "plain"), ("eager", "differs"):
            self.program(f"bin/bench_compare_operations_{mode}", f"exec {sys.executable} {HERE / 'fake_contestant.py'} {style} 1")
        self.program("bin/bench_gpu_layers", "echo '# copy 3.00 TB/s, products in TFLOP/s: fp32 50.0, tf32 400'")
        done, lines = self.run_plan("layers", "steps", STEPS_ONLY="^sum/forward/1000000", STEPS_OPTIONS="--no-peers --rounds 1")
        row = next(line for line in done.stdout.splitlines() if line.startswith("sum/")).split("\t")
        self.assertGreaterEqual(float(row[2]), 100)  # it sleeps for 1,000 us; a busy machine wakes it when it can
        self.assertIn("bench_gpu_recurrent", (self.folder / "logs/layers-recurrent.txt").read_text(encoding="utf-8"))
        self.assertIn("status 127", lines["recurrent"][2])

    def test_studies_run_on_the_gpu(self):
        self.program("bin/batch_study", "echo 'graph 1'; echo 'eager 1'; echo $* >&2")
        _, lines = self.run_plan("studies", STUDIES="rnn")
        self.assertEqual(lines["rnn"][2], "status 0, 2 lines")
        self.assertIn("--model rnn --batch-sizes all --seconds 30 --device gpu", lines["rnn"][4])
        self.assertNotIn("cnn", lines)
        _, lines = self.run_plan("studies", STUDIES="rnn", PLAN_SECONDS="5")
        self.assertEqual(lines["rnn"][2], "left out: no time")


if __name__ == "__main__":
    unittest.main()
