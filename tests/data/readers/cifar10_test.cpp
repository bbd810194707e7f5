#include <tapegraph/data/readers/cifar10.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace cifar10_test {

using tapegraph::argument_error;
using tapegraph::data_error;
using namespace tapegraph;

namespace {

/// One record whose red plane counts up, whose green plane is 100 and whose blue plane is `label`.
std::string record(char label) {
    std::string bytes(1, label);
    for (int i = 0; i < 1024; ++i) bytes += static_cast<char>(i % 256);
    return bytes + std::string(1024, '\x64') + std::string(1024, label);
}

} // namespace

TEST_CASE("planes become channels, files follow one another") {
    const support::temporary_folder folder;
    folder.write("data_batch_1.bin", record(3) + record(9));
    folder.write("data_batch_2.bin", record(0));
    folder.write("data_batch_4.bin", record(1)); // 3 is missing: the set ends at 2
    folder.write("test_batch.bin", record(7));
    const auto train = data::read_cifar10(folder.path());
    CHECK(train.count == 3);
    CHECK(train.height == 32);
    CHECK(train.width == 32);
    CHECK(train.channels == 3);
    CHECK(train.labels == std::vector<std::int32_t>{3, 9, 0});
    CHECK(train.images.size() == 3u * 32 * 32 * 3);
    const float* pixel = train.images.data() + 3072 + 3 * 255; // of the second record
    CHECK(pixel[0] == 1.0f);
    CHECK(pixel[1] == doctest::Approx(100 / 255.0));
    CHECK(pixel[2] == doctest::Approx(9 / 255.0));
    CHECK(train.class_names[9] == "truck");
    CHECK(data::read_cifar10(folder.path(), data::cifar10_part::test).labels == std::vector<std::int32_t>{7});
    CHECK(data::read_cifar10(folder.path() / "data_batch_4.bin").labels == std::vector<std::int32_t>{1});
    const std::array<std::filesystem::path, 2> files{folder.path() / "test_batch.bin",
                                                     folder.path() / "data_batch_2.bin"};
    CHECK(data::read_cifar10(files).labels == std::vector<std::int32_t>{7, 0});
    CHECK_THROWS_AS(data::read_cifar10(std::span<const std::filesystem::path>()), argument_error);
}

TEST_CASE("damaged files are named, with the record") {
    const support::temporary_folder folder;
    const auto message = [&](const std::string& bytes) {
        const auto path = folder.write("b.bin", bytes);
        return support::message_of<data_error>([&] { data::read_cifar10(path); });
    };
    CHECK(support::contains(message(""), "b.bin': empty file"));
    CHECK(support::contains(message(record(1) + record(2).substr(0, 3000)), "record 1 is truncated"));
    CHECK(support::contains(message(record(1) + record(10)), "b.bin', record 1: label 10 of 10 classes"));
    CHECK(support::contains(support::message_of<data_error>([&] { data::read_cifar10(folder.path()); }),
                            "data_batch_1.bin': no such file"));
    CHECK(support::contains(support::message_of<data_error>([&] { data::read_cifar10(folder.path() / "x.bin"); }),
                            "x.bin': no such file"));
}

TEST_CASE("the real CIFAR-10") {
    const auto folder = support::real_data("cifar10");
    if (folder.empty()) return;
    const auto train = data::read_cifar10(folder);
    const auto test = data::read_cifar10(folder, data::cifar10_part::test);
    CHECK(train.count == 3000);
    CHECK(test.count == 1000);
    CHECK(std::vector<std::int32_t>(train.labels.begin(), train.labels.begin() + 8) ==
          std::vector<std::int32_t>{6, 9, 9, 4, 1, 1, 2, 7});
    CHECK(std::vector<std::int32_t>(test.labels.begin(), test.labels.begin() + 8) ==
          std::vector<std::int32_t>{3, 8, 8, 0, 6, 6, 1, 6});
    const std::array<int, 6> pixels{59, 62, 63, 158, 112, 49};
    for (std::size_t c = 0; c < 3; ++c) {
        CHECK(train.images[c] == doctest::Approx(pixels[c] / 255.0));
        CHECK(test.images[c] == doctest::Approx(pixels[3 + c] / 255.0));
    }
}

} // namespace cifar10_test
