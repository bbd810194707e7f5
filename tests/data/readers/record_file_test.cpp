#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/pipeline.hpp>
#include <tapegraph/data/readers/example_columns.hpp>
#include <tapegraph/data/readers/record_file.hpp>

#include <doctest/doctest.h>

#include <support/image_files.hpp>
#include <support/temporary_folder.hpp>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace record_file_test {

namespace data = tapegraph::data;
using data::record_compression;
using support::contains;
using support::message_of;
using namespace std::string_literals;

namespace {

/// "hello" as one record, the checksums by a bitwise CRC-32C in Python.
const std::string hello = "\x05\0\0\0\0\0\0\0\xea\xb2\x04\x3ehello\xbb\x1f\x1c\x19"s;

std::string framed(const std::vector<std::string>& records) {
    std::string bytes;
    for (const auto& record : records) tapegraph::io::append_record(bytes, record);
    return bytes;
}

std::string refused(const std::filesystem::path& path, record_compression kind = record_compression::automatic) {
    return message_of<tapegraph::data_error>([&] {
        const data::record_file file(path, {.compression = kind});
        for (std::int64_t i = 0; i < file.size(); ++i) static_cast<void>(file.read(i));
    });
}

} // namespace

TEST_CASE("records in any order, of sizes around none and above a buffer") {
    const support::temporary_folder folder;
    std::vector<std::string> records{"hello", "", std::string(1, '\0'), std::string(300001, 'x'), "last"};
    for (const auto kind : {record_compression::none, record_compression::gzip, record_compression::zlib}) {
        const auto path = folder.path() / "some.tfrecord";
        {
            data::record_file_writer out(path, kind);
            for (const auto& record : records) out.write(record);
            CHECK(out.size() == 5);
            CHECK(!std::filesystem::exists(folder.path() / "never"));
            out.commit();
            CHECK(message_of<tapegraph::argument_error>([&] { out.write("more"); }) ==
                  "record_file_writer.write: the file is committed");
        }
        const data::record_file file(path);
        REQUIRE(file.size() == 5);
        for (const std::size_t i : {4u, 0u, 3u, 1u, 2u}) CHECK(file.read(static_cast<std::int64_t>(i)) == records[i]);
        if (kind == record_compression::none) CHECK(support::read_text(path) == framed(records));
        CHECK(contains(message_of<tapegraph::range_error>([&] { static_cast<void>(file.read(5)); }),
                       "record_file.read: record 5 of '" + path.string() + "', which has 5"));
    }
    { data::record_file_writer never(folder.path() / "never"); }
    CHECK(!std::filesystem::exists(folder.path() / "never"));
    CHECK(data::record_file(folder.write("empty", std::string())).size() == 0);
    // gzip of others, and files of several members.
    const auto two = folder.write("two.gz", support::gzip(framed({"a"})) + support::gzip(framed({"bc"})));
    CHECK(data::record_file(two).read(1) == "bc");
    CHECK(data::record_file(folder.write("hello", hello)).read(0) == "hello");
}

TEST_CASE("several files are one, and threads read at once") {
    const support::temporary_folder folder;
    const std::vector<std::filesystem::path> paths{folder.write("a", framed({"0", "1", "2"})),
                                                   folder.write("b", std::string()),
                                                   folder.write("c", framed({"3", "4"}))};
    const data::record_files records(paths);
    REQUIRE(records.size() == 5);
    std::vector<std::string> found(5);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 5; ++t)
        threads.emplace_back([&, t] { found[t] = records.read(static_cast<std::int64_t>(t)); });
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i < 5; ++i) CHECK(found[i] == std::to_string(i));
    CHECK(records.place(4).number == 1);
    CHECK(records.place(4).file == paths[2].string());
    CHECK(message_of<tapegraph::range_error>([&] { static_cast<void>(records.read(-1)); }) ==
          "record_files.read: record -1 of 5 in 3 files");
}

