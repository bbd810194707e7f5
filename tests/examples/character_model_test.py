#!/usr/bin/env python3
"""Runs the character model with tiny settings: what it prints and writes, and how it ends on bad input.

    character_model_test.py PROGRAM
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PROGRAM = ""
NUMBER = r"(\d+\.\d+)"
EPOCH = re.compile(rf"^ +(\d+) +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER}$", re.MULTILINE)
HEAD = re.compile(r"written at temperature [^\n]*:\n\n")


def model(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600)


class CharacterModel(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.text = pathlib.Path(scratch.name) / "text.txt"

    def run_it(self, *arguments):
        done = model(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, [e[2:] for e in EPOCH.findall(done.stdout)], HEAD.split(done.stdout)[-1][:-1]

    def test_generated_text(self):
        few = ("--epochs", 1, "--steps", 2, "--batch-size", 4, "--length", 16, "--sample", 20)
        text, graph, written = self.run_it("--mode", "graph", "--prompt", "the crew", *few)
        self.assertIn("of a generated grammar", text)
        self.assertEqual(len(graph), 1)
        self.assertEqual(len(written), 28)
        self.assertTrue(written.startswith("the crew"))
        # One arithmetic, one order, one seed: the same numbers and the same text.
        _, eager, again = self.run_it("--mode", "eager", "--prompt", "the crew", *few)
        self.assertEqual(graph, eager)
        self.assertEqual(written, again)

    def test_a_text_it_can_learn(self):
        # Every character is followed by one other: what is written at temperature 0 must go on like the text.
        self.text.write_text("a-bé\n" * 400)
        text, epochs, written = self.run_it("--data", self.text, "--epochs", 6, "--batch-size", 8, "--length", 12,
                                            "--learning-rate", 0.01, "--sample", 13, "--temperature", 0, "--prompt", "-b")
        self.assertIn("2000 characters", text)
        self.assertIn("5 different ones, 0 unknown", text)
        self.assertEqual(written, "-bé\na-bé\na-bé\na")
        self.assertLess(float(epochs[-1][0]), 0.5)

    def test_a_picture(self):
        picture = self.text.with_name("written.svg")
        self.run_it("--epochs", 1, "--steps", 1, "--batch-size", 4, "--length", 16, "--sample", 100, "--prompt", "the crew",
                    "--picture", picture)
        svg = xml.etree.ElementTree.parse(picture).getroot()
        letters = [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual("".join(letters[1:8]), "thecrew") # after the title
        grounds = svg.findall("{http://www.w3.org/2000/svg}g/{http://www.w3.org/2000/svg}rect")
        self.assertGreater(len(grounds), 60)               # after one step nothing is likely

    def refused(self, *arguments, says, status=1):
        """The program ends with an error and one line on stderr, before it has trained anything."""
        done = model(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("character_model: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_bad_input(self):
        self.refused("--data", self.text, says=[str(self.text), "no such file"])
        self.text.write_text("abc" * 100)
        self.refused("--data", self.text, "--length", 30, "--prompt", "a", says=[str(self.text), "300 characters", "30"])
        self.refused("--data", self.text, "--length", 5, "--prompt", "xyz", says=["--prompt", "'xyz'"])
        self.text.write_text("")
        self.refused("--data", self.text, says=[str(self.text), "empty file"])
        for arguments in (("--epochs", 0), ("--mode", "turbo"), ("--temperature", -1), ("--temperature", "nan"),
                          ("--length", 0), ("--learning-rate", 0), ("--prompt", "")):
            self.refused(*arguments, says=[arguments[0]], status=2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
