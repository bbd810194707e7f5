#include <tapegraph/formats/pickle.hpp>

#include <support/base64.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pickle_test {

using support::contains;
using support::message_of;
using tapegraph::data_error;
using namespace tapegraph::io;
using namespace std::string_literals;

namespace {

bool allowed(std::string_view name) { return name == "collections.OrderedDict"; }

pickle_value read(const std::string& bytes) { return read_pickle(std::as_bytes(std::span(bytes)), allowed, "p"); }
std::string objection_to(const std::string& bytes) {
    return message_of<data_error>([&] { read(bytes); });
}

/// The value as Python would print it, more or less.
std::string shown(const pickle_value& all, std::uint32_t which) {
    const pickle_node& node = all[which];
    const auto items = [&](const std::string& begin, const std::string& end) {
        std::string text = begin;
        for (std::size_t i = 0; i < node.items.size(); ++i) text += (i > 0 ? " " : "") + shown(all, node.items[i]);
        return text + end;
    };
    switch (node.kind) {
    case pickle_kind::none: return "None";
    case pickle_kind::boolean: return node.integer != 0 ? "True" : "False";
    case pickle_kind::integer: return std::to_string(node.integer);
    case pickle_kind::large_integer: return node.text;
    case pickle_kind::real: return std::to_string(node.real);
    case pickle_kind::text: return "'" + node.text + "'";
    case pickle_kind::bytes: return "b'" + node.text + "'";
    case pickle_kind::tuple: return items("(", ")");
    case pickle_kind::list: return items("[", "]");
    case pickle_kind::dict: return items("{", "}");
    case pickle_kind::set: return items("<", ">");
    case pickle_kind::global: return node.text;
    case pickle_kind::call: return items("call(", ")");
    case pickle_kind::persistent: return items("outside(", ")");
    }
    return "?";
}
std::string shown(const std::string& bytes) {
    const pickle_value value = read(bytes);
    return shown(value, value.root);
}

} // namespace

TEST_CASE("what Python's pickle writes, in four protocols") {
    // value = {"a": [1, -2, 300, 70000, -2**40], "b": (True, False, None), "c": 1.5, "d": b"xy", "e": {7}, "t": ((), (1,), (1, 2), (1, 2, 3, 4)),
    //          "same": [shared, shared]} with shared = [0]
    const std::string text =
        "{'a' [1 -2 300 70000 -1099511627776] 'b' (True False None) 'c' 1.500000 'd' b'xy' 'e' <7> "
        "'t' (() (1) (1 2) (1 2 3 4)) 'same' [[0] [0]]}";
    for (const char* const file : {
             "gASVfAAAAAAAAAB9lCiMAWGUXZQoSwFK/v///00sAUpwEQEAigYAAAAAAP9ljAFilIiJToeUjAFjlEc/+AAAAAAAAIwBZJRDA"
             "nh5lIwBZZSPlChLB5CMAXSUKClLAYWUSwFLAoaUKEsBSwJLA0sEdJR0lIwEc2FtZZRdlChdlEsAYWgRZXUu",
             "gAWVfAAAAAAAAAB9lCiMAWGUXZQoSwFK/v///00sAUpwEQEAigYAAAAAAP9ljAFilIiJToeUjAFjlEc/+AAAAAAAAIwBZJRDA"
             "nh5lIwBZZSPlChLB5CMAXSUKClLAYWUSwFLAoaUKEsBSwJLA0sEdJR0lIwEc2FtZZRdlChdlEsAYWgRZXUu",
         })
        CHECK(shown(support::from_base64(file)) == text);
    // Without bytes and set, which protocol 2 writes as calls.
    for (const char* const file : {
             "gAJ9cQAoWAEAAABhcQFdcQIoSwFK/v///00sAUpwEQEAigYAAAAAAP9lWAEAAABicQOIiU6HcQRYAQAAAGNxBUc/+AAAAAAAA"
             "FgBAAAAdHEGKClLAYVxB0sBSwKGcQgoSwFLAksDSwR0cQl0cQpYBAAAAHNhbWVxC11xDChdcQ1LAGFoDWV1Lg==",
             "gAN9cQAoWAEAAABhcQFdcQIoSwFK/v///00sAUpwEQEAigYAAAAAAP9lWAEAAABicQOIiU6HcQRYAQAAAGNxBUc/+AAAAAAAA"
             "FgBAAAAdHEGKClLAYVxB0sBSwKGcQgoSwFLAksDSwR0cQl0cQpYBAAAAHNhbWVxC11xDChdcQ1LAGFoDWV1Lg==",
         })
        CHECK(shown(support::from_base64(file)) == "{'a' [1 -2 300 70000 -1099511627776] 'b' (True False None) 'c' "
                                                   "1.500000 't' (() (1) (1 2) (1 2 3 4)) 'same' [[0] [0]]}");
}

