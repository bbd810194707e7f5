#!/usr/bin/env python3
"""Runs the mode study with tiny settings: its files, its table, and how it ends on bad input.

    mode_study_test.py PROGRAM
"""
import itertools

import studies

COLUMNS = (
    "model,length,mode,training,source,batch_size,seconds_per_iteration,iterations,warm_up,loss,peak_memory_bytes,"
    "process_bytes,device,status,needed_bytes,memory_limit_bytes,note"
).split(",")
SMALL = ("--models", "small", "--lengths", "140", "--batch-size", 3, "--iterations", 4, "--warm-up", 2)


class ModeStudy(studies.StudyTest):
    def rows(self):
        return self.table(self.folder / "mode_study.csv", COLUMNS)

    def test_small(self):
        done = self.done(*SMALL, "--out", self.folder)
        rows = self.rows()
        self.assertEqual([(r["training"], r["source"], r["mode"]) for r in rows],
                         list(itertools.product(("train_on_batch", "fit"), ("arrays", "dataset"), ("graph", "eager"))))
        for row in rows:
            self.assertEqual((row["model"], row["length"], row["batch_size"], row["status"], row["device"]),
                             ("small", "140", "3", "finished", "cpu"))
            self.assertEqual((row["iterations"], row["warm_up"]), ("4", "2"))
            self.assertGreater(float(row["seconds_per_iteration"]), 0)
            # Weights, gradients and Adam's two states of (40 x 30 + 1) x 128 floats are the least that a step holds.
            self.assertGreater(int(row["peak_memory_bytes"]), 4 * 4 * 1201 * 128)
        # The modes see the same batches in the same order, so they agree to the last bit.
        for graph, eager in zip(rows[0::2], rows[1::2]):
            self.assertEqual(graph["loss"], eager["loss"])
        # fit visits the same records from either source.
        self.assertEqual(rows[4]["loss"], rows[6]["loss"])
        table = (self.folder / "mode_study.md").read_text()
        self.assertIn(table, done.stdout)
        line = next(line for line in table.splitlines() if line.startswith("| small | 140 |")).split("|")
        self.assertEqual(len(line), 2 + 2 + 4 * 3)
        graph, eager, ratio = (float(cell) for cell in line[3:6])
        self.assertAlmostEqual(graph, float(rows[0]["seconds_per_iteration"]), delta=1e-3 * graph)
        self.assertAlmostEqual(ratio, eager / graph, delta=5e-3 * ratio)  # four digits each
        for name in ("mode_study.svg", "mode_study_small.svg"):
            self.check_chart(self.folder / name)
        self.assertEqual(self.stored(self.folder)["configuration"]["--batch-size"], 3)

    def test_a_series_too_short(self):
        # The first two layers of the large model take windows of 400 and 200.
        done = self.done("--models", "large", "--lengths", "140", "--batch-size", 1, "--trainings", "fit", "--sources",
                         "arrays", "--out", self.folder)
        self.assertEqual([(r["status"], r["seconds_per_iteration"]) for r in self.rows()], [("ill-formed", "")] * 2)
        for row in self.rows():
            self.assertIn("convolution", row["note"])
        self.assertIn("| large | 140 | - | - | - |", done.stdout)
        self.assertIn("large, L = 140: ill-formed: convolution", done.stdout)

    def test_recurrent(self):
        self.done("--models", "recurrent_small", "--batch-size", 1, "--iterations", 1, "--warm-up", 1, "--trainings",
                  "train_on_batch", "--sources", "arrays", "--out", self.folder)
        graph, eager = self.rows()
        self.assertEqual((graph["length"], graph["status"]), ("400", "finished"))
        self.assertEqual(graph["loss"], eager["loss"])

    def test_budget(self):
        done = self.done("--models", "small", "--lengths", "140", "--iterations", 1000000, "--seconds", 0.01, "--modes",
                         "graph", "--trainings", "fit", "--sources", "dataset", "--out", self.folder)
        row = self.rows()[0]
        self.assertLess(int(row["iterations"]), 1000)
        self.assertIn("were all the time there was", done.stdout)
        self.assertIn("*", next(line for line in done.stdout.splitlines() if line.startswith("| small")))

    def test_memory_limit(self):
        # Weights and states of 154,000 floats fit into 8 MB; what 32 records of 14,000 steps become does not.
        done = self.done("--models", "small", "--lengths", "140,14000", "--iterations", 1, "--warm-up", 1, "--trainings", "fit",
                         "--sources", "arrays", "--memory-limit", "20M", "--out", self.folder)
        rows = self.rows()
        self.assertEqual([r["status"] for r in rows], ["finished", "finished", "out of memory", "out of memory"])
        self.assertGreater(int(rows[2]["needed_bytes"]), 32 * 3500 * 128 * 4)  # the convolution's values
        self.assertIn("small, L = 14000: does not fit: needs", done.stdout)
        self.assertIn("small, L = 14000: does not fit: needs at least", done.stdout)

    def test_going_on(self):
        settings = (*SMALL, "--trainings", "train_on_batch", "--out", self.folder)
        self.assertEqual(self.interrupted(*settings, after="run 3 of 4"), 130)
        before = self.rows()
        self.assertEqual(len(before), 2)
        self.assertEqual(len(self.stored(self.folder)["rows"]), 2)
        self.assertIn("not yet measured", (self.folder / "mode_study.md").read_text())
        done = self.done(*settings)
        self.assertIn("2 of 4 runs stand in", done.stderr)
        self.assertEqual(self.rows()[:2], before)
        self.assertEqual(len(self.rows()), 4)
        self.refused(*settings, "--seconds", 7, status=2, says=["--seconds 60.0, not 7.0", "--fresh"])
        self.done(*settings, "--seconds", 7, "--modes", "graph", "--sources", "arrays", "--fresh")
        self.assertEqual(len(self.rows()), 1)

    def test_bad_arguments(self):
        for option, value in (("--models", "huge"), ("--models", "small,small"), ("--lengths", "150"), ("--modes", "turbo"),
                              ("--trainings", "train"), ("--sources", "disk"), ("--batch-size", "0"), ("--batch-size", "x"),
                              ("--iterations", "0"), ("--warm-up", "0"), ("--seconds", "0"), ("--device", "tpu"),
                              ("--memory-limit", "-1"), ("--seed", "-1"), ("--out", "")):
            self.refused(option, value, status=2, says=[option])
        self.refused("--models", "small", "--lengths", "400", status=2, says=["--models", "--lengths", "small"])
        self.refused("--models", "small,recurrent_small", "--lengths", "140", status=2, says=["--lengths", "recurrent_small"])

    def test_a_gpu_that_is_not_there(self):
        # No machine has so many.
        done = self.done(*SMALL, "--device", "cuda:99999", "--modes", "graph", "--trainings", "fit", "--sources", "arrays",
                         "--out", self.folder)
        self.assertEqual(done.stderr.count("continuing on the CPU"), 1, done.stderr)
        self.assertEqual([r["device"] for r in self.rows()], ["cpu"])

    def test_help(self):
        done = self.done("--help")
        for option in ("--models", "--lengths", "--modes", "--trainings", "--sources", "--iterations", "--warm-up", "--seconds",
                       "--seed", "--device", "--threads", "--memory-limit", "--fresh", "--out"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    studies.main("mode_study")
