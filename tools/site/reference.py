"""Pages of all public names, one for each folder of headers, from Doxygen's XML."""

import collections
import shutil

import api

TITLES = {"": "The umbrella headers"}


def write(root, work, target):
    """Runs Doxygen in `work` and writes the pages into `target`."""
    names = api.names(api.doxygen(root, work))
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    folders = collections.defaultdict(list)
    for each in names:
        folders[each.folder()].append(each)
    rows = []
    for folder, entries in sorted(folders.items()):
        file = (folder.replace("/", "-") or "umbrella") + ".md"
        (target / file).write_text(page(folder, entries), encoding="utf-8")
        rows.append(f"| [{TITLES.get(folder, f'`{folder}`')}]({file}) | {len({each.file for each in entries})} | "
                    f"{len(entries)} |")
    unique = dict(api.PROTOCOLS.values())
    protocols = [f"| {kind} | `{name}` | {what} |" for kind, members in unique.items() for name, what in members.items()]
    (target / "README.md").write_text("\n".join([
        "# Headers and names", "",
        "All public names, made from the comments of the headers. What stands in a namespace `detail` is no part of it. The",
        "functions on tensors, with their derivatives and the names of other libraries, are in",
        "[the tables of operations](../operations/README.md).", "",
        "| folder of `include/tapegraph` | headers | names |", "| --- | ---: | ---: |", *rows, "",
        "## Members that all classes of a kind have", "",
        "A class `NAME_op` is the operation that the function `NAME` applies.", "",
        "| of | member | what it is |", "| --- | --- | --- |", *protocols, ""]), encoding="utf-8")


def page(folder, entries):
    parts = [f"# {TITLES.get(folder, f'{folder}/')}", ""]
    members = collections.defaultdict(list)
    classes = {f"{each.scope}::{each.name}" for each in entries if each.kind == "class"}
    for each in entries:
        if each.scope in classes:
            members[each.scope].append(each)
    headers = collections.defaultdict(list)
    for each in entries:
        if each.scope not in classes:
            headers[each.file].append(each)
    for header, of_header in headers.items():
        parts += [f"## {header.partition('/')[2]}", ""]
        for each in of_header:
            parts += [f"### {each.name}", "", code(each), "", each.comment or api.meaning(each.file, each.name), ""]
            own = f"{each.scope}::{each.name}"
            parts += member_lines(own, members)
    return "\n".join(parts) + "\n"


def member_lines(own, members):
    """The members of a class, and below them those of its own classes."""
    lines = []
    for member in members.pop(own, []):
        shown = "; ".join(member.declarations) or f"{member.kind} {member.name}"
        what = " ".join(member.comment.split("```")[0].split()) or api.meaning(member.file, member.name)
        lines.append(f"- ``{shown}``" + (f"<br>{what}" if what else ""))
        inner = member_lines(f"{own}::{member.name}", members) if member.kind == "class" else []
        lines += ["    " + line for line in inner if line]
    return lines + [""] if lines else []


def code(each):
    """The declarations of a name, as a block."""
    shown = [f"// namespace {each.scope}", *each.declarations]
    if each.kind in {"class", "concept"} or not each.declarations:
        shown = [f"{each.kind} {each.scope}::{each.name}", *each.declarations]
    return "```cpp\n" + "\n".join(shown) + "\n```"
