#!/usr/bin/env python3
"""Every page of docs/ stands in a section of the site, which the build of the site itself checks only where its tools are."""

import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/site"))
import build  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    docs = pathlib.Path(folder) / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for page in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / page, docs / build.RENAMED[page])
    _, left = build.navigation(docs)
    (docs / "new_page.md").write_text("# New\n", encoding="utf-8")
    _, found = build.navigation(docs)
    if left or found != ["new_page.md"]:
        sys.exit(f"in no section of tools/site/build.py: {left}; of a new page it says {found}")
print("every page stands in a section")
