#include <tapegraph/data/readers/example_columns.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace example_test {

namespace data = tapegraph::data;
using support::contains;
using support::message_of;
using tapegraph::dtype;
using namespace std::string_literals;

namespace {

/// What Python's protobuf 7 makes of label: int64_list [3, -1], s: bytes_list ["ab", ""], x: float_list [1.5].
const std::string packed = "\x0a\x38"
                           "\x0a\x18\x0a\x05label\x12\x0f\x1a\x0d\x0a\x0b\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                           "\x0a\x0d\x0a\x01s\x12\x08\x0a\x06\x0a\x02\x61\x62\x0a\x00"
                           "\x0a\x0d\x0a\x01x\x12\x08\x12\x06\x0a\x04\x00\x00\xc0\x3f"s;

/// label: integers not packed, 3 and 300.
const std::string not_packed = "\x0a\x12"
                               "\x0a\x10\x0a\x05label\x12\x07\x1a\x05\x08\x03\x08\xac\x02"s;

template <class T>
std::vector<T> parsed(const data::fixed_feature& feature, const std::string& bytes) {
    const data::example_parser parser({feature});
    std::vector<T> values(static_cast<std::size_t>(parser.columns()[0].record_size()));
    std::byte* const places[1] = {reinterpret_cast<std::byte*>(values.data())};
    parser.parse_into(bytes, places);
    return values;
}

template <class T = float>
std::string refused(const data::fixed_feature& feature, const data::example& value) {
    return message_of<tapegraph::data_error>([&] { static_cast<void>(parsed<T>(feature, serialize(value))); });
}

} // namespace

TEST_CASE("bytes are protobuf's, both ways") {
    const data::example made = data::example()
                                   .set("label", data::int64_feature({3, -1}))
                                   .set("s", data::bytes_feature({"ab", ""}))
                                   .set("x", data::float_feature({7}))
                                   .set("x", data::float_feature({1.5f}));
    CHECK(serialize(made) == packed);
    CHECK(data::parse_example(packed) == made);
    CHECK(made.find("label")->size() == 2);
    CHECK(made.find("y") == nullptr);
    CHECK(data::parse_example("").features().empty());
    CHECK(serialize(data::example()) == "\x0a\x00"s);
    CHECK(data::parse_example(not_packed).find("label")->integers == std::vector<std::int64_t>{3, 300});
    // Every kind with no values, names that are not text, and a feature that was never filled.
    const data::example odd = data::example()
                                  .set("", data::bytes_feature(std::vector<std::string>{}))
                                  .set("\0\xff"s, data::int64_feature({}))
                                  .set("f", data::float_feature({}))
                                  .set("n", {});
    CHECK(data::parse_example(serialize(odd)) == odd);
    // Concatenated messages are one; the last of two features with a name counts.
    const auto merged = data::parse_example(packed + not_packed);
    CHECK(merged.features().size() == 3);
    CHECK(merged.find("label")->integers == std::vector<std::int64_t>{3, 300});
    // Unknown fields are passed over.
    CHECK(data::parse_example("\x10\x05"s + packed) == made);
}

TEST_CASE("sequences") {
    data::sequence_example made;
    made.context.set("id", data::int64_feature({7}));
    made.lists.push_back(
        {"words", {data::int64_feature({1, 2}), data::int64_feature({}), data::bytes_feature("three")}});
    made.lists.push_back({"none", {}});
    CHECK(data::parse_sequence_example(serialize(made)) == made);
    // Field numbers: context 1, feature_lists 2, its entries 1, their key 1 and value 2, features 1.
    data::sequence_example small;
    small.lists.push_back({"w", {data::int64_feature({5})}});
    CHECK(serialize(small) == "\x0a\x00\x12\x0e\x0a\x0c\x0a\x01w\x12\x07\x0a\x05\x1a\x03\x0a\x01\x05"s);
}

