"""benchmarks/compare.py without any peer: its protocol, what counts as equal, how it goes on when somebody fails, and its report."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS / "compare"))

import busy  # noqa: E402
import contestants  # noqa: E402
import protocol  # noqa: E402
import race  # noqa: E402
import report  # noqa: E402
import studies  # noqa: E402
import works  # noqa: E402

ROW = "cnn/training/32"
FLOOR = {"seconds": 0.15, "flop": 3e10, "bytes": 2e9, "flop_per_second": 2e11, "bytes_per_second": 2.5e10}


class CompareTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def contestant(self, style, milliseconds=1):
        command = [sys.executable, str(HERE / "fake_contestant.py"), style, str(milliseconds)]
        made = protocol.Contestant(command, log=self.folder / f"{style}.log")
        self.addCleanup(made.close)
        return made

    def race(self, styles, row=ROW, **settings):
        made = {name: (self.contestant(style, milliseconds), lambda text: text) for name, (style, milliseconds) in styles.items()}
        return race.Race(made, race.Settings(turn=0.01, rounds=3, patience=20, **settings), self.folder / "weights").run(row, False)


class Works(unittest.TestCase):
    def test_every_work_has_a_program_rows_and_peers(self):
        for name in works.NAMES:
            with self.subTest(name):
                self.assertTrue((BENCHMARKS / "compare" / f"{name}.cpp").is_file())
                self.assertTrue(works.has_peer(name, "pytorch"))
                for row in works.module(name).ROWS:
                    _, kind, batch, length = protocol.parse_row(f"{name}/{row}")
                    self.assertIn(kind, ("training", "inference"))
                    self.assertGreater(studies.step_flop(name, 2 * batch, length), studies.step_flop(name, batch, length))
                    self.assertEqual(contestants.program_of(f"{name}/{row}"), name)

    def test_a_sparse_table_has_ways_of_its_own(self):
        ways = {way.name: way.row("embeddings/training/32") for way in contestants.ways_of("embeddings/training/32", {"tapegraph", "pytorch"})}
        self.assertEqual(ways["TapeGraph sparse"], "embeddings/sparse_training/32")
        self.assertEqual(ways["PyTorch sparse"], "embeddings/sparse_training/32")
        self.assertNotIn("TapeGraph sparse", {way.name for way in contestants.ways_of("gru/training/32", {"tapegraph"})})


class Protocol(CompareTest):
    def test_answers(self):
        c = self.contestant("good")
        self.assertEqual(c.ask("prepare cnn/training/4/140 check -", 20), [])
        self.assertEqual(c.ask("check 3", 20), [1, 1.1, 1.2])
        processor, *seconds = c.ask("run 4", 20)
        self.assertEqual(len(seconds), 4)
        self.assertGreaterEqual(min(seconds), 0.001)
        self.assertGreater(c.peak_memory(), 1 << 20)
        self.assertEqual(c.ask("forget", 20), [])
        with self.assertRaisesRegex(protocol.Failure, "nothing is prepared"):
            c.ask("run 1", 20)

    def test_seconds_are_those_of_one_operation(self):
        c = self.contestant("tiny", 20)
        c.ask("prepare add/forward/8 time -", 20)
        seconds = c.ask("run 1", 20)[1]
        self.assertGreaterEqual(seconds, 0.002)
        self.assertLess(seconds, 0.02)

    def test_row(self):
        self.assertEqual(protocol.parse_row("a/b/3"), ("a", "b", 3, 0))
        self.assertEqual(protocol.parse_row("a/b/3/140"), ("a", "b", 3, 140))

    def test_an_error_is_one_line_and_leaves_the_process(self):
        c = self.contestant("refuses")
        with self.assertRaisesRegex(protocol.Failure, "^ValueError: two lines$"):
            c.ask("prepare cnn/training/4 check -", 20)
        self.assertIsNotNone(c.process)

    def test_an_end_is_told_with_its_last_words(self):
        c = self.contestant("ends")
        c.ask("prepare cnn/training/4 time -", 20)
        with self.assertRaisesRegex(protocol.Failure, "run: ended, status 3: the reason"):
            c.ask("run 1", 20)
        self.assertEqual(c.ask("prepare cnn/training/4 time -", 20), [])  # started again

    def test_silence_ends(self):
        c = self.contestant("hangs")
        c.ask("prepare cnn/training/4 time -", 20)
        with self.assertRaisesRegex(protocol.Failure, r"run: no answer in 0 s"):
            c.ask("run 1", 0.3)
        self.assertIsNone(c.process)

    def test_no_program(self):
        c = protocol.Contestant([str(self.folder / "missing")])
        with self.assertRaises((protocol.Failure, OSError)):
            c.ask("check 1", 5)

    def test_words_that_are_no_answer(self):
        c = protocol.Contestant([sys.executable, "-c", "print('ok one', flush=True); input(); input()"])
        self.addCleanup(c.close)
        with self.assertRaisesRegex(protocol.Failure, "not an answer: ok one"):
            c.ask("check 1", 20)


class Equality(CompareTest):
    def test_losses_are_compared_one_by_one(self):
        right = [1.0, 0.5, 0.01]
        self.assertIsNone(race.difference([1.00009, 0.49996, 0.0100009], right, True))
        self.assertRegex(race.difference([1.0, 0.5001, 0.01], right, True), "loss 2 is 0.5001, ours 0.5")
        self.assertRegex(race.difference([1.0], right, True), "1 numbers instead of 3")
        self.assertIsNotNone(race.difference([1.0, float("nan"), 0.01], right, True))
        # Below a thousandth the scale is a thousandth.
        self.assertIsNone(race.difference([1e-6], [1.05e-6], True))
        self.assertIsNotNone(race.difference([1e-6], [2e-6 + 1e-7], True))

    def test_digests_are_compared_by_their_largest(self):
        right = [2.0] + [0.001] * 16 + [0.002] + [0.001] * 16
        close = list(right)
        close[3] += 1e-4
        self.assertIsNone(race.difference(close, right, False))
        close[20] += 1e-4  # of the second result, which is smaller
        self.assertRegex(race.difference(close, right, False), "number 21 is")

    def test_waves(self):
        self.assertEqual(race.waves([("a", 5), ("b", 4), ("c", 4), ("d", 1)], 10), [["a", "b"], ["a", "c", "d"]])
        self.assertEqual(race.waves([("a", 5), ("b", 4), ("c", 4)], 0), [["a", "b", "c"]])
        self.assertEqual(race.waves([("a", 50), ("b", 4)], 10), [["a", "b"]])  # nothing else would fit better
        self.assertEqual(race.waves([("a", 5)], 10), [["a"]])


class Races(CompareTest):
    def test_whoever_fails_is_left_out_alone(self):
        results = self.race({"TapeGraph": ("good", 1), "PyTorch": ("good", 4), "tf.function": ("differs", 1), "Keras": ("ends", 1),
                             "TensorFlow XLA": ("refuses", 1), "JAX": ("nan", 1)})
        self.assertLess(results["TapeGraph"]["median"], results["PyTorch"]["median"])
        self.assertGreaterEqual(results["TapeGraph"]["steps"], 3)
        self.assertEqual(len(results["PyTorch"]["numbers"]), 5)
        self.assertGreater(results["PyTorch"]["first"], 0.004)
        self.assertIn("differs: loss 5", results["tf.function"]["error"])
        self.assertIn("the reason", results["Keras"]["error"])
        self.assertIn("two lines", results["TensorFlow XLA"]["error"])
        self.assertIn("not finite", results["JAX"]["error"])
        for name in ("tf.function", "Keras", "TensorFlow XLA", "JAX"):
            self.assertNotIn("median", results[name])
        s = report.summary(ROW, results)
        self.assertEqual((s["peer"], s["best"]), ("PyTorch", "TapeGraph"))
        self.assertGreater(s["ratio"], 1)

    def test_what_bounds_ours_is_kept(self):
        class Bounded:
            def ask(self, request, patience):
                if request != "floor":
                    raise protocol.Failure("nothing is prepared")
                return list(FLOOR.values())

        runner, result = race.Race({"TapeGraph": (Bounded(), str)}, race.Settings(), "-"), {}
        runner.floor("TapeGraph", result)
        self.assertEqual(result["floor"], FLOOR)
        without = self.race({"TapeGraph": ("good", 1), "PyTorch": ("good", 1)})
        self.assertNotIn("floor", without["TapeGraph"])  # the fake has none to tell, and is measured all the same
        self.assertIn("median", without["TapeGraph"])

    def test_without_ours_nothing_is_measured(self):
        results = self.race({"TapeGraph": ("refuses", 1), "PyTorch": ("good", 1)})
        self.assertIn("nothing of ours", results["PyTorch"]["error"])
        self.assertNotIn("median", results["PyTorch"])

    def test_in_waves_all_are_measured(self):
        # A step of JAX lasts longer than a turn, so that it makes one in each, and ours at least one in each of both waves.
        results = self.race({"TapeGraph": ("good", 1), "PyTorch": ("good", 1), "JAX": ("good", 30)}, memory=1)
        self.assertEqual([result.get("steps", 0) > 0 for result in results.values()], [True] * 3)
        self.assertGreater(results["TapeGraph"]["steps"], results["JAX"]["steps"])

    def test_beside_busy_processes(self):
        busy.ROUNDS, busy.TURN = 1, 0.01
        made = {name: (self.contestant(style), lambda text: text) for name, style in (("TapeGraph", "good"), ("PyTorch", "ends"))}
        measured, complaints = busy.measure("add/forward/8", made, 2, 2, 2, None)
        self.assertEqual([(m["name"], m["busy"], m["share"]) for m in measured], [("TapeGraph", 2, 2.0)])
        self.assertGreater(min(measured[0]["idle"], measured[0]["beside"]), 0)
        self.assertEqual(len(complaints), 1)
        self.assertIn("PyTorch: run: ended", complaints[0])


class Tables(CompareTest):
    STORED = {
        "date": "2026-01-02 03:04 UTC", "options": {"threads": 2, "processor_time": False}, "load": {"before": [0, 0, 0]},
        "machine": {"processor": "a <processor>", "cores": 2, "memory": 8e9, "compiler": "g++ 12", "flags": ["-O2"], "commit": "abc"},
        "peers": {"pytorch": {"versions": {"torch": "2.15.0"}, "bytes": 4e9, "bytes_without_gpu": 5e8}, "jax": {"error": "not installed: why"}},
        "shipped": {"program": "p.cpp", "bytes": 450000, "compile_processor_seconds": 21.25, "compile_seconds": 22},
        "left_out": {"rnn/training/1": "the time was over"},
        "beside": [{"row": ROW, "name": "PyTorch", "busy": 2, "idle": 0.5, "beside": 1.5, "share": 2.0}],
        "rows": {ROW: {
            "TapeGraph": {"median": 0.2, "first": 0.5, "peak_memory": 5e8,
                          "floor": FLOOR},
            "TapeGraph eager": {"median": 0.25},
            "TapeGraph direct": {"median": 0.3}, "TapeGraph fast": {"median": 0.1},
            "PyTorch": {"median": 0.6, "first": 4, "peak_memory": 1e9}, "JAX": {"median": 0.01, "error": "differs: loss 2"}}}}

    def test_report(self):
        text = report.text(self.STORED)
        self.assertIn("| cnn/training/32 | 600 ms (PyTorch) | 200 ms | 3.00 | 100 ms (fast) | 6.00 | 1.25 | 3.00 |", text)
        self.assertIn("| cnn/training/32 | PyTorch | 2 | 500 ms | 1.5 s | 3.00 | 2.00 | 1.50 |", text)
        self.assertIn("- cnn/training/32, JAX: differs: loss 2", text)
        self.assertIn("- rnn/training/1: the time was over", text)
        self.assertIn("| TapeGraph, a CNN's training program, stripped | 0.45 MB", text)
        self.assertIn("pytorch 2.15.0, installed | 4000 MB | 500 MB |", text)
        self.assertIn("jax: not installed: why", text)
        self.assertIn("costs the compiler 21.2 s", text)
        self.assertIn("| cnn/training/32 | 500 MB | 1000 MB |", text)
        self.assertIn("| cnn/training/32 | 30 | 2e+03 | 200 | 25.0 | 150 ms | 0.75 | 4.00 |", text)

    def test_times(self):
        self.assertEqual([report.time_of(t) for t in (2, 0.25, 3e-5, 1.5e-7)], ["2 s", "250 ms", "30 us", "150 ns"])

    def test_chart(self):
        file, out = self.folder / "stored.json", self.folder / "chart.svg"
        file.write_text(json.dumps(self.STORED))
        command = [sys.executable, str(BENCHMARKS / "chart.py"), str(file), "-o", str(out)]
        subprocess.run(command, check=True, timeout=60)
        text = " ".join(xml.etree.ElementTree.parse(out).getroot().itertext())
        for part in ("cnn, training, batch 32", "3.00 (6.00 fast), PyTorch", "a <processor>"):
            self.assertIn(part, text)
        done = subprocess.run([*command, "--only", "none"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (1, "chart.py: no row has a ratio\n"))

    def test_stored_report(self):
        file = self.folder / "stored.json"
        file.write_text(json.dumps(self.STORED))
        done = subprocess.run([sys.executable, str(BENCHMARKS / "compare.py"), "--report", str(file)], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.stdout, report.text(copy.deepcopy(self.STORED)))
        self.assertEqual(done.returncode, 0, done.stderr)


class Rows(CompareTest):
    def test_ways(self):
        def names(row, *libraries):
            return [way.name for way in contestants.ways_of(row, libraries)]

        self.assertEqual(names("cnn/training/1", "tapegraph"), ["TapeGraph", "TapeGraph eager", "TapeGraph direct", "TapeGraph fast"])
        self.assertEqual(names("rnn/training/1", "pytorch"), ["PyTorch", "PyTorch fused", "PyTorch compiled", "PyTorch sparse"])
        self.assertEqual(names("rnn/inference/1", "pytorch"), ["PyTorch", "PyTorch compiled"])
        self.assertEqual(names("add/forward/8", "tapegraph", "libtorch", "pytorch"), ["TapeGraph", "PyTorch", "PyTorch C++"])
        sparse = next(way for way in contestants.WAYS if way.name == "PyTorch sparse")
        self.assertEqual(sparse.row("rnn/training/32"), "rnn/sparse_training/32")

    def test_models_are_files(self):
        self.assertIn("resnet18", works.NAMES)
        for name in works.NAMES:
            self.assertTrue((BENCHMARKS / "compare" / f"{name}.cpp").is_file(), name)
            self.assertEqual(contestants.program_of(f"{name}/training/1"), name)
            self.assertEqual(contestants.group_of(f"{name}/training/1"), f"{name}/training")
            once, twice = (studies.step_flop(name, batch, 0) for batch in (1, 2))
            self.assertTrue(0 < once < twice, name)
            for row in works.module(name).ROWS:
                self.assertIn(f"{name}/{row}", contestants.FULL)

    def test_a_peer_without_a_builder_is_left_out(self):
        def libraries(row):
            return {way.library for way in contestants.ways_of(row, ("tapegraph", "pytorch", "jax"))}

        self.assertEqual(libraries("resnet18/training/1"), {"tapegraph", "pytorch", "jax"})
        builder = works.module("resnet18").jax_model
        self.addCleanup(setattr, works.module("resnet18"), "jax_model", builder)
        del works.module("resnet18").jax_model
        self.assertEqual(libraries("resnet18/training/1"), {"tapegraph", "pytorch"})
        self.assertEqual(libraries("mlp/training/1"), {"tapegraph", "pytorch", "jax"})  # a chain of layers

    def test_rows_are_well_formed(self):
        for row in (*contestants.QUICK, *contestants.FULL):
            work, kind, size, _ = protocol.parse_row(row)
            self.assertTrue(work and size > 0)
            self.assertIn(kind, ("training", "inference", "forward", "gradient", "update"))
        self.assertEqual(len(set(contestants.FULL)), len(contestants.FULL))


if __name__ == "__main__":
    unittest.main()
