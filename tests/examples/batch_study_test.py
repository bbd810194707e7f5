#!/usr/bin/env python3
"""Runs the batch-size study with tiny settings: its files, its table, and how it ends on bad input.

    batch_study_test.py PROGRAM
"""
import struct
import zlib

import studies

COLUMNS = (
    "model,mode,batch_size,seconds_per_epoch,ms_per_step,ms_ingestion,samples_per_second,peak_memory_bytes,process_bytes,"
    "train_loss,train_accuracy,validation_loss,validation_accuracy,device,status,needed_bytes,memory_limit_bytes,note"
).split(",")


def png(side, value):
    """A PNG of side x side grey pixels as RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([value % 256] * 3 * side)) * side
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_images(folder, count, side=50):
    for label, name in enumerate(("bright", "dark")):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            (folder / name / f"{i}.png").write_bytes(png(side, 200 - 150 * label + i))


class BatchStudy(studies.StudyTest):
    def few_images(self, count=2):
        """Arguments for a data set of few images, which is read and evaluated sooner than the generated one."""
        data = self.folder / "images"
        write_images(data / "train", count)
        write_images(data / "test", 1)
        return ("--data", data)

    def rows(self, out, name="batch_study"):
        return self.table(out / f"{name}.csv", COLUMNS)

    def test_both_modes(self):
        out = self.folder / "new" / "results"
        done = self.done("--modes", "graph,eager", "--batch-sizes", "4,7", "--epochs", 1, "--steps", 2, "--out", out)
        for text in ("1,674,701", "1,673,801", "conv1 (conv2d)", "[?, 48, 48, 150]"):
            self.assertIn(text, done.stdout)
        rows = self.rows(out)
        self.assertEqual([(r["mode"], r["batch_size"]) for r in rows],
                         [("graph", "4"), ("eager", "4"), ("graph", "7"), ("eager", "7")])
        for row in rows:
            for column in ("seconds_per_epoch", "ms_per_step", "samples_per_second", "train_loss", "validation_loss"):
                self.assertGreater(float(row[column]), 0, column)
            self.assertGreaterEqual(float(row["ms_ingestion"]), 0)
            for column in ("train_accuracy", "validation_accuracy"):
                self.assertTrue(0 <= float(row[column]) <= 1, column)
            # Weights and gradients of 1,673,801 floats are the least that any step holds.
            self.assertGreater(int(row["peak_memory_bytes"]), 2 * 4 * 1673801)
            # Samples per second count the wait for data.
            step = (float(row["ms_per_step"]) + float(row["ms_ingestion"])) / 1000
            self.assertAlmostEqual(float(row["samples_per_second"]) * step, float(row["batch_size"]), places=3)
        # One arithmetic, one order: the modes agree to the last bit.
        for graph, eager in (rows[0:2], rows[2:4]):
            self.assertEqual(graph["train_loss"], eager["train_loss"])
            self.assertEqual(graph["validation_loss"], eager["validation_loss"])
        for name in ("batch_study.svg", "batch_study_memory.svg", "batch_study_learning.svg"):
            self.check_chart(out / name)
        stored = self.stored(out)
        self.assertEqual(stored["configuration"]["--steps"], 2)
        self.assertEqual([row["ms_per_step"] for row in stored["rows"]], [float(row["ms_per_step"]) for row in rows])
        self.assertEqual([len(row["epochs"]) for row in stored["rows"]], [1] * 4)

    def test_texts(self):
        out = self.folder
        done = self.done("--model", "rnn", "--batch-sizes", "5,32", "--steps", 2, "--out", out)
        for text in ("5,353,235", "3000 training and 600 validation texts"):
            self.assertIn(text, done.stdout)
        rows = self.rows(out, "batch_study_rnn")
        self.assertEqual([(r["model"], r["mode"], r["batch_size"]) for r in rows],
                         [("rnn", "graph", "5"), ("rnn", "eager", "5"), ("rnn", "graph", "32"), ("rnn", "eager", "32")])
        for graph, eager in (rows[0:2], rows[2:4]):
            self.assertEqual(graph["train_loss"], eager["train_loss"])
        self.check_chart(out / "batch_study_rnn.svg")

    def test_table_of_texts(self):
        kinds = ("good", "bad", "neither")
        (self.folder / "texts.csv").write_text(
            "id,says,kind\n" + "".join(f"{i},\"word{i}, and {kinds[i % 3]}\",{kinds[i % 3]}\n" for i in range(30)))
        columns = ("--text-column", "says", "--label-column", "kind", "--out", self.folder)
        done = self.done("--model", "rnn", "--data", self.folder / "texts.csv", "--modes", "graph", "--batch-sizes", 8,
                         "--steps", 1, *columns)
        self.assertIn("24 training and 6 validation texts", done.stdout)
        self.refused("--model", "rnn", "--data", self.folder / "texts.csv", says=["text", "texts.csv"])
        (self.folder / "texts.csv").write_text("says,kind\na,b\nc,d\n")
        self.refused("--model", "rnn", "--data", self.folder / "texts.csv", *columns, says=["2 classes", "three"])

    def test_going_on(self):
        settings = ("--epochs", 1, "--steps", 1, "--out", self.folder, *self.few_images())
        first = self.done("--batch-sizes", "2", *settings)
        before = self.stored(self.folder)["rows"]
        second = self.done("--batch-sizes", "2,3", *settings)
        self.assertIn("2 of 4 runs stand in", second.stderr)
        after = self.stored(self.folder)["rows"]
        self.assertEqual(after[:2], before)
        self.assertEqual([(r["mode"], r["batch_size"]) for r in after],
                         [("graph", 2), ("eager", 2), ("graph", 3), ("eager", 3)])
        # What was not run again is shown all the same.
        line = next(line for line in first.stdout.splitlines() if line.startswith("graph     2"))
        self.assertIn(line, second.stdout)
        self.refused("--batch-sizes", "2", *settings, "--seed", 2, status=2, says=["--seed 1, not 2", "--fresh"])
        self.assertEqual(self.stored(self.folder)["rows"], after)
        self.done("--batch-sizes", "2", *settings, "--seed", 2, "--modes", "eager", "--fresh")
        self.assertEqual([(r["mode"], r["batch_size"]) for r in self.stored(self.folder)["rows"]], [("eager", 2)])
        (self.folder / "batch_study.json").write_text("{]")
        self.refused("--batch-sizes", "2", *settings, says=["batch_study.json", "--fresh"])

    def test_interruption(self):
        settings = ("--batch-sizes", "1,2", "--epochs", 1, "--steps", 2, "--out", self.folder)
        self.assertEqual(self.interrupted(*settings, after="run 3 of 4"), 130)
        rows = self.rows(self.folder)
        self.assertEqual([(r["mode"], r["batch_size"]) for r in rows], [("graph", "1"), ("eager", "1")])
        self.assertEqual(len(self.stored(self.folder)["rows"]), 2)
        self.check_chart(self.folder / "batch_study.svg")
        done = self.done(*settings)
        self.assertIn("2 of 4 runs stand in", done.stderr)
        self.assertEqual(self.rows(self.folder)[:2], rows)
        self.assertEqual(len(self.rows(self.folder)), 4)

    def test_memory_limit(self):
        # A step of 64 images holds 64 x 48 x 48 x 150 floats, 88 MB, of the first layer's values alone, and as much of
        # their gradients, which one of 2 does not.
        settings = ("--batch-sizes", "2,64", "--steps", 1, "--out", self.folder, *self.few_images(32))
        done = self.done(*settings, "--memory-limit", "150M")
        rows = {(r["mode"], r["batch_size"]): r for r in self.rows(self.folder)}
        for mode in ("graph", "eager"):
            self.assertEqual(rows[mode, "2"]["status"], "finished")
            row = rows[mode, "64"]
            self.assertEqual(row["status"], "out of memory")
            self.assertEqual(int(row["memory_limit_bytes"]), 150 << 20)
            self.assertGreater(int(row["needed_bytes"]), 150 << 20)
            self.assertEqual(row["ms_per_step"], "")
        self.assertEqual(done.stdout.count("does not fit: needs"), 2)
        self.assertEqual(done.stdout.count("does not fit: needs at least"), 1)  # eager mode asks for one buffer at a time
        # They are not tried again with as much memory, and are with what they need: the plans were right.
        again = self.done(*settings, "--memory-limit", "150M")
        self.assertIn("4 of 4 runs stand in", again.stderr)
        needed = int(rows["graph", "64"]["needed_bytes"])
        enough = self.done(*settings, "--modes", "graph", "--memory-limit", needed + (1 << 20))
        self.assertIn("1 of 2 runs stand in", enough.stderr)
        rows = {(r["mode"], r["batch_size"]): r for r in self.rows(self.folder)}
        self.assertEqual(rows["graph", "64"]["status"], "finished")
        self.assertLess(int(rows["graph", "64"]["peak_memory_bytes"]), needed)  # which counts evaluation, too

    def test_image_folders(self):
        write_images(self.folder / "data" / "train", 3)
        write_images(self.folder / "data" / "test", 2)
        out = self.folder / "out"
        done = self.done("--data", self.folder / "data", "--modes", "graph", "--batch-sizes", "4", "--epochs", 2, "--out", out)
        self.assertIn("6 training and 4 validation images", done.stdout)
        self.assertEqual(len(self.rows(out)), 1)
        self.assertEqual([(r["epoch"], r["steps"]) for r in self.table(out / "batch_study_epochs.csv")],
                         [("1", "2"), ("2", "2")])
        # Class folders alone: a fifth is held out.
        done = self.done("--data", self.folder / "data" / "train", "--modes", "eager", "--batch-sizes", "64", "--steps", 1,
                         "--out", out, "--fresh")
        self.assertIn("5 training and 1 validation images", done.stdout)
        self.assertIn("batch size 64: there are only 5 training records", done.stderr)

    def test_bad_arguments(self):
        for size in ("0", "-3", "16,-3", "4097", "x", "1.5", ""):
            self.refused("--batch-sizes", size, says=["--batch-sizes"])
        self.refused("--modes", "turbo", says=["--modes", "turbo"])
        self.refused("--modes", "graph,graph", says=["--modes"])
        self.refused("--epochs", "0", says=["--epochs"])
        self.refused("--steps", "-1", says=["--steps"])
        self.refused("--seed", "-1", says=["--seed"])
        self.refused("--threads", "0", says=["--threads"])
        for device in ("", "tpu", "cuda:", "gpu:x", "cuda:-1"):
            self.refused("--device", device, says=["--device"])
        self.refused("--learning-rate", "nan", says=["--learning-rate"])
        self.refused("--frobnicate", status=2, says=["--frobnicate"])
        self.refused("--model", "transformer", status=2, says=["--model", "transformer"])
        self.refused("--batch-sizes", "all,4", says=["--batch-sizes", "twice"])
        self.refused("--seconds", "0", says=["--seconds"])
        for size in ("0", "-1", "x", "8X"):
            self.refused("--memory-limit", size, status=2, says=["--memory-limit"])
        (self.folder / "file").write_text("")
        self.refused("--steps", 1, "--out", self.folder / "file" / "out", says=["--out"])

    def test_bad_data(self):
        data = self.folder / "data"
        self.refused("--data", data, says=["no such folder", str(data)])
        data.mkdir()
        self.refused("--data", data, says=[str(data)])
        write_images(data / "train", 2)
        self.refused("--data", data, says=["no test/"])
        write_images(data / "test", 2)
        image = data / "train" / "dark" / "1.png"
        good = image.read_bytes()
        image.write_bytes(good[:60])
        self.refused("--data", data, says=[str(image)])
        image.write_bytes(b"")
        self.refused("--data", data, says=[str(image), "empty"])
        image.write_bytes(png(49, 9))
        self.refused("--data", data, says=[str(image), "49x49", "50x50"])
        image.write_bytes(good)
        write_images(data / "train" / "more", 1)
        self.refused("--data", data, says=["more"])

    def test_a_gpu_that_is_not_there(self):
        # No machine has so many.
        done = self.done("--device", "cuda:99999", "--modes", "graph", "--batch-sizes", "2,3", "--steps", 1, "--out", self.folder,
                         *self.few_images())
        self.assertEqual(done.stderr.count("continuing on the CPU"), 1, done.stderr)
        self.assertEqual([r["device"] for r in self.rows(self.folder)], ["cpu", "cpu"])

    def test_loss_that_is_not_finite(self):
        done = self.study("--modes", "eager", "--batch-sizes", 2, "--steps", 3, "--learning-rate", "1e29", "--check-finite",
                          "--out", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("batch_study: ", done.stderr.splitlines()[-1])

    def test_help(self):
        done = self.done("--help")
        for option in ("--model", "--data", "--modes", "--batch-sizes", "--epochs", "--steps", "--seed", "--device", "--threads",
                       "--memory-limit", "--fresh", "--out"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    studies.main("batch_study")
