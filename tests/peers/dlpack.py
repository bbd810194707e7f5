"""NumPy takes our tensors without copying, and we take NumPy's arrays: capsules made by ctypes, no extension module."""

import ctypes
import sys

try:
    import numpy
except ImportError:
    sys.exit(77)
if int(numpy.__version__.split(".")[0]) < 2 or not hasattr(numpy, "from_dlpack"):
    sys.exit(77)

library = ctypes.CDLL(sys.argv[1])
for name in ("exported", "exported_mutable", "exported_old", "place"):
    getattr(library, name).restype = ctypes.c_void_p
library.element.restype = ctypes.c_float
library.sum_of.restype = ctypes.c_double
library.sum_of.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
library.drop.argtypes = [ctypes.c_void_p]

python = ctypes.pythonapi
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
python.PyCapsule_GetPointer.restype = ctypes.c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
NAMES = {name: ctypes.create_string_buffer(name) for name in (b"dltensor", b"dltensor_versioned", b"used_dltensor_versioned")}


class Exporter:
    """What numpy.from_dlpack asks for."""

    def __init__(self, pointer, name):
        self.pointer, self.name = pointer, name

    def __dlpack__(self, **_):
        return python.PyCapsule_New(self.pointer, NAMES[self.name], None)

    def __dlpack_device__(self):
        return (1, 0)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


x = numpy.from_dlpack(Exporter(library.exported(), b"dltensor_versioned"))
check(x.tolist() == [[1, 2, 3], [4, 5, 6]] and x.dtype == numpy.float32, "values")
check(x.ctypes.data == library.place(), "no copy")
check(not x.flags.writeable, "read-only")
check(library.is_shared() == 1, "kept")
del x
check(library.is_shared() == 0, "deleted")

x = numpy.from_dlpack(Exporter(library.exported_mutable(), b"dltensor_versioned"))
check(x.flags.writeable, "writable")
x[1, 2] = 60
check(library.element(1, 2) == 60, "written through")
del x
check(library.is_shared() == 0, "deleted")

x = numpy.from_dlpack(Exporter(library.exported_old(), b"dltensor"))
check(x.tolist() == [[1, 2, 3], [4, 5, 60]], "unversioned")
del x
check(library.is_shared() == 0, "deleted")

y = numpy.arange(12, dtype=numpy.float64).reshape(3, 4)
before = sys.getrefcount(y)
capsule = y.__dlpack__(max_version=(1, 0))
check(sys.getrefcount(y) > before, "held")
pointer = python.PyCapsule_GetPointer(capsule, NAMES[b"dltensor_versioned"])
python.PyCapsule_SetName(capsule, NAMES[b"used_dltensor_versioned"])
check(library.sum_of(pointer, y.ctypes.data) == 66, "borrowed from NumPy")
del capsule
check(sys.getrefcount(y) == before, "given back once")
print("dlpack: NumPy", numpy.__version__)
