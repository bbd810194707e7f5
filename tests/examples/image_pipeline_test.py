#!/usr/bin/env python3
"""Runs the image pipeline with a few pictures: what it prints, and how it ends on bad input.

    image_pipeline_test.py PROGRAM
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
NUMBER = r"(\d+\.\d+)"
EPOCH = re.compile(rf"^ +(\d+) +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER} +\d+$", re.MULTILINE)
STAGE = re.compile(rf"^([a-z ,]+?) +(\d+) +{NUMBER} +{NUMBER}$", re.MULTILINE)
STAGES = ["list", "read", "decode", "choose part", "crop, flip, batch", "train"]
FEW = ("--images", 45, "--epochs", 2, "--batch-size", 8)


def train(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600)


class ImagePipeline(unittest.TestCase):
    def trained(self, *arguments):
        done = train(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, [e[2:] for e in EPOCH.findall(done.stdout)]

    def test_pictures_of_its_own(self):
        text, epochs = self.trained(*FEW, "--threads", 2)
        self.assertIn("36 images of 3 classes to train on, 9 held out; JPEG by stb", text)
        self.assertEqual(len(epochs), 2)
        stages = STAGE.findall(text)
        self.assertEqual([s[0] for s in stages], STAGES)
        for name, rate, _, _ in stages:
            self.assertGreater(int(rate), 0, name)
        self.assertRegex(text, r"bottleneck: (" + "|".join(STAGES) + rf"); the step waited {NUMBER}% of its time")
        # Crops and order are the records', not the threads'.
        self.assertEqual(self.trained(*FEW, "--threads", 0, "--prefetch", 0)[1], epochs)
        self.assertNotEqual(self.trained(*FEW, "--seed", 2)[1], epochs)

    def test_bad_input(self):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)

            def refused(arguments, says, status=1):
                done = train(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("image_pipeline: "), done.stderr)
                self.assertIn(says, done.stderr)

            refused(("--data", folder / "none"), "none': no such folder")
            (folder / "a").mkdir()
            refused(("--data", folder), "a': no PNG or JPEG images")
            for i in range(6):
                (folder / "a" / f"{i}.jpg").write_bytes(b"no picture")
            refused(("--data", folder), ".jpg': neither PNG nor JPEG")
            for arguments in (("--epochs", 0), ("--images", 1), ("--decoder", "none"), ("--threads", -2)):
                refused(arguments, arguments[0], 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
