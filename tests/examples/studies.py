"""What the tests of both studies share."""
import csv
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree


class StudyTest(unittest.TestCase):
    PROGRAM = ""
    NAME = ""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def command(self, *arguments):
        return [StudyTest.PROGRAM, *map(str, arguments)]

    def study(self, *arguments):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=600)

    def done(self, *arguments):
        done = self.study(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def table(self, file, columns=None):
        with open(file, newline="") as opened:
            reader = csv.DictReader(opened)
            if columns is not None:
                self.assertEqual(reader.fieldnames, columns)
            return list(reader)

    def stored(self, out, name=None):
        return json.loads((out / f"{name or self.NAME}.json").read_text())

    def check_chart(self, file):
        root = xml.etree.ElementTree.parse(file).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        # A chart that lost its data would have no marks.
        self.assertGreater(len(list(root.iter())), 10)

    def refused(self, *arguments, says, status=None):
        """The program ends with an error and one line on stderr, before it has trained anything."""
        done = self.study(*arguments)
        self.assertGreater(done.returncode, 0, arguments)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith(f"{self.NAME}: "), done.stderr)
        for text in says:
            self.assertIn(text, done.stderr)

    def interrupted(self, *arguments, after):
        """Interrupts the study, but not its child, once a line of stderr contains `after`; returns the exit status."""
        process = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.addCleanup(process.kill)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if after in line:
                process.send_signal(signal.SIGINT)
                break
        rest = process.communicate(timeout=600)[1]
        self.assertIn("interrupted", rest, "".join(lines) + rest)
        return process.returncode


def main(name):
    StudyTest.PROGRAM = sys.argv.pop(1)
    StudyTest.NAME = name
    unittest.main()
