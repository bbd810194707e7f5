#!/usr/bin/env python3
"""Builds the site of README.md, docs/ and other pages into build/site/html; tools/site.sh installs what this needs.

    tools/site/build.py [--quick] [--zensical PROGRAM]    --quick: without the reference, which needs Doxygen

Pages are copied as they are, except that what only tools/check_snippets.py reads (words after `cpp`, code in comments) is
left out, and SVG charts become part of the page, where their bars show their titles. Exits 1 if the generator warns, a page
stands in no section, or a link of the built pages leads nowhere.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import links  # noqa: E402
import reference  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "build/site"
RENAMED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}

# The sections and their pages. A name that ends in /* stands for a folder, its README.md first.
SECTIONS = {
    "Start": ["installing", "tutorial", "cheat_sheet", "gotchas", "troubleshooting", "faq"],
    "Coming from": ["from_tensorflow", "from_pytorch", "names_of_jax_and_dlib"],
    "Guides": {
        "Tensors and functions": ["tensor", "gradient_tape", "scalars", "minimize", "ode", "number_programs", "number_tensors",
                                  "run_time_graphs", "sessions"],
        "Models and training": ["models", "layers", "losses", "metrics", "optimizers", "training", "custom_training",
                                "mixed_precision"],
        "Data and files": ["data", "images", "text", "tables", "files", "weights_of_others", "arrays", "onnx", "interop",
                           "tensorboard", "profiling"],
        "Devices and machines": ["devices", "platforms", "distributed"],
    },
    "Gallery": ["gallery"],
    "Reference": {"Operations": ["operations/*"], "Headers": ["reference/*"]},
    "Benchmarks": ["performance", "performance/*", "compile_time", "accuracy", "studies", "results/*"],
    "How it works": {"Overview": ["design"], "Decisions": ["design/*"], "Tests": ["testing", "testing/*"],
                     "Project": ["contributing", "changelog"]},
}

FENCE_WORDS = re.compile(r"^( *```)(cpp|text|cuda)\b.*$", re.MULTILINE)
HIDDEN = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
CHART = re.compile(r"^!\[([^\]]*)\]\(([^)\s]+\.svg)\)$", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def staged_name(page):
    """Where a page of the repository stands in the site."""
    path = page.relative_to(ROOT)
    return pathlib.Path(RENAMED.get(path.as_posix()) or path.relative_to("docs" if path.parts[0] == "docs" else "benchmarks"))


def staged(page, pages):
    """The text of a page as the generator reads it."""
    text = FENCE_WORDS.sub(r"\1\2", HIDDEN.sub("", page.read_text(encoding="utf-8")))
    name = staged_name(page)

    def inline(match):
        svg = (page.parent / match[2]).read_text(encoding="utf-8").strip()
        return f'<figure class="chart" role="img" aria-label="{match[1]}">\n' + re.sub(r"\n+", "\n", svg) + "\n</figure>"

    def lead(match):
        if "://" in match[2]:
            return match[0]
        target = (page.parent / match[2]).resolve()
        if target in pages:
            return match[1] + os.path.relpath(staged_name(target), name.parent) + match[3]
        if (ROOT / "docs") in target.parents:  # a picture
            return match[1] + os.path.relpath(target.relative_to(ROOT / "docs"), name.parent) + match[3]
        return match[0]

    parts = CODE.split(CHART.sub(inline, text))
    return "".join(part if i % 2 else LINK.sub(lead, part) for i, part in enumerate(parts))


def title_of(path):
    """The first heading, without Markdown's marks."""
    found = re.search(r"^# (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else path.stem


def navigation(docs):
    """Zensical's list of sections, and the pages that are in none."""
    left = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - {"index.md"}

    def entry(name):
        left.discard(name)
        return {title_of(docs / name): name}

    def folder(path):
        first = [path / "README.md"] if (path / "README.md").exists() else []
        entries = [entry(one.relative_to(docs).as_posix()) for one in first + sorted(set(path.glob("*.md")) - set(first))]
        for below in sorted(one for one in path.iterdir() if one.is_dir() and any(one.glob("*.md"))):
            entries.append({below.name.replace("_", " ").capitalize(): folder(below)})
        return entries

    def section(content):
        if isinstance(content, dict):
            return [{title: entries} for title, below in content.items() if (entries := section(below))]
        entries = []
        for name in content:
            if name.endswith("/*"):
                entries += folder(docs / name[:-2]) if (docs / name[:-2]).exists() else []
            else:
                entries.append(entry(f"{name}.md"))
        return entries

    return [{"TapeGraph": "index.md"}, *({title: section(content)} for title, content in SECTIONS.items())], sorted(left)


def toml(value):
    """A list or table within a line of TOML; JSON's strings are TOML's."""
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the reference")
    parser.add_argument("--zensical", default="zensical")
    arguments = parser.parse_args()
    start = time.monotonic()

    docs = TARGET / "docs"
    shutil.rmtree(docs, ignore_errors=True)
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("*.md"))
    pages = {ROOT / name for name in RENAMED}
    pages |= {*(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks/results").glob("*.md")}
    for page in sorted(pages):
        target = docs / staged_name(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(staged(page, pages), encoding="utf-8")
    shutil.copy(ROOT / "tools/site/style.css", docs)
    if not arguments.quick:
        reference.write(ROOT, TARGET / "doxygen", docs / "reference")

    sections, left = navigation(docs)
    errors = [f"{page} stands in no section of tools/site/build.py" for page in left]
    settings = (ROOT / "tools/site/zensical.toml").read_text(encoding="utf-8")
    (TARGET / "zensical.toml").write_text(settings.replace("nav = []", "nav = " + toml(sections)), encoding="utf-8")
    generator = shutil.which(arguments.zensical)
    if generator is None:
        sys.exit(f"site: there is no program {arguments.zensical}")
    built = subprocess.run([os.path.abspath(generator), "build", "--strict", "--clean"], cwd=TARGET, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if built.returncode:
        errors.append(COLOUR.sub("", built.stdout).strip())
    else:
        errors += links.broken(TARGET / "html")

    size = sum(path.stat().st_size for path in (TARGET / "html").rglob("*") if path.is_file())
    print("\n".join([*errors, f"site: {len(list((TARGET / 'html').rglob('*.html')))} pages, {size / 1e6:.1f} MB, "
                              f"{time.monotonic() - start:.1f} s, {len(errors)} errors: {TARGET / 'html/index.html'}"]))
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
