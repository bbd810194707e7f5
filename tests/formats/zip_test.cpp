#include <tapegraph/formats/zip.hpp>

#include <support/base64.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zip_test {

using support::contains;
using support::from_base64;
using support::message_of;
using tapegraph::argument_error;
using tapegraph::data_error;
using namespace tapegraph::io;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}
std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Python's zipfile: plain.txt stored, deep/packed.bin deflated (1,000 zeros), a folder, "streamed" with ZIP64 fields in its local header
/// alone, an empty file with a name of two-byte letters; and a comment at the end.
std::string python_archive() {
    return from_base64(
        "UEsDBBQAAAAAAAAAIQB4d6YPDAAAAAwAAAAJAAAAcGxhaW4udHh0c3RvcmVkIGJ5dGVzUEsDBBQAAAAIAAAAIQCAFwsGCwAAAOgDAAAPAA"
        "AAZGVlcC9wYWNrZWQuYmluY2AYBaNgFAx3AABQSwMEFAAAAAAAAAAhAAAAAAAAAAAAAAAAAAcAAABmb2xkZXIvUEsDBC0AAAAAAAAAIQDG"
        "x4Sm//////////8IABQAc3RyZWFtZWQBABAACgAAAAAAAAAKAAAAAAAAADAxMjM0NTY3ODlQSwMEFAAACAAAAAAhAAAAAAAAAAAAAAAAAA"
        "YAAABncsO8w59QSwECFAAUAAAAAAAAACEAeHemDwwAAAAMAAAACQAAAAAAAAAAAAAAgAEAAAAAcGxhaW4udHh0UEsBAhQAFAAAAAgAAAAh"
        "AIAXCwYLAAAA6AMAAA8AAAAAAAAAAAAAAIABMwAAAGRlZXAvcGFja2VkLmJpblBLAQIUABQAAAAAAAAAIQAAAAAAAAAAAAAAAAAHAAAAAA"
        "AAAAAAAACAAWsAAABmb2xkZXIvUEsBAi0ALQAAAAAAAAAhAMbHhKYKAAAACgAAAAgAAAAAAAAAAAAAAIABkAAAAHN0cmVhbWVkUEsBAhQA"
        "FAAACAAAAAAhAAAAAAAAAAAAAAAAAAYAAAAAAAAAAAAAAIAB1AAAAGdyw7zDn1BLBQYAAAAABQAFABMBAAD4AAAACQBhIGNvbW1lbnQ=");
}

/// What an archive with one change says when it is opened and all of it is read.
std::string objection_to(const std::string& archive) {
    const support::temporary_folder folder;
    const auto path = folder.write("x.zip", archive);
    return message_of<data_error>([&] {
        const zip_reader reader(path);
        for (const auto& member : reader.members()) static_cast<void>(reader.read(member));
    });
}

std::string written(const std::vector<std::pair<std::string, std::string>>& members, const zip_options& options = {}) {
    const support::temporary_folder folder;
    zip_writer writer(folder.path() / "w.zip", options);
    for (const auto& [name, text] : members) writer.add(name, text);
    writer.commit();
    return support::read_text(folder.path() / "w.zip");
}

/// The archive with all occurrences of a piece replaced by one of the same length.
std::string with(std::string archive, const std::string& piece, const std::string& other) {
    for (auto at = archive.find(piece); at != archive.npos; at = archive.find(piece, at + 1))
        archive.replace(at, piece.size(), other);
    return archive;
}

} // namespace

TEST_CASE("inflate: zlib's own bytes in three frames") {
    CHECK(text_of(inflate_bytes(bytes_of(from_base64("eJzLSM3JyVeoyslMAgAVlQPm")), deflate_frame::zlib, 100, "z")) ==
          "hello zlib");
    // Two gzip members, as `cat a.gz b.gz` makes them.
    const std::string gzip = from_base64("H4sIAAAAAAACA8tIzcnJVwAA9vmB7QYAAAAfiwgAAAAAAAIDS6/KLAAA8lzpOgQAAAA=");
    CHECK(text_of(inflate_bytes(bytes_of(gzip), deflate_frame::gzip, 10, "z")) == "hello gzip");
    CHECK(message_of<data_error>([&] { inflate_bytes(bytes_of(gzip), deflate_frame::gzip, 9, "z"); }) ==
          "z: inflates to more than 9 bytes");
    CHECK(message_of<data_error>([&] { inflate_bytes(bytes_of(gzip.substr(0, 20)), deflate_frame::gzip, 9, "z"); }) ==
          "z: truncated deflate data");
    CHECK(message_of<data_error>([&] { inflate_bytes({}, deflate_frame::raw, 9, "z"); }) ==
          "z: truncated deflate data");
    CHECK(message_of<data_error>([&] { inflate_bytes(bytes_of("\xFF\xFF"), deflate_frame::raw, 9, "z"); }) ==
          "z: corrupt deflate data: invalid block type");
}

