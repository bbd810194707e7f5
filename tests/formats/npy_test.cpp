#include <tapegraph/data/readers/npy.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/formats/npy.hpp>

#include <support/base64.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace npy_test {

using support::contains;
using support::from_base64;
using support::message_of;
using tapegraph::any_tensor;
using tapegraph::data_error;
using tapegraph::dtype;
using tapegraph::dtype_error;
using tapegraph::shape_error;
using namespace tapegraph::io;

namespace {

// What numpy.save of NumPy 2.4 wrote: numpy.arange(6, dtype="<f4").reshape(2, 3).
const std::string f32_file = from_base64(
    "k05VTVBZAQB2AHsnZGVzY3InOiAnPGY0JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMpLCB9ICAgICAgICAgIC"
    "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAACAPwAAAEAAAEBAAACAQAAAoEA=");

host_array read(const std::string& bytes) {
    const support::temporary_folder folder;
    return read_npy_array(folder.write("x.npy", bytes));
}
template <class Error = data_error>
std::string objection_to(const std::string& bytes) {
    return message_of<Error>([&] { read(bytes); });
}
/// An .npy of version 1 with this header, followed by the values.
std::string npy(const std::string& header, const std::string& values = "") {
    std::string file = "\x93NUMPY";
    file.append({'\1', '\0', static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)});
    return file + header + values;
}
template <class T>
std::vector<T> values(const host_array& array) {
    const auto all = array.values<T>();
    return {all.begin(), all.end()};
}

} // namespace

TEST_CASE("NumPy's files: types, byte orders, orders of elements, versions") {
    const host_array f32 = read(f32_file);
    CHECK(f32.shape == std::vector<std::int64_t>{2, 3});
    CHECK(values<float>(f32) == std::vector<float>{0, 1, 2, 3, 4, 5});

    // numpy.asfortranarray(numpy.arange(24).reshape(2, 3, 4).astype("<i2"))
    const host_array fortran = read(from_base64(
        "k05VTVBZAQB2AHsnZGVzY3InOiAnPGkyJywgJ2ZvcnRyYW5fb3JkZXInOiBUcnVlLCAnc2hhcGUnOiAoMiwgMywgNCksIH0gICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAwABAAQAAgAFAABAA0ABQARAAkAFQACAA4ABgAS"
        "AAoAFgADAA8ABwATAAsAFwA="));
    CHECK(fortran.shape == std::vector<std::int64_t>{2, 3, 4});
    for (std::size_t i = 0; i < 24; ++i) REQUIRE(values<std::int16_t>(fortran)[i] == static_cast<std::int16_t>(i));

    const host_array big = read(from_base64(
        "k05VTVBZAQB2AHsnZGVzY3InOiAnPmY4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDIsIDMpLCB9ICAgICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAAAAAAAAD/wAAAAAAAAQAAAAAAAAABACAAAAAAA"
        "AEAQAAAAAAAAQBQAAAAAAAA="));
    CHECK(values<double>(big) == std::vector<double>{0, 1, 2, 3, 4, 5});

    // Version 2.0, big-endian u16; version 3.0, bool.
    const host_array second = read(from_base64(
        "k05VTVBZAgB0AAAAeydkZXNjcic6ICc+dTInLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMiwgMyksIH0gICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAAABAAIAAwAEAAU="));
    CHECK(values<std::uint16_t>(second) == std::vector<std::uint16_t>{0, 1, 2, 3, 4, 5});
    const host_array third = read(from_base64(
        "k05VTVBZAwB0AAAAeydkZXNjcic6ICd8YjEnLCAnZm9ydHJhbl9vcmRlcic6IEZhbHNlLCAnc2hhcGUnOiAoMywpLCB9ICAgICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoBAAE="));
    CHECK(third.type == dtype::boolean);
    CHECK(values<bool>(third) == std::vector<bool>{true, false, true});

    const host_array scalar = read(from_base64(
        "k05VTVBZAQB2AHsnZGVzY3InOiAnPGk4JywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKCksIH0gICAgICAgICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAr5/////////w=="));
    CHECK(scalar.shape.empty());
    CHECK(values<std::int64_t>(scalar) == std::vector<std::int64_t>{-7});
    const host_array empty = read(from_base64(
        "k05VTVBZAQB2AHsnZGVzY3InOiAnPGYyJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDMsIDApLCB9ICAgICAgICAgIC"
        "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAo="));
    CHECK(empty.type == dtype::f16);
    CHECK(empty.shape == std::vector<std::int64_t>{3, 0});
}

TEST_CASE("what is written is byte for byte NumPy's, and comes back") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "w.npy";
    write_npy_array(path, host_array::of<float>({2, 3}, std::vector<float>{0, 1, 2, 3, 4, 5}));
    CHECK(support::read_text(path) == f32_file);
    write_npy_array(path, host_array::of<std::uint8_t>({3}, std::vector<std::uint8_t>{0, 1, 2}));
    CHECK(
        support::read_text(path) ==
        from_base64(
            "k05VTVBZAQB2AHsnZGVzY3InOiAnfHUxJywgJ2ZvcnRyYW5fb3JkZXInOiBGYWxzZSwgJ3NoYXBlJzogKDMsKSwgfSAgICAgICAgICAgIC"
            "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIAoAAQI="));
    for (int code = 0; code <= static_cast<int>(dtype::boolean); ++code) {
        const auto type = static_cast<dtype>(code);
        if (type == dtype::bf16) continue;
        for (const std::vector<std::int64_t>& shape :
             std::vector<std::vector<std::int64_t>>{{}, {1}, {7}, {0}, {3, 1, 5}}) {
            host_array array = host_array::zeros(type, shape);
            for (std::size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i & 1);
            write_npy_array(path, array);
            const host_array back = read_npy_array(path);
            CHECK(back.type == type);
            CHECK(back.shape == shape);
            CHECK(back.bytes == array.bytes);
            CHECK(support::read_text(path).size() % 64 == array.bytes.size() % 64); // values begin on a multiple of 64
        }
    }
    CHECK(contains(message_of<dtype_error>([&] { write_npy_array(path, host_array::zeros(dtype::bf16, {2})); }),
                   "w.npy'): NumPy has no bf16, cast to f32"));
    // A header of more than 65,535 bytes: version 2.
    write_npy_array(path, host_array::zeros(dtype::u8, std::vector<std::int64_t>(30000, 1)));
    CHECK(read_npy_array(path).shape.size() == 30000);
    CHECK(support::read_text(path)[6] == 2);
}