TEST_CASE("names, calls and states") {
    // collections.OrderedDict() with an item and an attribute: a dict; the attribute is dropped.
    CHECK(shown("\x80\2ccollections\nOrderedDict\n)Rq\0(X\1\0\0\0kK\5u}X\1\0\0\0aNsb."s) == "{'k' 5}");
    CHECK(shown("\x80\2ccollections\nOrderedDict\n)R."s) == "call(collections.OrderedDict ())");
    CHECK(shown("\x80\4\x8c\x0b"
                "collections\x8c\x0bOrderedDict\x93)R."s) == "call(collections.OrderedDict ())");
    CHECK(shown("\x80\2(U\7storageK\1tQ."s) == "outside(('storage' 1))");
    const pickle_value loop = read("\x80\2]q\0h\0a."s); // a list in itself is read; who walks it must stop
    CHECK(loop[loop.root].items == std::vector<std::uint32_t>{loop.root});
}

TEST_CASE("nothing but plain data") {
    // os.system("true"), as an attack would have it, in both forms.
    CHECK(objection_to("\x80\2cposix\nsystem\nX\4\0\0\0true\x85R."s) ==
          "p, byte 2 of the pickle: it names 'posix.system', which is not read: tensors, numbers, texts and plain "
          "containers are");
    CHECK(contains(objection_to("\x80\4\x8c\5posix\x8c\6system\x93\x8c\4true\x85R."s), "it names 'posix.system'"));
    CHECK(contains(objection_to("\x80\2iposix\nsystem\n."s), "opcode 105 is not read")); // INST
    CHECK(contains(objection_to("\x80\2\x82\1."s), "opcode 130 is not read"));           // EXT1
    CHECK(contains(objection_to("\x80\2K\1K\1R."s), "a call without a tuple of arguments"));
}

TEST_CASE("what is wrong with a pickle") {
    CHECK(contains(objection_to(""), "not a pickle of protocol 2 or later"));
    CHECK(contains(objection_to("(dp0\n."), "not a pickle of protocol 2 or later"));
    CHECK(contains(objection_to("\x80\6N."s), "a pickle of protocol 6, 2 to 5 are read"));
    CHECK(contains(objection_to("\x80\2N"s), "p, byte 3 of the pickle: truncated"));
    CHECK(contains(objection_to("\x80\2X\xFF\xFF\xFF\x7Fx."s), "truncated: 2147483647 bytes should follow"));
    CHECK(contains(objection_to("\x80\2."s), "ends with 0 values"));
    CHECK(contains(objection_to("\x80\2NN."s), "ends with 2 values"));
    CHECK(contains(objection_to("\x80\2N.N"s), "continues past its end"));
    CHECK(contains(objection_to("\x80\2\x85."s), "pops a value from an empty stack"));
    CHECK(contains(objection_to("\x80\2N(\x85."s), "pops a value from an empty stack")); // none after the mark
    CHECK(contains(objection_to("\x80\2t."s), "pops values up to a missing mark"));
    CHECK(contains(objection_to("\x80\2Na."s), "pops a value from an empty stack"));
    CHECK(contains(objection_to("\x80\2NNa."s), "items for an object that is not a container of them"));
    CHECK(contains(objection_to("\x80\2}(Nu."s), "a key without a value"));
    CHECK(contains(objection_to("\x80\2h\7."s), "nothing is in memory place 7"));
    CHECK(contains(objection_to("\x80\2Nr\xFF\xFF\xFF\x7F."s), "memory place 2147483647 in a pickle of"));
    CHECK(contains(objection_to("\x80\2Ix\n."s), "invalid digits"));
}

} // namespace pickle_test
