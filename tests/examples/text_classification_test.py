#!/usr/bin/env python3
"""Runs the text classifier with tiny settings: what it prints, and how it ends on bad input.

    text_classification_test.py PROGRAM
"""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
NUMBER = r"(\d+\.\d+)"
EPOCH = re.compile(rf"^ +(\d+) +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER} +{NUMBER}$", re.MULTILINE)


def classify(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600)


class TextClassification(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.table = self.folder / "reviews.csv"

    def epochs(self, *arguments):
        done = classify(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, EPOCH.findall(done.stdout)

    def test_generated_sentences(self):
        few = ("--sentences", 90, "--epochs", 2, "--steps", 3, "--batch-size", 8, "--max-length", 13)
        text, graph = self.epochs("--mode", "graph", *few)
        self.assertIn("5,353,235", text)
        self.assertIn("72 training and 18 validation texts", text)
        self.assertIn("'negative' 30, 'neutral' 30, 'positive' 30", text)
        self.assertEqual([e[0] for e in graph], ["1", "2"])
        # One arithmetic, one order: the modes agree; and every run of a seed is the same. Seconds differ.
        eager = self.epochs("--mode", "eager", *few)[1]
        self.assertEqual([e[2:] for e in graph], [e[2:] for e in eager])
        other = self.epochs("--mode", "eager", "--seed", 2, *few)[1]
        self.assertNotEqual([e[2:] for e in graph], [e[2:] for e in other])

    def write_table(self, rows, header=("airline_sentiment", "text")):
        with open(self.table, "w", newline="") as file:
            csv.writer(file).writerows([header, *rows])

    def test_a_table(self):
        # 9 of 12 rows are of one class, and hard to read.
        rows = [("bad", 'The "crew",\nI think, was\r\nlate')] * 9 + [("fine", "on time"), ("good", "GREAT, great!")] + [("good", "ok")]
        self.write_table(rows)
        words = self.folder / "words.txt"
        text, epochs = self.epochs("--data", self.table, "--mode", "eager", "--epochs", 1, "--batch-size", 4,
                                   "--max-length", 6, "--refuse-long", "--save-vocabulary", words)
        self.assertIn("10 training and 2 validation texts", text)
        self.assertIn("'bad' 9, 'fine' 1, 'good' 2", text)
        self.assertEqual(len(epochs), 1)
        self.assertEqual(words.read_text().splitlines()[:6], sorted(["the", "crew", "i", "think", "was", "late"]))

    def refused(self, *arguments, says, status=1):
        """The program ends with an error and one line on stderr, before it has trained anything."""
        done = classify(*arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("text_classification: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_bad_data(self):
        data = ("--data", self.table)
        self.refused(*data, says=["reviews.csv", "no such file"])
        good = [("bad", "a b"), ("fine", "c"), ("good", "d")] * 2
        head = "airline_sentiment,text\n"
        for text, says in (
            ("", ["empty file"]),
            (head + 'bad,"open\n', ["row 2 (line 2)", "'text'", "never closed", "'open"]),
            (head + 'bad,fine\ngood,"x"y\n', ["row 3 (line 3)", "closing quote", "'y'"]),
            (head + "bad,the 5\" screen\n", ["row 2", "quote inside", "'the 5\" screen'"]),
            (head + "bad,a,b\n", ["row 2", "3 fields", "'b'"]),
            ("mood,text\nbad,a\n", ["no column 'airline_sentiment'", "'mood', 'text'"]),
            (head + "bad,a\nfine,b\n", ["2 classes", "'bad', 'fine'"]),
            (head + ",a\n", ["row 2", "label is empty"]),
        ):
            self.table.write_text(text)
            self.refused(*data, says=["reviews.csv", *says])
        self.write_table([*good, ("bad", "!?")])
        self.refused(*data, says=["reviews.csv', row 8", "no tokens", "'!?'"])
        self.write_table([*good, ("bad", "one two three four")])
        self.refused(*data, "--max-length", 3, "--refuse-long", says=["row 8", "4 tokens, at most 3"])

    def test_bad_arguments(self):
        for arguments in (("--epochs", 0), ("--mode", "turbo"), ("--batch-size", "x"), ("--max-tokens", 40692),
                          ("--max-length", 0), ("--learning-rate", "nan"), ("--seed", -1)):
            self.refused(*arguments, says=[arguments[0]], status=2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
