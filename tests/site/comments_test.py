#!/usr/bin/env python3
"""What tools/site/comments.py says of a small header."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/site/comments.py"
HEADER = """#pragma once
namespace tapegraph {
/// Something.
struct told {
    explicit told(int n);          // the comment of the class is that of its constructors
    int first() const;
    int second() const;            ///< elements
    bool operator==(const told& other) const;
    int size() const;              // by a protocol
    int refused() const = delete;
private:
    int hidden() const;
};
struct untold {};
/// Overloads share a comment.
void twice(int);
void twice(double);
void bare();
namespace detail {
void internal();
}
} // namespace tapegraph
"""


class Comments(unittest.TestCase):
    def run_on(self, header, *arguments):
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root) / "include/tapegraph/part/names.hpp"
            file.parent.mkdir(parents=True)
            (pathlib.Path(root) / "cuda").mkdir()
            file.write_text(header, encoding="utf-8")
            done = subprocess.run([sys.executable, TOOL, "--root", root, *arguments], text=True, stdout=subprocess.PIPE)
        return done.returncode, done.stdout.splitlines()

    def test_what_lacks_a_comment(self):
        at = "  include/tapegraph/part/names.hpp:"
        self.assertEqual((1, ["part: 5 of 8", f"{at}6: function tapegraph::told::first", f"{at}14: class tapegraph::untold",
                              f"{at}18: function tapegraph::bare", "comments: 5 of 8 public names (62.5 %)"]),
                         self.run_on(HEADER, "--check"))

    def test_nothing_lacks_one(self):
        self.assertEqual((0, ["part: 1 of 1", "comments: 1 of 1 public names (100.0 %)"]),
                         self.run_on("namespace tapegraph {\n/// Nothing.\nvoid f();\n}\n", "--check"))


if __name__ == "__main__":
    if shutil.which(os.environ.get("DOXYGEN", "doxygen")) is None:
        print("there is no doxygen")
        sys.exit(77)
    unittest.main()