TEST_CASE("deflate and inflate, sizes around the buffers") {
    for (const std::size_t size : {0u, 1u, 13u, 16383u, 16384u, 16385u, 300007u}) {
        std::string text(size, 'a');
        for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * i >> 5);
        for (const auto frame : {deflate_frame::raw, deflate_frame::zlib, deflate_frame::gzip})
            for (const int level : {0, 1, 9}) {
                const auto packed = deflate_bytes(bytes_of(text), frame, level);
                CHECK(text_of(inflate_bytes(packed, frame, size, "z")) == text);
                if (size == 0) continue;
                CHECK_THROWS_AS(inflate_bytes(packed, frame, size - 1, "z"), data_error);
                const auto cut = std::span(packed).first(packed.size() - 1);
                CHECK_THROWS_AS(inflate_bytes(cut, frame, size, "z"), data_error);
            }
    }
    auto trailing = deflate_bytes(bytes_of("x"), deflate_frame::raw);
    trailing.push_back(std::byte{0});
    CHECK(message_of<data_error>([&] { inflate_bytes(trailing, deflate_frame::raw, 1, "z"); }) ==
          "z: bytes after the end of the deflate data");
    CHECK_THROWS_AS(deflate_bytes({}, deflate_frame::raw, 10), argument_error);
}

TEST_CASE("an archive of Python's zipfile") {
    const support::temporary_folder folder;
    const zip_reader reader(folder.write("p.zip", python_archive()));
    REQUIRE(reader.members().size() == 4); // the folder is none
    CHECK(reader.members()[1].name == "deep/packed.bin");
    CHECK(reader.members()[1].method == 8);
    CHECK(text_of(reader.read("plain.txt")) == "stored bytes");
    CHECK(text_of(reader.read("deep/packed.bin")) == std::string(1000, '\0'));
    CHECK(text_of(reader.read("streamed")) == "0123456789");
    CHECK(reader.read("gr\xC3\xBC\xC3\x9F").empty());
    CHECK(reader.find("folder/") == nullptr);
    CHECK(
        contains(message_of<data_error>([&] { static_cast<void>(reader.read("none")); }), "p.zip': no member 'none'"));
    CHECK(contains(message_of<data_error>([&] { static_cast<void>(reader.read("deep/packed.bin", 999)); }),
                   "p.zip', member 'deep/packed.bin': 1000 bytes, more than 999"));
}

TEST_CASE("an archive that was written as a stream, sizes in the directory alone") {
    const support::temporary_folder folder;
    const zip_reader reader(folder.write(
        "s.zip",
        from_base64(
            "UEsDBBQACAAIAAAAIQAAAAAAAAAAAAAAAAABAAAAYUtMSk4kFwEAUEsHCC36keEIAAAAPAAAAFBLAQIUABQACAAIAAAAIQAt+pHh"
            "CAAAADwAAAABAAAAAAAAAAAAAACAAQAAAABhUEsFBgAAAAABAAEALwAAADcAAAAAAA==")));
    CHECK(text_of(reader.read("a")).size() == 60);
}

TEST_CASE("other methods than deflate are listed and refused") {
    const std::string bzip2 = from_base64(
        "UEsDBC4AAAAMAAAAIQAt+pHhKgAAADwAAAABAAAAYkJaaDkxQVkmU1nJx/W/AAAJgQA4ACAAMMwFKaYnExPF3JFOFCQycf1vwFBLAQIuAC"
        "4AAAAMAAAAIQAt+pHhKgAAADwAAAABAAAAAAAAAAAAAACAAQAAAABiUEsFBgAAAAABAAEALwAAAEkAAAAAAA==");
    CHECK(contains(objection_to(bzip2),
                   "member 'b': packed by method 12, only stored (0) and deflated (8) ones are read"));
}

TEST_CASE("written archives come back, with 64-bit fields or without, the same bytes each time") {
    const std::vector<std::pair<std::string, std::string>> members{
        {"empty", ""}, {"a/b.txt", "text"}, {"zeros", std::string(70001, '\0')}, {"noise", "\x01\xFE\x33\x90"}};
    for (const int level : {0, 6})
        for (const std::uint64_t from :
             {std::uint64_t{0xFFFFFFFF}, std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{100}}) {
            const zip_options options{.level = level, .zip64_from = from};
            const std::string archive = written(members, options);
            CHECK(archive == written(members, options));
            CHECK((archive.size() < 2000) == (level > 0)); // the zeros
            const support::temporary_folder folder;
            const zip_reader reader(folder.write("w.zip", archive));
            REQUIRE(reader.members().size() == members.size());
            for (const auto& [name, text] : members) CHECK(text_of(reader.read(name)) == text);
            CHECK(reader.at("noise").method == 0); // deflated it would be larger
        }
    CHECK(objection_to(written({})).empty());
    CHECK(written({}).size() == 22);
}

