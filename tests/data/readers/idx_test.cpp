#include <tapegraph/data/readers/idx.hpp>

#include <support/image_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace idx_test {

using namespace std::string_literals;
using tapegraph::data_error;
using tapegraph::dtype;
using namespace tapegraph;

namespace {

std::string idx(char type, const std::vector<std::uint32_t>& shape, const std::string& data) {
    std::string bytes = "\0\0"s + type + static_cast<char>(shape.size());
    for (const auto extent : shape) bytes += support::big_endian(extent);
    return bytes + data;
}

} // namespace

TEST_CASE("all element types, plain and gzip, told apart by content") {
    const support::temporary_folder folder;
    for (const bool zipped : {false, true}) {
        const auto read = [&](const std::string& bytes) {
            return data::read_idx(folder.write("any.name", zipped ? support::gzip(bytes) : bytes));
        };
        const auto u8 = read(idx('\x08', {2, 1, 3}, "\x01\x02\x03\xFD\xFE\xFF"));
        CHECK(u8.type == dtype::u8);
        CHECK(u8.shape == std::vector<std::int64_t>{2, 1, 3});
        CHECK(u8.values<std::uint8_t>()[3] == 253);
        CHECK(read(idx('\x09', {1}, "\xFF")).values<std::int8_t>()[0] == -1);
        CHECK(read(idx('\x0B', {2}, "\x01\x02\xFF\xFE")).values<std::int16_t>()[1] == -2);
        CHECK(read(idx('\x0B', {2}, "\x01\x02\xFF\xFE")).values<std::int16_t>()[0] == 258);
        CHECK(read(idx('\x0C', {1}, "\x01\x02\x03\x04")).values<std::int32_t>()[0] == 0x01020304);
        CHECK(read(idx('\x0D', {1}, "\x3F\xC0\0\0"s)).values<float>()[0] == 1.5f);
        CHECK(read(idx('\x0E', {1}, "\xC0\x04\0\0\0\0\0\0"s)).values<double>()[0] == -2.5);
        CHECK(read(idx('\x08', {0, 28, 28}, "")).size() == 0);
    }
}

TEST_CASE("images and labels belong together") {
    const support::temporary_folder folder;
    folder.write("train-images-idx3-ubyte", idx('\x08', {2, 1, 2}, "\x00\x33\x66\xFF"s));
    folder.write("train-labels-idx1-ubyte.gz", support::gzip(idx('\x08', {2}, "\x09\x00"s)));
    const auto images = data::read_mnist(folder.path());
    CHECK(images.count == 2);
    CHECK(images.height == 1);
    CHECK(images.width == 2);
    CHECK(images.channels == 1);
    CHECK(images.labels == std::vector<std::int32_t>{9, 0});
    CHECK(images.images[0] == 0.0f);
    CHECK(images.images[1] == doctest::Approx(0.2));
    CHECK(images.images[3] == 1.0f);
    CHECK(images.class_names.size() == 10);

    const auto failure = [&] { return support::message_of<data_error>([&] { data::read_mnist(folder.path()); }); };
    folder.write("train-labels-idx1-ubyte.gz", support::gzip(idx('\x08', {2}, "\x09\x0A")));
    CHECK(support::contains(failure(), "train-labels-idx1-ubyte.gz', record 1: label 10 of 10 classes"));
    folder.write("train-labels-idx1-ubyte.gz", support::gzip(idx('\x08', {1}, "\x09")));
    CHECK(support::contains(failure(), "holds 2 images"));
    folder.write("train-labels-idx1-ubyte.gz", idx('\x08', {1, 2}, "\x09\x09"));
    CHECK(support::contains(failure(), "holds u8[1,2], expected labels u8[count]"));
    folder.write("train-images-idx3-ubyte", idx('\x09', {1, 1, 1}, "\x09"));
    CHECK(support::contains(failure(), "holds i8[1,1,1], expected images"));
    folder.write("train-images-idx3-ubyte", idx('\x08', {0, 1, 1}, ""));
    folder.write("train-labels-idx1-ubyte.gz", idx('\x08', {0}, ""));
    CHECK(support::contains(failure(), "no images"));
    CHECK(support::contains(support::message_of<data_error>([&] { data::read_mnist(folder.path(), "t10k"); }),
                            "t10k-images-idx3-ubyte': no such file, nor with .gz"));
}

