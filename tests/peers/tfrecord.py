"""TFRecord files of Examples, ours through Python's protobuf and TensorBoard's reader of records, and theirs through ours.

Usage: tfrecord.py PROGRAM; ends with 77 where a library is missing.
"""
import gzip
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path[:] = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]
try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New, masked_crc32c
except ImportError as missing:
    print(f"not here: {missing}")
    sys.exit(77)


def example_class():
    """tf.train.Example, whose description comes with TensorFlow alone."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")

    def message(name, *fields):
        made = file.message_type.add(name=name)
        for number, (field, kind, label, type_name) in enumerate(fields, 1):
            made.field.add(name=field, number=number, type=kind, label=label, type_name=type_name)
        return made

    text, nested, raw, real, integer, one, many = 9, 11, 12, 2, 3, 1, 3
    message("BytesList", ("value", raw, many, None))
    message("FloatList", ("value", real, many, None))
    message("Int64List", ("value", integer, many, None))
    message("Feature", *((name, nested, one, ".tensorflow." + kind) for name, kind in (
        ("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List"))))
    features = message("Features", ("feature", nested, many, ".tensorflow.Features.FeatureEntry"))
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=text, label=one)
    entry.field.add(name="value", number=2, type=nested, label=one, type_name=".tensorflow.Feature")
    message("Example", ("features", nested, one, ".tensorflow.Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


def records(path):
    reader = PyRecordReader_New(str(path))
    while True:
        try:
            reader.GetNext()
        except Exception as end:  # OutOfRangeError is the end
            assert "OutOfRange" in type(end).__name__, end
            return
        yield reader.record()


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def main(program):
    Example = example_class()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        subprocess.run([program, "write", scratch], check=True)
        (folder / "ungzip").write_bytes(gzip.decompress((folder / "gzip").read_bytes()))
        (folder / "unzlib").write_bytes(zlib.decompress((folder / "zlib").read_bytes()))
        for name in ("plain", "ungzip", "unzlib"):
            found = [Example.FromString(record) for record in records(folder / name)]
            assert len(found) == 100, name
            for i, example in enumerate(found):
                feature = example.features.feature
                assert list(feature["i"].int64_list.value) == [i, -i, i << 40]
                assert list(feature["x"].float_list.value) == [0.25] * (i % 3)
                assert list(feature["s"].bytes_list.value) == [b"\xff%d" % i, b""]
        theirs, expected = b"", ""
        for i in range(50):
            example = Example()
            example.features.feature["i"].int64_list.value.extend([i, -(2**63)])
            example.features.feature["x"].float_list.value.extend([i / 4])
            example.features.feature["s"].bytes_list.value.append(b"r%d" % i)
            theirs += framed(example.SerializeToString())
            expected += f"{i} {-(2**63)} {i / 4:g} 'r{i}' \n"
        for name, packed in (("a", theirs), ("b", gzip.compress(theirs)), ("c", zlib.compress(theirs))):
            (folder / name).write_bytes(packed)
            got = subprocess.run([program, "read", str(folder / name)], check=True, capture_output=True, text=True).stdout
            assert got == expected, (name, got[:200])
    print("TFRecord and Example agree")


if __name__ == "__main__":
    main(sys.argv[1])