TEST_CASE("what is damaged is named with its place") {
    const support::temporary_folder folder;
    std::string bytes = framed({"hello", "world"});
    const auto at = [&](std::size_t place) {
        std::string damaged = bytes;
        damaged[place] = static_cast<char>(damaged[place] ^ 1);
        return refused(folder.write("damaged", damaged), record_compression::none);
    };
    CHECK(contains(at(12), "damaged': record 0 at byte 0: the checksum of its 5 bytes of data is "));
    CHECK(contains(at(21), "damaged': record 1 at byte 21: the checksum of its length is "));
    CHECK(contains(at(41), "damaged': record 1 at byte 21: the checksum of its 5 bytes of data is "));
    CHECK(contains(refused(folder.write("short", bytes.substr(0, 40))),
                   "short': record 1 at byte 21: it has 5 bytes of data"));
    CHECK(contains(refused(folder.write("short", bytes.substr(0, 30))),
                   "record 1 at byte 21: the file ends 9 bytes into it"));
    CHECK(contains(refused(folder.path() / "none"), "none': no such file"));
    const std::string packed = support::gzip(bytes);
    CHECK(contains(refused(folder.write("short.gz", packed.substr(0, packed.size() - 9))),
                   "short.gz': truncated deflate data"));
    CHECK(contains(refused(folder.write("wrong", bytes), record_compression::gzip), "wrong': corrupt deflate data"));
    // Without checks the data come as they are.
    std::string damaged = bytes;
    damaged[12] = 'j';
    CHECK(data::record_file(folder.write("damaged", damaged), {.check = false}).read(0) == "jello");
}

TEST_CASE("examples in record files are a data set") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "train.tfrecord";
    data::record_file_writer out(path);
    for (int i = 0; i < 7; ++i)
        out.write(serialize(data::example()
                                .set("pixels", data::bytes_feature(std::string(4, static_cast<char>(i))))
                                .set("x", data::float_feature({static_cast<float>(i), 0.5f}))
                                .set("label", i == 3 ? data::feature{} : data::int64_feature({i * 10}))));
    out.commit();
    const data::example_parser parser({{"pixels", tapegraph::dtype::u8, {2, 2}},
                                       {"x", tapegraph::dtype::f64, {2}},
                                       {"label", tapegraph::dtype::i32, {}, -1}});
    const auto set = data::make_dataset(data::record_files(path), parser);
    CHECK(set.size() == 7);
    data::loader batches(set.batch(4).prefetch(2));
    std::vector<std::int32_t> labels;
    for (const data::batch& b : batches.epoch(0)) {
        for (const auto label : b.values<std::int32_t>("label")) labels.push_back(label);
        CHECK(b.values<std::uint8_t>("pixels")[5] == static_cast<std::uint8_t>(labels.size() > 4 ? 5 : 1));
        CHECK(b.values<double>("x")[1] == 0.5);
    }
    CHECK(labels == std::vector<std::int32_t>{0, 10, 20, -1, 40, 50, 60});
    const auto wrong =
        data::make_dataset(data::record_files(path), data::example_parser({{"x", tapegraph::dtype::f32, {3}}}));
    CHECK(contains(message_of<tapegraph::data_error>([&] {
                       data::loader all(wrong.batch(7));
                       for (const data::batch& b : all.epoch(0)) CHECK(b.count() == 0);
                   }),
                   "train.tfrecord': record 0 at byte 0: feature 'x': 2 floats, expected 3 of f32 for [3]"));
}

TEST_CASE("records are a source of pipelines, errors name where") {
    const support::temporary_folder folder;
    const std::vector<std::filesystem::path> paths{folder.write("a", framed({"1", "22"})),
                                                   folder.write("b", framed({"x"}))};
    const auto sizes = data::from(data::record_files(paths)).map([](const std::string& bytes) {
        if (bytes == "x") throw tapegraph::data_error("no number");
        return static_cast<std::int64_t>(bytes.size());
    });
    auto walk = sizes.iterator();
    CHECK(walk.next() == 1);
    CHECK(walk.next() == 2);
    const std::string failure = message_of<tapegraph::error>([&] { static_cast<void>(walk.next()); });
    CHECK(contains(failure, "b': record 0 at byte 0"));
    CHECK(contains(failure, "no number"));
}

} // namespace record_file_test
