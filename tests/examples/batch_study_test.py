#!/usr/bin/env python3
"""Runs the batch-size study with tiny settings: its files, its table, and how it ends on bad input.

    batch_study_test.py PROGRAM
"""
import csv
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

PROGRAM = ""
COLUMNS = (
    "mode,batch_size,seconds_per_epoch,ms_per_step,ms_ingestion,samples_per_second,peak_memory_bytes,"
    "train_loss,train_accuracy,validation_loss,validation_accuracy,device"
).split(",")


def study(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600)


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


class BatchStudy(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def rows(self, out):
        with open(out / "batch_study.csv", newline="") as file:
            reader = csv.DictReader(file)
            self.assertEqual(reader.fieldnames, COLUMNS)
            return list(reader)

    def check_charts(self, out):
        for name in ("batch_study.svg", "batch_study_memory.svg", "batch_study_learning.svg"):
            root = xml.etree.ElementTree.parse(out / name).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            # A chart that lost its data would have no marks.
            self.assertGreater(len(list(root.iter())), 10)

    def test_both_modes(self):
        out = self.folder / "new" / "results"
        done = study("--modes", "graph,eager", "--batch-sizes", "4,7", "--epochs", 1, "--steps", 2, "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
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
        self.check_charts(out)

    def test_image_folders(self):
        write_images(self.folder / "data" / "train", 3)
        write_images(self.folder / "data" / "test", 2)
        out = self.folder / "out"
        done = study("--data", self.folder / "data", "--modes", "graph", "--batch-sizes", "4", "--epochs", 2, "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("6 training and 4 validation images", done.stdout)
        self.assertEqual(len(self.rows(out)), 1)
        with open(out / "batch_study_epochs.csv", newline="") as file:
            self.assertEqual([(r["epoch"], r["steps"]) for r in csv.DictReader(file)], [("1", "2"), ("2", "2")])
        # Class folders alone: a fifth is held out.
        done = study("--data", self.folder / "data" / "train", "--modes", "eager", "--batch-sizes", "64", "--steps", 1,
                     "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("5 training and 1 validation images", done.stdout)
        self.assertIn("batch size 64: there are only 5 training images", done.stderr)

    def refused(self, *arguments, says):
        """The program ends with an error and one line on stderr, before it has trained anything."""
        done = study(*arguments)
        self.assertGreater(done.returncode, 0, arguments)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("batch_study: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

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
        self.refused("--frobnicate", says=["--frobnicate"])
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
        done = study("--device", "cuda:99999", "--modes", "graph", "--batch-sizes", "2,3", "--steps", 1, "--out", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("continuing on the CPU"), 1, done.stderr)
        self.assertEqual([r["device"] for r in self.rows(self.folder)], ["cpu", "cpu"])

    def test_loss_that_is_not_finite(self):
        done = study("--modes", "eager", "--batch-sizes", 2, "--steps", 3, "--learning-rate", "1e29", "--check-finite",
                     "--out", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("batch_study: ", done.stderr.splitlines()[-1])

    def test_help(self):
        done = study("--help")
        self.assertEqual(done.returncode, 0)
        for option in ("--data", "--modes", "--batch-sizes", "--epochs", "--steps", "--seed", "--device", "--threads", "--out"):
            self.assertIn(option, done.stdout)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
