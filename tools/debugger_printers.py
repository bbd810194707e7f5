"""Prints tensors, shapes, element types and variables as text in gdb and lldb.

    (gdb) source .../tools/debugger_printers.py
    (lldb) command script import .../tools/debugger_printers.py

    (gdb) print weights
    $1 = f32[2, 3] {0.5, 1, 1.5, 2, 2.5, 3}

Put the command into .gdbinit or .lldbinit for every session. The program must be compiled with -g.
Values are read from memory without running any of its code, so a tensor whose elements are only on
a GPU says so. `most_values` is how many are shown.
"""

import struct

most_values = 12

TYPES = ("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")  # enum dtype
FORMATS = {"f32": "f", "f64": "d", "f16": "e", "bf16": "H", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B",
           "u16": "H", "u32": "I", "u64": "Q", "bool": "?"}


def shape_text(extents):
    return "[" + ", ".join("?" if e < 0 else str(e) for e in extents) + "]"


def values_text(type_name, data):
    values = [value for value, in struct.iter_unpack("<" + FORMATS[type_name], data)]
    if type_name == "bf16":
        values = [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]
    digits = {"f64": 17, "f32": 9, "f16": 5, "bf16": 4}.get(type_name)
    if digits:
        return [next(t for d in range(1, digits + 1) if (t := f"{v:.{d}g}") and
                     (d == digits or v != v or reads_back(type_name, t, v))) for v in values]
    return [str(value).lower() for value in values]


def reads_back(type_name, text, value):
    number = float(text)
    if type_name == "f64" or number in (float("inf"), float("-inf")):
        return number == value
    if type_name == "bf16":  # rounded to the nearest of eight bits of fraction
        bits = struct.unpack("<I", struct.pack("<f", number))[0]
        rounded = bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000
        return struct.unpack("<f", struct.pack("<I", rounded))[0] == value
    try:
        code = FORMATS[type_name]
        return struct.unpack("<" + code, struct.pack("<" + code, number))[0] == value
    except OverflowError:
        return False


def tensor_text(view):
    """`view` reads members: view("dims_", "rank_") returns a value's; numbers are read by int(),
    memory by read(address, bytes)."""
    type_name = TYPES[view.number("type_")] if view.number("type_") < len(TYPES) else "?"
    rank = view.number("dims_", "rank_")
    if type_name == "?" or not 0 <= rank <= 8:
        return "not initialised"
    extents = view.extents("dims_")
    head = type_name + shape_text(extents)
    address = view.number("storage_", "storage_")
    if address == 0:
        return head + " without elements"
    count = 1
    for extent in extents:
        count *= extent
    place = view.elements(address)
    if place is None:
        return head + " on a device"
    shown = min(count, most_values)
    size = struct.calcsize("<" + FORMATS[type_name])
    values = values_text(type_name, view.read(place, shown * size)) if shown > 0 else []
    return head + " {" + ", ".join(values + (["..."] if count > shown else [])) + "}"


def variable_text(path, view, trainable):
    return f'"{path}" ' + tensor_text(view) + ("" if trainable else ", not trainable")


try:
    import gdb
except ImportError:
    gdb = None
try:
    import lldb
except ImportError:
    lldb = None

