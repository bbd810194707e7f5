"""What the headers offer to programs, with its comments, as Doxygen reads it."""

import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import xml.etree.ElementTree as xml

# Namespaces of the implementation, whose names pages use at most to say how things work; docs/design.md explains what they
# have. Of `cuda` the headers that programs include count.
INTERNAL = {"ir", "cpu", "runtime", "machine", "stb", "onnx_import", "own_operators", "std", "folded", "wire", "blas", "driver",
            "rules", "kernels", "scalars", "minimizers"}
CUDA_HEADERS = {f"cuda/tapegraph/cuda/{name}.hpp" for name in ("device_elements", "memory", "plan_memory", "thrust")}


# Members that all classes of a kind have, by folder of include/tapegraph; the comment at the top of the file that is named
# has the rules. A member's own comment says more.
PROTOCOLS = {
    "": ("every class", {
        "begin": "iterator at the first element", "end": "iterator after the last element",
        "size": "the number of elements", "empty": "whether there are no elements",
    }),
    "ops": ("operations, `ops/elementwise/map_op.hpp` and docs/operations/extending.md", {
        "name": "what errors, plans and tables call the operation",
        "attributes": "numbers that belong to a call, part of the plan",
        "value": "the value, on plain scalars",
        "vjp": "the derivative by operand I: dL/dx from dL/dy, the operands and the value",
        "jvp": "the tangent of the result",
        "infer": "the shape rule: type and shape of the result, or why there is none",
        "flops": "floating-point operations of a call, for costs",
        "run": "computes one call of the kernel",
        "workspace": "bytes of scratch memory that a call needs",
        "shared": "what the derivatives by all operands have in common",
        "flow": "the derivative by operand I, from what `shared` gives",
        "method": "the algorithm that a call takes, for tables and profiles",
        "result_type": "the element type of the result",
        "of_storage_types": "the derivative for 16-bit elements, where y has lost digits",
    }),
    "nn/losses": ("losses, `nn/losses/basic.hpp`", {
        "operator()": "the mean loss of the batch, a scalar",
        "per_record": "the loss of each record, [batch] for an output [batch, n]",
        "each": "the loss of each element, of the output's shape",
        "labels": "element type and shape of the labels for an output of that type and shape",
        "right": "for each record whether the output agrees with its label",
        "accuracy": "the fraction of records whose output agrees with the label",
        "numbers": "the loss's numbers, which may change without compiling again",
    }),
    "nn/metrics": ("metrics, `nn/metrics/metric.hpp`", {
        "name": "what logs and histories call the metric",
        "numbers": "the metric's numbers, checked, which may change without compiling again",
        "update": "adds a batch to the state: outputs x, labels z, weights of the records",
        "result": "the metric of all that was added, from its state",
    }),
    "nn/optimizers": ("optimizers, `nn/optimizers/basic.hpp`, `chain.hpp`", {
        "numbers": "the numbers that a step uses, steps counted from 1",
        "update": "writes a variable's update, from its value w, its gradient g and the step's numbers n",
        "first_value": "the first value of a state; others start at 0",
        "shared": "what is computed from all gradients of a step",
        "transform": "the gradient that the next element of the chain gets",
        "after": "what happens to the weights after the update",
        "gate": "whether a step updates anything",
        "holds": "whether the mask holds for a path",
        "operator()": "the learning rate of a step",
    }),
    "train/callbacks": ("callbacks, `train/callbacks.hpp`", {
        "on_train_begin": "called before the first epoch", "on_train_end": "called after the last epoch",
        "on_epoch_begin": "called before each epoch", "on_epoch_end": "called after each epoch and its validation",
        "on_batch_begin": "called before each step", "on_batch_end": "called after each step whose loss has arrived",
        "on_test_begin": "called before a validation", "on_test_end": "called after a validation",
        "on_state": "reads or writes what a resumed run continues with",
        "on_checkpoint": "writes files that are to be resumed, after a step that all callbacks have seen",
    }),
}
PROTOCOLS["model/eager_scope.hpp"] = ("scopes of both modes, `model/scope.hpp`", {
    "operator/": "the scope of a name or number below this one",
    "unique": "a scope below this one whose name no other has: `name`, then `name_1` and so on",
    "reuse": "the scope in which a variable that exists is returned", "reuses": "whether variables that exist are returned",
    "variable": "the variable of that name, made with its first values by the first call; argument_error if it was asked for before",
    "variable_like": "a variable of the element type of the operand",
    "get_variable": "TensorFlow's: makes a variable, or, in a scope of `reuse()`, returns the one that exists",
    "assign": "gives a variable another value when the step ends",
    "add_loss": "adds a scalar to the loss that the step minimizes",
    "with_added_losses": "a loss and what `add_loss` has added",
    "unless_frozen": "the value, or the variable in steps in which that is frozen",
    "require": "an error with the scope's path unless the condition holds",
    "training": "whether the call belongs to a training step",
    "uniform_like": "random numbers from [0, 1) of the operand's shape, others in every step",
    "with_draws": "calls a function whose random numbers are those of this step",
    "operand": "a layer's operand, as values",
    "enter": "begins a layer", "leave": "ends a layer, and returns its result", "layer_mark": "what `enter` tells `leave`",
    "context": "what all scopes of a call share",
})
PROTOCOLS["scalar"] = PROTOCOLS["expr"] = PROTOCOLS["ops"]
PROTOCOLS["io/callbacks"] = PROTOCOLS["train/callbacks"]
# Operators that mean what they mean in C++: comparison, assignment, conversion.
LANGUAGE = re.compile(r"operator(?:==|!=|<=>|<|>|<=|>=|[-+*/&|]?=|\*|->|\+\+|--|\W*\s[\w:&\s]+)$")


