#include <tapegraph/formats/safetensors.hpp>
#include <tapegraph/formats/safetensors_reader.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

namespace safetensors_test {

using namespace std::string_literals;
using tapegraph::argument_error;
using tapegraph::data_error;
using tapegraph::dtype;
using tapegraph::shape_error;
using namespace tapegraph::io;

namespace {

std::string little_endian(std::uint64_t value) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
    return bytes;
}

std::string file_of(const std::string& header, const std::string& data) {
    return little_endian(header.size()) + header + data;
}

} // namespace

TEST_CASE("a file is byte for byte what Python's safetensors writes") {
    // safetensors.numpy.save_file({"b": float32 [1, 2], "a": int64 scalar 7, "flag": [True]}, metadata={"k": "v"}): the
    // widest type first, then by name, the header padded with blanks to a multiple of 8.
    const std::vector<float> b{1, 2};
    const std::int64_t a = 7;
    const bool flag = true;
    const support::temporary_folder folder;
    const auto path = folder.path() / "known.safetensors";
    write_safetensors_arrays(
        path, {{"flag", dtype::boolean, {1}, &flag}, {"b", dtype::f32, {2}, b.data()}, {"a", dtype::i64, {}, &a}},
        {{"k", "v"}});
    const std::string header = R"({"__metadata__":{"k":"v"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                               R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                               R"("flag":{"dtype":"BOOL","shape":[1],"data_offsets":[16,17]}})";
    const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
    CHECK(support::read_text(path) ==
          file_of(padded, "\x07\0\0\0\0\0\0\0"s + "\0\0\x80\x3f"s + "\0\0\0\x40"s + "\x01"s));
}

TEST_CASE("every type, empty tensors and strange names come back") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "all.safetensors";
    std::vector<std::uint8_t> bytes(64);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i % 2);
    std::vector<safetensors_entry> entries;
    for (int code = 0; code <= static_cast<int>(dtype::boolean); ++code)
        entries.push_back({"t/" + std::to_string(code), static_cast<dtype>(code), {1, 7, 1}, bytes.data()});
    entries.push_back({"empty", dtype::f64, {3, 0}, nullptr});
    entries.push_back({"gr\xC3\xBC\xC3\x9F \"e\"\n", dtype::u8, {64}, bytes.data()});
    entries.push_back({"", dtype::f32, {}, bytes.data()});
    write_safetensors_arrays(path, entries);
    const auto file = read_safetensors_file(path);
    CHECK(file.metadata.empty());
    REQUIRE(file.tensors.size() == entries.size());
    for (const auto& entry : entries) {
        REQUIRE(file.tensors.count(entry.name) == 1);
        const auto& read = file.tensors.at(entry.name);
        CHECK(read.type == entry.type);
        CHECK(read.shape == entry.shape);
        for (std::size_t i = 0; i < read.bytes.size(); ++i) REQUIRE(read.bytes[i] == std::byte{bytes[i]});
    }
    CHECK(read_safetensors_arrays(path).size() == entries.size());

    write_safetensors_arrays(path, {}, {{"only", "metadata"}});
    CHECK(read_safetensors_file(path).tensors.empty());
    CHECK(read_safetensors_file(path).metadata.at("only") == "metadata");
}