if gdb is not None:
    import gdb.printing

    class GdbView:
        def __init__(self, value):
            self.value = value

        def member(self, names):
            value = self.value
            for name in names:
                value = value[name]
            return value

        def number(self, *names):
            return int(self.member(names))

        def extents(self, *names):
            dims = self.member(names)
            return [int(dims["extents_"][i]) for i in range(int(dims["rank_"]))]

        def elements(self, address):
            storage = self.value["storage_"]["storage_"].dereference()
            elsewhere = int(storage["elsewhere"]["_M_b"]["_M_p"])
            if elsewhere == 0:
                return address + storage.type.sizeof
            copies = storage["elsewhere"]["_M_b"]["_M_p"].dereference()
            return int(copies["host_"]) if bool(copies["host_good_"]) else None

        def read(self, address, count):
            return bytes(gdb.selected_inferior().read_memory(address, count))

    class Printer:
        def __init__(self, text, value):
            self.text, self.value = text, value

        def to_string(self):
            try:
                return self.text(self.value)
            except gdb.MemoryError:
                return "not initialised"

    def gdb_shape(value):
        return shape_text([int(value["extents_"][i]) for i in range(int(value["rank_"]))])

    def gdb_variable(value):
        path = value["path_"]
        trainable = bool(value["made_trainable_"]) and not bool(value["frozen_"])
        text = path["_M_dataplus"]["_M_p"].string(length=int(path["_M_string_length"]))
        return variable_text(text, GdbView(value["shared_"]["_M_ptr"].dereference()["data"]), trainable)

    def register():
        printers = gdb.printing.RegexpCollectionPrettyPrinter("tapegraph")

        def add(name, pattern, text):
            printers.add_printer(name, pattern, lambda value: Printer(text, value))

        add("tensor", r"^tapegraph::(tensor<.*>|any_tensor)$", lambda value: tensor_text(GdbView(value)))
        add("shape", r"^tapegraph::shape$", gdb_shape)
        add("dtype", r"^tapegraph::dtype$", lambda value: TYPES[int(value)] if int(value) < len(TYPES) else str(int(value)))
        add("variable", r"^tapegraph::variable$", gdb_variable)
        gdb.printing.register_pretty_printer(gdb.current_objfile(), printers, replace=True)

    register()

if lldb is not None and gdb is None:

    def shared_value(pointer):
        """Returns the object that a std::shared_ptr points to, with libstdc++ and libc++."""
        raw = pointer.GetNonSyntheticValue()
        for name in ("_M_ptr", "__ptr_"):
            if (found := child(raw, name)).IsValid():
                return found.Dereference()
        return pointer

    def child(value, name):
        """Returns a member, of the class or of one of its base classes."""
        found = value.GetChildMemberWithName(name)
        return found if found.IsValid() else value.GetChildAtIndex(0).GetChildMemberWithName(name)

    class LldbView:
        def __init__(self, value):
            self.value = value

        def member(self, names):
            value = self.value
            for name in names:
                value = child(value, name)
            return value

        def number(self, *names):
            return self.member(names).GetValueAsSigned()

        def extents(self, *names):
            dims = self.member(names)
            return [child(dims, "extents_").GetChildAtIndex(i).GetValueAsSigned()
                    for i in range(child(dims, "rank_").GetValueAsSigned())]

        def elements(self, address):
            storage = self.member(("storage_", "storage_")).Dereference()
            # A shared, atomic pointer: its first word.
            word = self.read(child(storage, "elsewhere").GetLoadAddress(), 8)
            if struct.unpack("<Q", word)[0] == 0:
                return address + storage.GetType().GetByteSize()
            copies = storage.CreateValueFromAddress("copies", struct.unpack("<Q", word)[0],
                                                    self.value.GetTarget().FindFirstType("tapegraph::detail::copies"))
            return child(copies, "host_").GetValueAsUnsigned() if child(copies, "host_good_").GetValueAsUnsigned() else None

        def read(self, address, count):
            error = lldb.SBError()
            data = self.value.GetProcess().ReadMemory(address, count, error)
            if not error.Success():
                raise MemoryError(error.GetCString())
            return data

    def summary(text):
        def shown(value, _):
            try:
                return text(value.GetNonSyntheticValue())
            except (MemoryError, struct.error):
                return "not initialised"
        return shown

    tensor_summary = summary(lambda value: tensor_text(LldbView(value)))
    shape_summary = summary(lambda value: shape_text(
        [child(value, "extents_").GetChildAtIndex(i).GetValueAsSigned() for i in range(child(value, "rank_").GetValueAsSigned())]))
    variable_summary = summary(lambda value: variable_text(
        (child(value, "path_").GetSummary() or "").strip('"'), LldbView(child(shared_value(child(value, "shared_")), "data")),
        child(value, "made_trainable_").GetValueAsUnsigned() and not child(value, "frozen_").GetValueAsUnsigned()))

    def __lldb_init_module(debugger, _):
        for name, pattern in (("tensor", "^tapegraph::(tensor<.*>|any_tensor)$"), ("shape", "^tapegraph::shape$"),
                              ("variable", "^tapegraph::variable$")):  # a dtype is shown as its enumerator
            debugger.HandleCommand(f"type summary add -x '{pattern}' -F {__name__}.{name}_summary")