def meaning(file, name):
    """What the protocols say of a member of a class in the file, or nothing."""
    if name.endswith("_op"):  # also in the index of the reference
        return f"the operation that `{name[:-3]}` applies"
    parts = file.partition("/tapegraph/")[2].split("/")
    for length in range(len(parts), -1, -1):
        found = PROTOCOLS.get("/".join(parts[:length]), ("", {}))[1].get(name)
        if found:
            return found
    return ""


SETTINGS = """
INPUT = {inputs}
FILE_PATTERNS = *.hpp *.cuh
EXTENSION_MAPPING = cuh=C++
RECURSIVE = YES
OUTPUT_DIRECTORY = {work}
STRIP_FROM_PATH = {root}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
EXCLUDE_SYMBOLS = detail *::detail *::detail::* *_detail
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = TG_HD= TG_INLINE= "TG_MISTAKE== delete" "TG_REFUSES(x)== delete" "TG_DEFINES(x)=0" "TG_COMPILED(x, ...)="
QUIET = YES
WARNINGS = NO
WARN_IF_DOC_ERROR = NO
"""


@dataclasses.dataclass
class Name:
    """A class, function, alias, concept or value; overloads are one name."""
    kind: str  # class | function | alias | concept | value | enumeration
    scope: str  # tapegraph, tapegraph::data, ..., or a class
    name: str
    file: str
    line: int
    comment: str = ""
    declarations: list = dataclasses.field(default_factory=list)

    def folder(self):
        """Of include/tapegraph or cuda/tapegraph, "" for these themselves."""
        return self.file.rpartition("/")[0].partition("tapegraph")[2].lstrip("/")

    def documented(self):
        """Whether the name, or the protocol or language rule that it follows, is explained."""
        return bool(self.comment or LANGUAGE.match(self.name) or meaning(self.file, self.name))