TEST_CASE("entries that make no file are refused and leave the old one alone") {
    const support::temporary_folder folder;
    const auto path = folder.write("w.safetensors", "old"s);
    const float x = 0;
    const auto message = [&]<class Error>(std::vector<safetensors_entry> entries, Error*) {
        return support::message_of<Error>([&] { write_safetensors_arrays(path, entries); });
    };
    argument_error* argument = nullptr;
    shape_error* shape = nullptr;
    CHECK(support::contains(message({{"x", dtype::f32, {}, &x}, {"x", dtype::f32, {}, &x}}, argument),
                            "two tensors are named 'x'"));
    CHECK(support::contains(message({{"__metadata__", dtype::f32, {}, &x}}, argument), "'__metadata__'"));
    CHECK(support::contains(message({{"\xFF", dtype::f32, {}, &x}}, argument), "UTF-8"));
    CHECK(support::contains(message({{"x", dtype::f32, {-1}, &x}}, shape), "tensor 'x' has the impossible shape [-1]"));
    CHECK(support::read_text(path) == "old");
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file that is damaged or lies is refused, naming file and tensor") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "x.safetensors";
    const auto message = [&](const std::string& bytes) {
        folder.write("x.safetensors", bytes);
        const auto text = support::message_of<data_error>([&] { read_safetensors_arrays(path); });
        CHECK(support::contains(text, path.string()));
        CHECK_FALSE(support::contains(text, "\n"));
        return text;
    };
    const auto entry = [](const std::string& fields) { return "{\"t\":{" + fields + "}}"; };
    const auto good = entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])");
    const auto data = std::string(8, '\0');
    folder.write("x.safetensors", file_of(good, data));
    CHECK(read_safetensors_arrays(path).at("t").size() == 2);

    // Cut anywhere, it is never read as something else.
    for (std::size_t cut = 0; cut < file_of(good, data).size(); ++cut)
        REQUIRE_FALSE(message(file_of(good, data).substr(0, cut)).empty());
    CHECK(support::contains(message(""), "0 bytes"));
    CHECK(support::contains(message(little_endian(UINT64_MAX) + good), "header of 18446744073709551615 bytes"));
    CHECK(support::contains(message(little_endian(200) + good), "header of 200 bytes"));
    CHECK(support::contains(message(file_of("", "")), "does not start with '{'"));
    CHECK(support::contains(message(file_of(" {}", "")), "does not start with '{'"));
    CHECK(support::contains(message(file_of("{\"t\":", data)), "not valid JSON"));
    CHECK(support::contains(message(file_of(std::string(100000, '{'), "")), "not valid JSON"));
    CHECK(support::contains(message(file_of("{\"\xFF\":1}", data)), "not valid JSON"));
    CHECK(support::contains(message(file_of(good, data + "x")), "1 bytes after the last tensor"));

    struct lie {
        const char* fields;
        const char* part;
    };
    const lie lies[] = {
        {R"("dtype":"F33","shape":[2],"data_offsets":[0,16])", "offsets [0,16) lie outside"},
        {R"("dtype":1,"shape":[2],"data_offsets":[0,8])", "dtype is not a string"},
        {R"("shape":[2],"data_offsets":[0,8])", "needs dtype, shape and data_offsets"},
        {R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", "shape is not a list of extents"},
        {R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])", "shape is not a list of extents"},
        {R"("dtype":"F32","shape":{},"data_offsets":[0,8])", "shape is not a list of extents"},
        {R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])", "impossible shape"},
        {R"("dtype":"F32","shape":[3],"data_offsets":[0,8])", "f32[3] needs 12 bytes, offsets [0,8) hold 8"},
        {R"("dtype":"F32","shape":[4],"data_offsets":[0,16])", "offsets [0,16) lie outside the file's 8 data bytes"},
        {R"("dtype":"F32","shape":[2],"data_offsets":[8,0])", "offsets [8,0) run backwards"},
        {R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", "starts at 4, leaving a hole"},
        {R"("dtype":"F32","shape":[2],"data_offsets":[0])", "data_offsets are not two offsets"},
        {R"("dtype":"F32","shape":[2],"data_offsets":[0,-8])", "data_offsets are not two offsets"},
        {R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])", "the name 'dtype' twice"},
    };
    for (const auto& [fields, part] : lies) {
        const auto text = message(file_of(entry(fields), data));
        CHECK_MESSAGE(support::contains(text, part), text);
        CHECK(support::contains(text, "twice") != support::contains(text, "tensor 't'"));
    }
    const auto boolean = entry(R"("dtype":"BOOL","shape":[8],"data_offsets":[0,8])");
    CHECK(support::contains(message(file_of(boolean, "\1\0\1\0\2\0\0\0"s)), "tensor 't': a bool holds 2"));

    const std::string first = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)";
    CHECK(support::contains(message(file_of(first + R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", data)),
                            "the name 'a' twice"));
    CHECK(support::contains(message(file_of(first + R"("b":{"dtype":"F16","shape":[3],"data_offsets":[2,8]}})", data)),
                            "tensor 'b': starts at 2, inside another tensor that ends at 4"));
    CHECK(support::contains(message(file_of(first + R"("__metadata__":{"k":1}})", data.substr(4))),
                            "'k' is not a string"));
    CHECK(support::contains(support::message_of<data_error>([&] { read_safetensors_arrays(folder.path() / "none"); }),
                            "no such file"));
}

TEST_CASE("a tensor of an unknown type costs the others nothing, and is named") {
    const support::temporary_folder folder;
    const std::string header =
        R"({"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
        R"("c":{"dtype":"F4","shape":[2],"data_offsets":[3,4]}})";
    const auto path = folder.write("x.safetensors", file_of(header, std::string(8, '\0')));
    const auto file = tapegraph::io::read_safetensors_file(path);
    CHECK(file.tensors.size() == 1);
    CHECK(file.tensors.at("b").size() == 1);
    REQUIRE(file.unread.size() == 2);
    CHECK(file.unread[0].name == "a");
    CHECK(file.unread[0].reason == "elements of type 'F8_E4M3' are not read");
    CHECK(file.unread[1].name == "c");
    const tapegraph::io::safetensors_reader reader(path);
    CHECK(reader.tensors().size() == 1);
    CHECK(support::contains(support::message_of<data_error>([&] { reader.at("a"); }),
                            "x.safetensors': tensor 'a': elements of type 'F8_E4M3' are not read"));
    // The same in one of several files.
    const auto index = folder.write("x.safetensors.index.json",
                                    R"({"weight_map":{"a":"x.safetensors","b":"x.safetensors","c":"x.safetensors"}})"s);
    CHECK(tapegraph::io::safetensors_reader(index).unread().size() == 2);
    const auto less = folder.write("y.safetensors.index.json", R"({"weight_map":{"b":"x.safetensors"}})"s);
    CHECK(
        support::contains(support::message_of<data_error>([&] { const tapegraph::io::safetensors_reader wrong(less); }),
                          "'x.safetensors' holds tensor 'a', which the index does not name there"));
}

} // namespace safetensors_test