TEST_CASE("tensors") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "t.npy";
    write_npy(path, tapegraph::tensor<double>{{1, 2}, {3, 4}, {5, 6}});
    const tapegraph::tensor<double> back(read_npy(path));
    CHECK(back.shape() == tapegraph::shape{3, 2});
    CHECK(back.to_vector() == std::vector<double>{1, 2, 3, 4, 5, 6});
    write_npy_array(path, host_array::zeros(dtype::f32, std::vector<std::int64_t>(9, 1)));
    CHECK(contains(message_of<shape_error>([&] { read_npy(path); }),
                   "t.npy' has shape [1,1,1,1,1,1,1,1,1], more than 8 axes"));
}

TEST_CASE("headers as others write them") {
    CHECK(values<std::uint8_t>(read(npy("{'shape':(2L,),\"descr\":\"|u1\",'fortran_order':False}", "ab"))) ==
          std::vector<std::uint8_t>{'a', 'b'});
    CHECK(read(npy("{'descr': '<i8', 'fortran_order': True, 'shape': (0, 9), }\n")).size() == 0);
    CHECK(values<std::int8_t>(read(npy("{'descr': '|i1', 'fortran_order': True, 'shape': (1, 2), }", "\1\2"))) ==
          std::vector<std::int8_t>{1, 2});
}

TEST_CASE("what is wrong with a file") {
    for (std::size_t size = 0; size < f32_file.size(); ++size) REQUIRE(!objection_to(f32_file.substr(0, size)).empty());
    CHECK(contains(objection_to(f32_file + "x"), "x.npy': shape [2,3] of f32 needs 24 bytes, there are 25"));
    CHECK(contains(objection_to("PK\3\4......"), "not an .npy file: it does not begin with \\x93NUMPY"));
    std::string version = f32_file;
    version[6] = 4;
    CHECK(contains(objection_to(version), ".npy of version 4.0, versions 1 to 3 are read"));
    const auto of_type = [](const std::string& descr) {
        return objection_to<dtype_error>(
            npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }", "xxxxxxxx"));
    };
    CHECK(contains(of_type("'<U2'"), "elements of type '<U2' (texts) are not read"));
    CHECK(contains(of_type("'|O'"), "'|O' (Python objects, a pickle)"));
    CHECK(contains(of_type("'<c16'"), "(complex numbers)"));
    CHECK(contains(of_type("'<M8[D]'"), "(times)"));
    CHECK(contains(of_type("'<V2'"), "bfloat16"));
    CHECK(contains(of_type("[('a', '<i4')]"), "records of several fields (a structured type) are not read"));
    CHECK(contains(of_type("'|f4'"), "'|f4'"));
    CHECK(contains(of_type("''"), "elements of type ''"));
    const auto header = [](const std::string& text) { return objection_to(npy(text, "xxxxxxxx")); };
    CHECK(contains(header("{'descr': '<f4', 'fortran_order': False, }"),
                   "the header lacks descr, fortran_order or shape"));
    CHECK(contains(header("{'descr': '<f8', 'fortran_order': no, 'shape': (1,)}"),
                   "something else than True or False at its byte 34"));
    CHECK(
        contains(header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}"), "something else than an extent"));
    CHECK(contains(header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
                   "does not fit 63 bits"));
    CHECK(contains(header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
                   "impossible shape"));
    CHECK(contains(header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'x': 1}"),
                   "than descr, fortran_order or shape"));
    CHECK(contains(header("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x"), "than the end"));
    CHECK(
        contains(objection_to(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1,)}", "\2")), "a bool holds 2"));
    CHECK(contains(message_of<data_error>([] { read_npy_array("/nowhere/x.npy"); }), "'/nowhere/x.npy': no such file"));
}

TEST_CASE("records of an array") {
    const support::temporary_folder folder;
    const auto set = tapegraph::data::from_npy(folder.write("x.npy", f32_file), "row");
    CHECK(set.size() == 2);
    REQUIRE(set.columns().size() == 1);
    CHECK(set.columns()[0].name == "row");
    CHECK(set.columns()[0].shape == std::vector<std::int64_t>{3});
    std::vector<float> row(3);
    std::byte* const place = reinterpret_cast<std::byte*>(row.data());
    set.records().fill(1, std::span(&place, 1));
    CHECK(row == std::vector<float>{3, 4, 5});
    write_npy_array(folder.path() / "s.npy", host_array::zeros(dtype::f32, {}));
    CHECK(contains(message_of<shape_error>([&] { tapegraph::data::from_npy(folder.path() / "s.npy"); }),
                   "s.npy': a single value"));
    write_npy_array(folder.path() / "e.npy", host_array::zeros(dtype::f32, {0, 2}));
    CHECK(contains(message_of<shape_error>([&] { tapegraph::data::from_npy(folder.path() / "e.npy"); }),
                   "[0,2] holds no records"));
}

} // namespace npy_test