def doxygen(root, work):
    """Runs Doxygen on the headers; returns the folder of its XML."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    settings = work / "Doxyfile"
    settings.write_text(SETTINGS.format(inputs=f'"{root}/include" "{root}/cuda"', work=f'"{work}"', root=f'"{root}"'))
    subprocess.run([os.environ.get("DOXYGEN", "doxygen"), str(settings)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return work / "xml"


def text_of(element):
    """Text without marks, blanks folded."""
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def markdown(element):
    """A comment as Markdown: paragraphs, code within lines, lists, blocks of code."""
    if element is None:
        return ""
    blocks = []

    def inline(node):
        parts = [node.text or ""]
        for child in node:
            if child.tag == "computeroutput":
                parts.append(f"`{text_of(child)}`")
            elif child.tag in {"itemizedlist", "orderedlist", "verbatim", "programlisting", "simplesect", "parameterlist"}:
                blocks.append(child)
                parts.append(f"\0{len(blocks) - 1}\0")
            elif child.tag in {"sp"}:
                parts.append(" ")
            else:
                parts.append(inline(child))
            parts.append(child.tail or "")
        return "".join(parts)

    def block(node):
        if node.tag in {"itemizedlist", "orderedlist"}:
            return "\n".join(f"- {' '.join(inline(item).split())}" for item in node.findall("listitem"))
        if node.tag in {"verbatim", "programlisting"}:
            lines = node.findall("codeline")
            code = "\n".join("".join(inline(line)) for line in lines) if lines else (node.text or "").strip("\n")
            return "```cpp\n" + code + "\n```"
        return " ".join(inline(node).split())

    paragraphs = []
    for paragraph in element.findall("para"):
        for part in re.split(r"(\0\d+\0)", inline(paragraph)):
            found = re.fullmatch(r"\0(\d+)\0", part)
            paragraphs.append(block(blocks[int(found[1])]) if found else escaped(" ".join(part.split())))
    return "\n\n".join(part for part in paragraphs if part)


def escaped(text):
    """Prose in which <, [, * and _ are no marks, and begin:end:step no emoji."""
    def plain(part):
        for mark, instead in (("<", "&lt;"), ("[", "\\["), ("*", "\\*"), ("_", "\\_")):
            part = part.replace(mark, instead)
        return re.sub(r":(?=:?\w+:)", "&#58;", part)

    return "".join(part if i % 2 else plain(part) for i, part in enumerate(re.split(r"(`[^`]*`)", text)))


def declaration(member):
    """One line of C++."""
    templates = ", ".join(" ".join(filter(None, (text_of(p.find("type")), text_of(p.find("declname"))))) +
                          (f" = {text_of(p.find('defval'))}" if p.find("defval") is not None else "")
                          for p in member.findall("templateparamlist/param"))
    head = f"template <{templates}> " if templates else ""
    if member.get("kind") == "typedef":
        return f"{head}using {text_of(member.find('name'))} = {text_of(member.find('type'))}"
    of = text_of(member.find("type"))
    static = "static " if member.get("static") == "yes" and "static" not in of else ""
    value = text_of(member.find("initializer")) if member.get("kind") == "variable" else ""
    return " ".join(f"{head}{static}{of} {text_of(member.find('name'))}{text_of(member.find('argsstring'))} {value}".split())


def comment_of(element):
    parts = [markdown(element.find("briefdescription")), markdown(element.find("detaileddescription"))]
    return "\n\n".join(part for part in parts if part)


def is_public(scope):
    parts = scope.split("::")
    return parts[0] == "tapegraph" and not any(part in INTERNAL or part == "detail" or part.endswith("_detail") for part in parts)


KINDS = {"function": "function", "typedef": "alias", "variable": "value", "enum": "enumeration"}


def names(folder):
    """All public names of the XML in a folder, in the order of files and lines."""
    found = {}

    def add(kind, scope, name, element):
        where = element.find("location")
        file = where.get("declfile") or where.get("file")
        if not file.startswith("include/") and file not in CUDA_HEADERS:
            return
        line = int(where.get("declline") or where.get("line"))
        entry = found.setdefault((scope, name), Name(kind, scope, name, file, line))
        if (file, line) < (entry.file, entry.line):
            entry.file, entry.line = file, line
        comment = comment_of(element)
        if comment and comment not in entry.comment:
            entry.comment += ("\n\n" if entry.comment else "") + comment
        return entry

    for compound in xml.parse(folder / "index.xml").getroot().findall("compound"):
        scope, kind = compound.find("name").text, compound.get("kind")
        if kind not in {"class", "struct", "namespace", "concept"} or not is_public(scope) or "<" in scope:
            continue
        root = xml.parse(folder / f"{compound.get('refid')}.xml").getroot().find("compounddef")
        if root is None or root.get("prot") == "private":
            continue
        if kind != "namespace":
            outer, _, name = scope.rpartition("::")
            entry = add("concept" if kind == "concept" else "class", outer, name, root)
            if entry is None or kind == "concept":
                continue
        for member in root.findall("sectiondef/memberdef"):
            name = text_of(member.find("name"))
            arguments = text_of(member.find("argsstring"))
            own = scope.rpartition("::")[2].partition("<")[0]
            if member.get("prot") != "public" or member.get("kind") not in KINDS or not name or name.startswith(("~", "TG_")) or \
                    arguments.endswith(("=delete", "= delete", "=default")) or "refused" in text_of(member.find("type")) or \
                    name.endswith("_") or "<" in name or "@" in name or f"::{name}::{name}" in text_of(member.find("definition")):
                continue
            if kind != "namespace" and name == own:  # constructors: the comment of the class says how objects are made
                if not re.match(rf"\((const )?{own} &&?\w*\)|\(\)", arguments):
                    found[scope.rpartition("::")[0], own].declarations.append(declaration(member))
                    if comment_of(member):
                        add("class", scope.rpartition("::")[0], own, member)
                continue
            entry = add(KINDS[member.get("kind")], scope, name, member)
            if entry:
                entry.declarations.append(declaration(member))
    return sorted(found.values(), key=lambda each: (each.file, each.line))


def counts(all_names):
    """{kind: (documented, all)}; a member function is a method."""
    result = collections.OrderedDict()
    for each in all_names:
        documented, whole = result.get(each.kind, (0, 0))
        result[each.kind] = documented + each.documented(), whole + 1
    return result
