#include <tapegraph/formats/crc32c.hpp>
#include <tapegraph/formats/record_framing.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

namespace record_framing_test {

using tapegraph::data_error;
using tapegraph::io::append_record;
using tapegraph::io::crc32c;
using tapegraph::io::masked_crc32c;
using tapegraph::io::record_cursor;

TEST_CASE("crc32c gives the numbers of RFC 3720, whole, in parts, and by tables") {
    CHECK(crc32c("123456789") == 0xe3069283u);
    CHECK(crc32c("") == 0);
    CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aau);
    CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
    std::vector<std::uint8_t> rising(32);
    std::iota(rising.begin(), rising.end(), std::uint8_t{0});
    CHECK(crc32c(std::span<const std::uint8_t>(rising)) == 0x46dd794eu);
    std::string text;
    for (int i = 0; i < 1009; ++i) text += static_cast<char>(i * 31);
    for (std::size_t size = 0; size <= text.size(); size += size < 40 ? 1 : 97)
        for (std::size_t offset : {0u, 1u, 7u}) { // not aligned, either
            const std::string_view part = std::string_view(text).substr(offset, size);
            const auto* const bytes = reinterpret_cast<const unsigned char*>(part.data());
            CHECK(crc32c(part) == ~tapegraph::io::detail::crc32c_by_table(~0u, bytes, part.size()));
            const std::size_t half = part.size() / 3;
            CHECK(crc32c(part.substr(half), crc32c(part.substr(0, half))) == crc32c(part));
        }
}

TEST_CASE("masked checksums and back") {
    static_assert(tapegraph::io::unmasked_crc32c(masked_crc32c(0x12345678u)) == 0x12345678u);
    CHECK(masked_crc32c(0) == 0xa282ead8u);
}

TEST_CASE("a record's bytes") {
    std::string file;
    append_record(file, "abc");
    // As TensorBoard's own functions write it.
    CHECK(file == std::string("\x03\0\0\0\0\0\0\0\xb0\x99\x49\x0e"
                              "abc\x6e\x57\xf1\x21",
                              19));
    append_record(file, "");
    append_record(file, std::string(70000, 'x'));
    record_cursor records(file, "some.tfrecord");
    std::string_view data;
    REQUIRE(records.next(data));
    CHECK(data == "abc");
    CHECK(records.place().offset == 19);
    REQUIRE(records.next(data));
    CHECK(data.empty());
    REQUIRE(records.next(data));
    CHECK(data == std::string(70000, 'x'));
    CHECK_FALSE(records.next(data));
    CHECK_FALSE(records.next(data));
}

TEST_CASE("damaged records are named with their place") {
    std::string file;
    append_record(file, "first");
    append_record(file, "second");
    const auto message = [](const std::string& bytes) {
        return support::message_of<data_error>([&] {
            record_cursor records(bytes, "a.tfrecord", 100);
            for (std::string_view data; records.next(data);) {}
        });
    };
    CHECK(message(file).empty());
    CHECK(message(file.substr(0, 30)) ==
          "'a.tfrecord': record 1 at byte 121: the file ends 9 bytes into it, and the smallest record has 16");
    CHECK(message(file.substr(0, file.size() - 1)) ==
          "'a.tfrecord': record 1 at byte 121: it has 6 bytes of data, and the file has 9 more");
    std::string length = file;
    length[21] = 7;
    CHECK(support::contains(message(length), "'a.tfrecord': record 1 at byte 121: the checksum of its length is 0x"));
    std::string data = file;
    data[12] = 'F';
    CHECK(support::contains(message(data),
                            "'a.tfrecord': record 0 at byte 100: the checksum of its 5 bytes of data is 0x"));
    // A length that is far too large, with a checksum that is right.
    std::string huge(8, '\xff');
    std::string check(4, '\0');
    tapegraph::io::detail::store_little(check.data(), masked_crc32c(crc32c(huge)), 4);
    CHECK(message(huge + check + "0123456789") ==
          "'a.tfrecord': record 0 at byte 100: it has 18446744073709551615 bytes of data, and the file has 10 more");
}

} // namespace record_framing_test
