#include <tapegraph/formats/gguf.hpp>

#include <formats/gguf_files.hpp>
#include <support/messages.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gguf_test {

using support::contains;
using support::gguf_text;
using support::little;
using support::message_of;
using tapegraph::data_error;
using tapegraph::dtype;
using tapegraph::dtype_error;
using tapegraph::range_error;
using namespace tapegraph::io;

namespace {

/// FNV-1a of bytes.
std::uint64_t hash_of(const std::vector<std::byte>& bytes) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint8_t>(b)) * 0x100000001b3u;
    return hash;
}

std::string refusal(const std::string& bytes) {
    const support::temporary_folder folder;
    return message_of<data_error>([&] { gguf_reader(folder.write("x.gguf", bytes)); });
}

} // namespace

// Three blocks of each type, whose bytes are a linear congruential generator's upper ones without 0x40 (finite
// scales). The hashes are of what PyPI's gguf 0.19 makes of them, dequantize(...) + 0.
TEST_CASE("every quantised block stands for what llama.cpp's package makes of it, bit for bit") {
    struct row {
        const char* type;
        std::uint64_t hash;
        float seventh;
    };
    const row rows[] = {
        {"Q4_0", 0xad39e464be30bf6fu, -1.962890625f},           {"Q4_1", 0x4affeb707a6cfbb5u, -0.0027007460594177246f},
        {"Q5_0", 0xbcdb655bc4492a9au, -0.006092071533203125f},  {"Q5_1", 0xdddf7f776d661bdfu, -0.374114990234375f},
        {"Q8_0", 0x5ae0f94c0642c41du, 0.00018894672393798828f}, {"Q2_K", 0x2ac927b73b0fdf68u, 1.2551970481872559f},
        {"Q3_K", 0x94a9468c5d5f2a03u, 0.11144256591796875f},    {"Q4_K", 0x08cecdc806b1ee37u, 1.7465934753417969f},
        {"Q5_K", 0x18cb46a06282ee7fu, 81.715576171875f},        {"Q6_K", 0x0be7efa27acae6beu, -200.4949951171875f},
        {"IQ4_NL", 0x2d288db0a8368b15u, 0.06718826293945312f},  {"IQ4_XS", 0x45cd2b2e9a537171u, -2.7132415771484375f},
        {"MXFP4", 0xf7667c0b42350703u, -2.938735877055719e-39f}};
    const support::temporary_folder folder;
    support::gguf_file file;
    for (const row& r : rows)
        for (const auto& block : detail::gguf_blocks) {
            if (std::string(r.type) != block.name) continue;
            std::string bytes;
            std::uint32_t state = block.number;
            for (std::size_t i = 0; i < 3 * block.bytes; ++i) {
                state = state * 1664525u + 1013904223u;
                bytes += static_cast<char>(state >> 24 & 0xBFu);
            }
            file.tensor(r.type, {static_cast<std::int64_t>(block.count), 3}, block.number, bytes);
        }
    const gguf_reader reader(folder.write("x.gguf", file.bytes()));
    REQUIRE(reader.tensors().size() == std::size(rows));
    for (const row& r : rows) {
        CAPTURE(r.type);
        CHECK(reader.tensor(r.type).type == r.type);
        host_array values = reader.array(r.type);
        CHECK(values.shape[0] == 3);
        CHECK(values.values<float>()[7] == r.seventh);
        for (float& v : values.values<float>()) v += 0.0f; // -0 is 0
        CHECK(hash_of(values.bytes) == r.hash);
    }
}

TEST_CASE("plain tensors and the intermediate Q8_K") {
    const support::temporary_folder folder;
    support::gguf_file file;
    std::string q8 = little(0.5f);
    for (int i = 0; i < 256; ++i) q8 += static_cast<char>(i - 128);
    q8.resize(292, '\0');
    file.tensor("f32", {3, 2}, {1, 2, 3, 4, 5, 6})
        .tensor("f16", {2}, 1, little<std::uint16_t>(0x3C00) + little<std::uint16_t>(0xC000))
        .tensor("bf16", {1}, 30, little<std::uint16_t>(0x3F80))
        .tensor("f64", {}, 28, little(0.25))
        .tensor("i8", {2}, 24, "\x01\xFF")
        .tensor("i64", {1}, 27, little(std::int64_t{-7}))
        .tensor("none", {32, 0}, 2, "")
        .tensor("q8_k", {256}, 15, q8)
        .tensor("IQ1_M", {256}, 29, std::string(56, '\0'))
        .tensor("new", {4}, 99, "");
    const auto path = folder.write("x.gguf", file.bytes());
    const gguf_reader reader(path);
    CHECK(reader.array("f32").shape == std::vector<std::int64_t>{2, 3}); // the innermost is the first in the file
    CHECK(reader.array("f32").values<float>()[5] == 6);
    CHECK(reader.array("f16").type == dtype::f16);
    CHECK(reader.array("bf16").type == dtype::bf16);
    CHECK(reader.array("f64").values<double>()[0] == 0.25);
    CHECK(reader.array("f64").shape.empty());
    CHECK(reader.array("i8").values<std::int8_t>()[1] == -1);
    CHECK(reader.array("i64").values<std::int64_t>()[0] == -7);
    CHECK(reader.array("none").shape == std::vector<std::int64_t>{0, 32});
    CHECK(reader.array("none").type == dtype::f32);
    CHECK(reader.array("q8_k").values<float>()[1] == -63.5f);
    CHECK(contains(message_of<dtype_error>([&] { (void)reader.array("IQ1_M"); }),
                   "tensor 'IQ1_M': elements of IQ1_M are not read"));
    CHECK(contains(message_of<data_error>([&] { (void)reader.array("f99"); }), "no tensor 'f99' among 10"));

    std::vector<unread_value> unread;
    CHECK(read_gguf(path, &unread).size() == 8);
    REQUIRE(unread.size() == 2);
    CHECK(unread[1].name == "new");
    CHECK(unread[1].reason == "elements of type 99 are not read");
    CHECK_THROWS_AS(read_gguf(path), dtype_error);
}

