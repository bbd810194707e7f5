#!/usr/bin/env python3
"""What tools/site/links.py says of small folders of pages."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/site"))

import links  # noqa: E402


class Links(unittest.TestCase):
    def broken(self, **pages):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in pages.items():
                file = pathlib.Path(folder) / (name.replace("__", "/") + ".html")
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return links.broken(folder)

    def test_what_leads_somewhere(self):
        self.assertEqual([], self.broken(index='<h1 id="a b">x</h1><a href="#a%20b"></a><a href="below/">y</a><a href="//host/no">z</a>',
                                         below__index='<a href="../index.html?q=1#a%20b"></a><a name="old"></a><a href="#old"></a>'))

    def test_what_leads_nowhere(self):
        self.assertEqual(["index.html: the link leads nowhere: no.html"], self.broken(index='<a href="no.html"></a>'))
        self.assertEqual(["index.html: the link leads nowhere: no.png"], self.broken(index='<img src="no.png">'))
        self.assertEqual(["a.html: b.html has no #c"], self.broken(a='<a href="b.html#c"></a>', b='<p class="c"></p>'))
        self.assertEqual(["index.html: index.html has no #c"], self.broken(index='<a href="#c"></a>'))


if __name__ == "__main__":
    unittest.main()
