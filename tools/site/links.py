"""Links of a folder of built HTML pages that lead nowhere."""

import html.parser
import pathlib
import urllib.parse


class _Page(html.parser.HTMLParser):
    """The names that a page defines, and what it refers to."""

    def __init__(self, text):
        super().__init__()
        self.names, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.names.add(value)
            elif name in {"href", "src"} and value is not None:
                self.targets.append(value)


def broken(folder):
    """One line for each link to a file or heading that does not exist; links to other hosts are not followed."""
    folder = pathlib.Path(folder).resolve()
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    errors = []
    for path, page in pages.items():
        for target in dict.fromkeys(page.targets):
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            relative = urllib.parse.unquote(parts.path)
            file = folder / relative.lstrip("/") if relative.startswith("/") else path.parent / relative if relative else path
            file = file.resolve()
            if file.is_dir():
                file /= "index.html"
            fragment = urllib.parse.unquote(parts.fragment)
            if not file.exists():
                errors.append(f"{path.relative_to(folder)}: the link leads nowhere: {target}")
            elif fragment and file in pages and fragment not in pages[file].names:
                errors.append(f"{path.relative_to(folder)}: {file.relative_to(folder)} has no #{fragment}")
    return errors