TEST_CASE("the writer refuses names, and leaves nothing where it is not committed") {
    const support::temporary_folder folder;
    {
        zip_writer writer(folder.path() / "w.zip");
        writer.add("a", "1");
        CHECK(contains(message_of<argument_error>([&] { writer.add("a", "2"); }), "w.zip': two members are named 'a'"));
        for (const char* const bad : {"", "/a", "a/../b", "..", "a\\b", "a\nb", "a/", "\xFF"})
            CHECK_THROWS_AS(writer.add(bad, "x"), argument_error);
        writer.add("..a/b..", "fine");
    }
    CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("what is wrong with an archive") {
    CHECK(contains(objection_to(""), "x.zip': not a zip archive: 0 bytes"));
    CHECK(contains(objection_to(std::string(100, 'x')), "not a zip archive, or a truncated one"));
    const std::string sound = python_archive();
    CHECK(objection_to(sound).empty());
    for (std::size_t size = 1; size < sound.size(); ++size) REQUIRE(!objection_to(sound.substr(0, size)).empty());
    CHECK(contains(objection_to("xx" + sound), "does not end at byte"));
    CHECK(contains(objection_to(with(sound, "stored bytes", "Stored bytes")), "member 'plain.txt': wrong checksum"));
    CHECK(contains(objection_to(with(sound, "streamed", "..\\ooooo")),
                   "the name '..\\ooooo' holds a control character or a backslash"));
    CHECK(contains(objection_to(with(sound, "plain.txt", "../../txt")), "the name '../../txt' holds '..'"));
    CHECK(contains(objection_to(with(sound, "plain.txt", "/lain.txt")), "begins with '/'"));
    CHECK(contains(objection_to(with(written({{"aa", "1"}, {"bb", "2"}}), "bb", "aa")), "two members are named 'aa'"));
    std::string local = sound;
    local.replace(local.find("plain"), 5, "Plain");
    CHECK(contains(objection_to(local), "its header at byte 0 is not what the directory says"));

    // Both members at the bytes of the first one.
    std::string overlap = written({{"aa", "1"}, {"ab", "1"}});
    const auto second = overlap.rfind("ab") - 4;
    overlap[second] = 0;
    CHECK(contains(objection_to(overlap), "member 'aa': overlaps member 'ab'"));
    // The first one's data to the end of the second.
    std::string longer = written({{"aa", "1"}, {"ab", "1"}});
    const auto entry = longer.find("PK\1\2");
    longer[entry + 20] = longer[entry + 24] = 2;
    CHECK(contains(objection_to(longer), "member 'aa': overlaps member 'ab'"));
    // A promise that deflate cannot keep, and one that it does not.
    std::string bomb = written({{"zeros", std::string(1000, '\0')}}, {.level = 9});
    const auto packed = bomb.find("PK\1\2");
    bomb[packed + 24 + 3] = 0x7F;
    CHECK(contains(objection_to(bomb), "bytes cannot inflate to 213"));
    bomb[packed + 24 + 3] = 0;
    bomb[packed + 24] ^= 1;
    CHECK(contains(objection_to(bomb), "inflates to 1000 bytes, the directory says 1001"));
    std::string encrypted = sound;
    encrypted[encrypted.find("PK\1\2") + 8] = 1;
    CHECK(contains(objection_to(encrypted), "member 'plain.txt': is encrypted"));
    std::string parts = written({});
    parts[4] = 1;
    CHECK(contains(objection_to(parts), "one part of a zip archive of several"));
    std::string count = sound;
    count[count.size() - 9 - 12] = 4;
    CHECK(contains(objection_to(count), "bytes after the last directory entry"));
    count[count.size() - 9 - 12] = 6;
    CHECK(contains(objection_to(count), "6 members in a directory of 275 bytes"));

    const std::string large = written({{"aa", "123"}}, {.zip64_from = 0});
    CHECK(objection_to(large).empty());
    CHECK(contains(objection_to(with(large, "PK\6\7", "PK\6\1")), "the ZIP64 end of the directory is missing"));
    CHECK(contains(objection_to(with(large, "PK\6\6", "PK\6\1")), "no ZIP64 end of the directory at byte"));
    std::string field = large;
    field[field.rfind("aa") + 2] = 2; // another kind of field
    CHECK(contains(objection_to(field), "member 'aa': its ZIP64 field is missing"));
}

} // namespace zip_test
