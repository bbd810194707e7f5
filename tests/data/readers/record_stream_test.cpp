#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/data/readers/record_file.hpp>
#include <tapegraph/data/readers/record_stream.hpp>

#include <doctest/doctest.h>

#include <support/image_files.hpp>
#include <support/temporary_folder.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace record_stream_test {

namespace data = tapegraph::data;
using data::record_compression;
using support::contains;
using support::message_of;

namespace {

std::string framed(const std::vector<std::string>& records) {
    std::string bytes;
    for (const auto& record : records) tapegraph::io::append_record(bytes, record);
    return bytes;
}

std::vector<std::string> streamed(const std::string& path, const data::record_stream_options& options = {}) {
    data::record_stream in(path, options);
    std::vector<std::string> all;
    for (std::string record; in.next(record);) all.push_back(record);
    return all;
}

/// What both readers say of a file, which must be the same.
std::string refused(const std::string& path, record_compression kind = record_compression::automatic) {
    const std::string whole = message_of<tapegraph::data_error>([&] {
        const data::record_file file(path, {.compression = kind});
        for (std::int64_t i = 0; i < file.size(); ++i) static_cast<void>(file.read(i));
    });
    CHECK(message_of<tapegraph::data_error>([&] { streamed(path, {.compression = kind}); }) == whole);
    return whole;
}

} // namespace

TEST_CASE("records in order, of sizes around none, a buffer and the first room") {
    const support::temporary_folder folder;
    std::vector<std::string> records{"hello", "", std::string(1, '\0')};
    for (const std::size_t bytes : {65519u, 65520u, 65521u, 1u << 20, (1u << 20) + 1, 5'000'003u}) {
        std::string text(bytes, 'x');
        for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * i >> 3);
        records.push_back(std::move(text));
    }
    records.emplace_back("last");
    for (const auto kind : {record_compression::none, record_compression::gzip, record_compression::zlib}) {
        const std::string path = (folder.path() / "some").string();
        data::record_file_writer out(path, kind);
        for (const auto& record : records) out.write(record);
        out.commit();
        CHECK(streamed(path) == records);
        CHECK(streamed(path, {.compression = kind, .check = false}) == records);
        CHECK(contains(message_of<tapegraph::data_error>([&] { streamed(path, {.longest = 4}); }),
                       "some': record 0 at byte 0: it has 5 bytes of data, more than 4"));
    }
    CHECK(streamed(folder.write("empty", std::string())).empty());
    CHECK(streamed(folder.write("two.gz", support::gzip(framed({"a"})) + support::gzip(framed({"bc"})))) ==
          std::vector<std::string>{"a", "bc"});
}

TEST_CASE("damaged files are reported as by the reader of whole files") {
    const support::temporary_folder folder;
    const std::string bytes = framed({"hello", "world"});
    for (const bool packed : {false, true}) {
        const auto name = [&](const std::string& content) {
            return folder.write("damaged", packed ? support::gzip(content) : content);
        };
        const auto at = [&](std::size_t place) {
            std::string damaged = bytes;
            damaged[place] = static_cast<char>(damaged[place] ^ 1);
            return refused(name(damaged), packed ? record_compression::gzip : record_compression::none);
        };
        CHECK(contains(at(12), "damaged': record 0 at byte 0: the checksum of its 5 bytes of data is "));
        CHECK(contains(at(21), "damaged': record 1 at byte 21: the checksum of its length is "));
        CHECK(contains(at(41), "damaged': record 1 at byte 21: the checksum of its 5 bytes of data is "));
        for (const std::size_t left : {22u, 30u, 33u, 35u, 37u, 38u, 40u, 41u})
            CHECK(contains(refused(name(bytes.substr(0, left))), "record 1 at byte 21: "));
    }
    const std::string packed = support::gzip(bytes);
    for (const std::size_t less : {1u, 8u, 9u, 20u})
        CHECK(contains(refused(folder.write("short.gz", packed.substr(0, packed.size() - less))),
                       "short.gz': truncated deflate data"));
    CHECK(contains(refused(folder.write("wrong", bytes), record_compression::gzip), "wrong': corrupt deflate data"));
    CHECK(contains(refused((folder.path() / "none").string()), "none': no such file"));
    std::string trailer = packed;
    trailer[trailer.size() - 6] = static_cast<char>(trailer[trailer.size() - 6] ^ 1);
    CHECK(contains(refused(folder.write("sum.gz", trailer)), "sum.gz': corrupt deflate data: incorrect data check"));
}

TEST_CASE("a set of streamed records: epochs, positions, origins") {
    const support::temporary_folder folder;
    const std::vector<std::string> paths{folder.write("a", support::gzip(framed({"0", "1", "2"}))),
                                         folder.write("b", std::string()), folder.write("c", framed({"3", "4"}))};
    const auto set = data::streamed_records(paths);
    for (const std::uint64_t epoch : {0u, 1u}) {
        std::string all;
        for (const std::string& record : set.epoch(epoch)) all += record;
        CHECK(all == "01234");
    }
    auto walk = set.iterator();
    for (int i = 0; i < 4; ++i) walk.next();
    auto other = set.iterator();
    other.restore(walk.position());
    CHECK(other.next() == "4");
    CHECK(!other.next());
    const auto failing = set.map([](const std::string& record) {
        if (record == "3") throw std::runtime_error("refused");
        return 0;
    });
    CHECK(contains(message_of<data::record_error>([&] {
                       for ([[maybe_unused]] const int i : failing.epoch(0)) {}
                   }),
                   "element 3 ('" + paths[2] + "': record 0 at byte 0): refused"));
}

} // namespace record_stream_test