TEST_CASE("values become columns of every type") {
    const auto ints = data::example().set("v", data::int64_feature({1, 0}));
    const std::string bytes = serialize(ints);
    CHECK(parsed<std::int8_t>({"v", dtype::i8, {2}}, bytes) == std::vector<std::int8_t>{1, 0});
    CHECK(parsed<std::int16_t>({"v", dtype::i16, {2}}, bytes) == std::vector<std::int16_t>{1, 0});
    CHECK(parsed<std::int32_t>({"v", dtype::i32, {2, 1}}, bytes) == std::vector<std::int32_t>{1, 0});
    CHECK(parsed<std::int64_t>({"v", dtype::i64, {1, 2}}, bytes) == std::vector<std::int64_t>{1, 0});
    CHECK(parsed<std::uint8_t>({"v", dtype::u8, {2}}, bytes) == std::vector<std::uint8_t>{1, 0});
    CHECK(parsed<std::uint16_t>({"v", dtype::u16, {2}}, bytes) == std::vector<std::uint16_t>{1, 0});
    CHECK(parsed<std::uint32_t>({"v", dtype::u32, {2}}, bytes) == std::vector<std::uint32_t>{1, 0});
    CHECK(parsed<std::uint64_t>({"v", dtype::u64, {2}}, bytes) == std::vector<std::uint64_t>{1, 0});
    CHECK(parsed<std::uint8_t>({"v", dtype::boolean, {2}}, bytes) == std::vector<std::uint8_t>{1, 0});
    CHECK(parsed<float>({"v", dtype::f32, {2}}, bytes) == std::vector<float>{1, 0});
    CHECK(parsed<double>({"v", dtype::f64, {2}}, bytes) == std::vector<double>{1, 0});
    CHECK(parsed<std::int32_t>({"label", dtype::i32, {2}}, not_packed) == std::vector<std::int32_t>{3, 300});
    // Raw values in a byte string, as tf.io.decode_raw.
    const auto raw = serialize(data::example().set("v", data::bytes_feature("\x00\x00\xc0\x3f\x00\x00\x00\x40"s)));
    CHECK(parsed<float>({"v", dtype::f32, {2}}, raw) == std::vector<float>{1.5f, 2});
    // Defaults for what is missing, empty or was never filled.
    const auto sparse = serialize(data::example().set("a", {}).set("b", data::float_feature({})));
    CHECK(parsed<float>({"a", dtype::f32, {2}, -0.5}, sparse) == std::vector<float>{-0.5f, -0.5f});
    CHECK(parsed<std::int32_t>({"b", dtype::i32, {}, 9}, sparse) == std::vector<std::int32_t>{9});
    CHECK(parsed<std::int32_t>({"c", dtype::i32, {}, -9}, sparse) == std::vector<std::int32_t>{-9});
}

TEST_CASE("what does not fit says which feature, what it has and what was expected") {
    const auto one = [](data::feature f) { return data::example().set("v", std::move(f)); };
    CHECK(refused({"v", dtype::f32, {3}}, one(data::float_feature({1, 2}))) ==
          "feature 'v': 2 floats, expected 3 of f32 for [3]");
    CHECK(refused({"v", dtype::f32, {}}, one(data::int64_feature({1, 2}))) ==
          "feature 'v': 2 integers, expected 1 of f32 for []");
    CHECK(refused<std::int32_t>({"v", dtype::i32, {}}, one(data::float_feature({1}))) ==
          "feature 'v': floats, expected 1 of i32 for []");
    CHECK(refused<std::uint8_t>({"v", dtype::u8, {2}}, one(data::int64_feature({7, 256}))) ==
          "feature 'v': value 256 at 1, expected 2 of u8 for [2]");
    CHECK(refused<std::uint64_t>({"v", dtype::u64, {}}, one(data::int64_feature({-1}))) ==
          "feature 'v': value -1 at 0, expected 1 of u64 for []");
    CHECK(refused<std::uint8_t>({"v", dtype::boolean, {}}, one(data::int64_feature({2}))) ==
          "feature 'v': value 2 at 0, expected 1 of bool for []");
    CHECK(refused({"v", dtype::f32, {2}}, one(data::bytes_feature("abc"))) ==
          "feature 'v': a string of 3 bytes, expected 2 of f32 for [2]");
    CHECK(refused<std::uint8_t>({"v", dtype::u8, {1}}, one(data::bytes_feature({"a", "b"}))) ==
          "feature 'v': 2 bytes, expected 1 of u8 for [1]");
    CHECK(refused({"w", dtype::f32, {}}, one({})) ==
          "feature 'w': missing, and there is no default, expected 1 of f32 for []");
    CHECK(refused<std::uint8_t>({"w", dtype::u8, {}, -1}, one({})) ==
          "feature 'w': a default that the type cannot hold, expected 1 of u8 for []");
    CHECK(message_of<tapegraph::argument_error>([] {
              data::example_parser({{"a"}, {"a"}});
          }) == "example_parser: two features are named 'a'");
    CHECK(message_of<tapegraph::dtype_error>([] {
              data::example_parser({{"a", dtype::f16}});
          }) == "example_parser: feature 'a' cannot become f16");
    for (const auto& bytes : {"\x0a"s, "\x0a\x05\x01"s, packed.substr(0, packed.size() - 2), "\x0f"s})
        CHECK(contains(message_of<tapegraph::data_error>([&] { static_cast<void>(data::parse_example(bytes)); }),
                       "not a tf.train.Example: "));
    CHECK(contains(
        message_of<tapegraph::data_error>([&] { static_cast<void>(data::parse_sequence_example("\x12\x05"s)); }),
        "not a tf.train.SequenceExample: "));
}

} // namespace example_test