TEST_CASE("metadata of every type") {
    const support::temporary_folder folder;
    support::gguf_file file;
    file.entry("u8", 0, "\xFF").entry("i8", 1, "\xFF").entry("u16", 2, "\xFF\xFF").entry("i16", 3, "\xFE\xFF");
    file.entry("u32", 7).entry("i32", 5, little(-8)).entry("f32", 6, little(1e-8f)).entry("yes", 7, "\x01");
    file.entry("text", 8, gguf_text("llama")).entry("wide", 10, little(~std::uint64_t{0}));
    file.entry("i64", 11, little(INT64_MIN)).entry("f64", 12, little(0.1));
    file.entry("words", 9, little(8u) + little<std::uint64_t>(2) + gguf_text("a") + gguf_text(""));
    file.entry("counts", 9, little(4u) + little<std::uint64_t>(2) + little(3u) + little(4u));
    file.entry("nested", 9,
               little(9u) + little<std::uint64_t>(1) + little(6u) + little<std::uint64_t>(1) + little(2.5f));
    const gguf_reader reader(folder.write("x.gguf", file.bytes()));
    CHECK(reader.metadata().size() == 15);
    CHECK(reader.integer("u8") == 255);
    CHECK(reader.integer("i8") == -1);
    CHECK(reader.integer("u16") == 65535);
    CHECK(reader.integer("i16") == -2);
    CHECK(reader.integer("u32") == 7);
    CHECK(reader.integer("i32") == -8);
    CHECK(reader.at("f32").number() == static_cast<double>(1e-8f));
    CHECK(std::get<bool>(reader.at("yes").value));
    CHECK(reader.text("text") == "llama");
    CHECK_THROWS_AS((void)reader.integer("wide"), range_error);
    CHECK(reader.at("wide").number() == 0x1p64);
    CHECK(reader.integer("i64") == INT64_MIN);
    CHECK(reader.at("f64").number() == 0.1);
    CHECK(reader.at("words").texts() == std::vector<std::string>{"a", ""});
    CHECK(reader.at("counts").integers() == std::vector<std::int64_t>{3, 4});
    CHECK(std::get<std::vector<double>>(std::get<std::vector<gguf_value>>(reader.at("nested").value)[0].value)[0] ==
          2.5);
    CHECK_THROWS_AS((void)reader.text("u8"), dtype_error);
    CHECK(reader.find("none") == nullptr);
    CHECK(contains(message_of<data_error>([&] { (void)reader.at("none"); }), "no entry 'none' among 15"));
}

TEST_CASE("what is no GGUF file, or a damaged one, is refused by name") {
    const auto version = [](std::uint32_t number) {
        support::gguf_file file;
        file.version = number;
        return file.bytes();
    };
    CHECK(refusal(version(2)).empty());
    CHECK(contains(refusal("GG"), "x.gguf': ends within the magic number"));
    CHECK(contains(refusal("GGMLabcd"), "not a GGUF file"));
    CHECK(contains(refusal(version(1)), "GGUF version 1, versions 2 and 3 are read"));
    CHECK(contains(refusal(version(0x03000000)), "big-endian"));
    CHECK(contains(refusal(support::gguf_file().entry("k", 13, "").bytes()), "entry 'k': a value of type 13"));
    CHECK(contains(refusal(support::gguf_file().entry("k", 7, "\x02").bytes()), "entry 'k': a boolean that is 2"));
    CHECK(contains(refusal(support::gguf_file().entry("k", 1).entry("k", 2).bytes()), "entry 'k' appears twice"));
    CHECK(contains(refusal(support::gguf_file().entry("general.alignment", 48).bytes()), "general.alignment"));
    CHECK(contains(refusal(support::gguf_file().entry("general.alignment", 0).bytes()), "general.alignment"));
    CHECK(contains(refusal(support::gguf_file().tensor("t", {33}, 2, std::string(36, '\0')).bytes()),
                   "tensor 't': rows of 33 elements, Q4_0 has blocks of 32"));
    CHECK(contains(refusal(support::gguf_file().tensor("t", {INT64_MAX, 2}, 0, "").bytes()), "impossible shape"));
    CHECK(contains(refusal(support::gguf_file().tensor("t", {64}, 0, "").bytes()),
                   "tensor 't': 256 bytes from 0 of the data on reach beyond the file"));
    CHECK(contains(refusal(support::gguf_file().tensor("t", {1}, {1}).tensor("t", {1}, {1}).bytes()), "appears twice"));
    support::gguf_file overlapping;
    overlapping.tensor("a", {16}, std::vector<float>(16)).tensor("b", {1}, {1});
    std::string bytes = overlapping.bytes();
    const std::size_t b = bytes.find("b\x01");
    bytes[b + 17] = 32; // the offset of b, which lies in a then
    CHECK(contains(refusal(bytes), "tensor 'b' overlaps another"));
}

} // namespace gguf_test