TEST_CASE("damaged files are named") {
    const support::temporary_folder folder;
    const auto path = folder.path() / "x.idx";
    const auto message = [&](const std::string& bytes) {
        folder.write("x.idx", bytes);
        const auto text = support::message_of<data_error>([&] { data::read_idx(path); });
        CHECK(support::contains(text, path.string()));
        return text;
    };
    std::string noise; // does not compress, so that cutting the gzip form cuts values
    for (std::uint32_t i = 0, x = 1; i < 5000; ++i) noise += static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
    const auto whole = idx('\x08', {5000}, noise), zipped = support::gzip(whole);
    folder.write("x.idx", whole);
    CHECK(data::read_idx(path).size() == 5000);

    CHECK(support::contains(message(""), "empty file"));
    for (const std::size_t cut : {1, 3, 4, 7}) CHECK(support::contains(message(whole.substr(0, cut)), "truncated"));
    CHECK(support::contains(message(whole.substr(0, 1008)), "needs 5000 bytes, got 1000"));
    CHECK(support::contains(message(whole + "x"), "more bytes than shape [5000] needs"));
    CHECK(support::contains(message(idx('\x07', {1}, "x")), "not an IDX file (first bytes 0 0 7 1)"));
    CHECK(support::contains(message(idx('\x08', {}, "x")), "not an IDX file"));
    CHECK(support::contains(message("PNG something else"), "not an IDX file"));
    CHECK(support::contains(message(idx('\x0E', {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")), "impossible shape"));
    // 17 TB promised by 12 bytes: found out without taking the memory.
    CHECK(support::contains(message(idx('\x08', {0xFFFFFFFF, 4096}, "")), "truncated"));

    // Cut in its header, in its values, in its checksum.
    for (const std::size_t size :
         {std::size_t{5}, std::size_t{15}, zipped.size() / 2, zipped.size() - 8, zipped.size() - 1})
        CHECK_FALSE(message(zipped.substr(0, size)).empty());
    CHECK(support::contains(message(zipped.substr(0, zipped.size() / 2)), "truncated gzip data"));
    CHECK(support::contains(message(zipped.substr(0, zipped.size() - 1)), "truncated gzip data"));
    auto flipped = zipped;
    flipped[flipped.size() - 6] ^= 1;
    CHECK(support::contains(message(flipped), "corrupt gzip data"));
    CHECK(support::contains(support::message_of<data_error>([&] { data::read_idx(folder.path() / "none"); }),
                            "none': no such file"));
    CHECK(support::contains(support::message_of<data_error>([&] { data::read_idx(folder.path()); }),
                            "not a regular file"));
}

TEST_CASE("the real MNIST and Fashion-MNIST") {
    const auto check = [](const std::string& name, const std::string& part, std::int64_t count, double mean,
                          const std::array<int, 10>& per_class) {
        const auto folder = support::real_data(name);
        if (folder.empty()) return;
        const auto images = data::read_mnist(folder, part);
        CHECK(images.count == count);
        CHECK(images.height == 28);
        CHECK(images.width == 28);
        const double sum = std::accumulate(images.images.begin(), images.images.end(), 0.0);
        CHECK(std::abs(sum / static_cast<double>(images.images.size()) - mean) < 5e-5); // published to four digits
        std::array<int, 10> counts{};
        for (const auto label : images.labels) ++counts[static_cast<std::size_t>(label)];
        CHECK(counts == per_class);
    };
    check("mnist", "train", 60000, 0.1307, {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});
    check("mnist", "t10k", 10000, 0.1325, {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009});
    check("fashion-mnist", "train", 12000, 0.2861, {1122, 1220, 1201, 1212, 1181, 1204, 1244, 1192, 1195, 1229});
    check("fashion-mnist", "t10k", 10000, 0.2868, {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000});
}

} // namespace idx_test
