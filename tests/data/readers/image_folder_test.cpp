#include <tapegraph/data/readers/image_folder.hpp>

#include <support/image_files.hpp>
#include <support/temporary_folder.hpp>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#if __has_include(<stb/stb_image_write.h>)
#include <stb/stb_image_write.h>
#else
#include <stb_image_write.h>
#endif
#pragma GCC diagnostic pop

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace image_folder_test {

using tapegraph::argument_error;
using tapegraph::data_error;
using namespace tapegraph;

namespace {

std::string jpeg_file(int height, int width, const std::vector<std::uint8_t>& rgb) {
    std::string bytes;
    stbi_write_jpg_to_func(
        [](void* to, void* data, int size) { static_cast<std::string*>(to)->append(static_cast<char*>(data), size); },
        &bytes, width, height, 3, rgb.data(), 95);
    return bytes;
}

std::string grey_png(unsigned height, unsigned width, std::uint8_t value) {
    return support::png_file(height, width, 1, std::vector<std::uint8_t>(height * width, value));
}

std::string failure_of(const std::filesystem::path& folder, const data::image_folder_options& options = {}) {
    return support::message_of<data_error>([&] { data::read_image_folder(folder, options); });
}

} // namespace

TEST_CASE("classes by name, files in natural or bytewise order, other files passed over") {
    const support::temporary_folder folder;
    folder.write("dogs/dog.10.png", grey_png(1, 1, 10));
    folder.write("dogs/dog.9.PNG", grey_png(1, 1, 9));
    folder.write("cats/b.png", grey_png(1, 1, 2));
    folder.write("cats/a.png", grey_png(1, 1, 1));
    folder.write("cats/notes.txt", std::string("x"));
    folder.write("cats/.hidden.png", std::string("x"));
    folder.write(".git/x.png", std::string("x"));
    folder.write("README.md", std::string("x"));
    const auto values = [](const data::labelled_images& images) {
        std::vector<int> result;
        for (std::size_t i = 0; i < images.images.size(); i += 3)
            result.push_back(static_cast<int>(images.images[i] * 255 + 0.5f));
        return result;
    };
    const auto images = data::read_image_folder(folder.path());
    CHECK(images.count == 4);
    CHECK(images.class_names == std::vector<std::string>{"cats", "dogs"});
    CHECK(images.labels == std::vector<std::int32_t>{0, 0, 1, 1});
    CHECK(values(images) == std::vector<int>{1, 2, 9, 10});
    CHECK(values(data::read_image_folder(folder.path(), {.order = data::file_order::lexicographic})) ==
          std::vector<int>{1, 2, 10, 9});
}

TEST_CASE("natural order") {
    using data::detail::natural_less;
    const std::vector<std::string> order{"",
                                         "a",
                                         "a0",
                                         "a00",
                                         "a1",
                                         "a01",
                                         "a2",
                                         "a2b",
                                         "a10",
                                         "a10b",
                                         "b",
                                         "b99999999999999999999998",
                                         "b99999999999999999999999"};
    // "a1" and "a01" are the same number, then bytes decide: '0' before '1'.
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t j = 0; j < order.size(); ++j) {
            const bool same_number = (order[i] == "a1" && order[j] == "a01") || (order[i] == "a01" && order[j] == "a1");
            if (same_number) continue;
            CHECK_MESSAGE(natural_less(order[i], order[j]) == (i < j), order[i], " < ", order[j]);
        }
    CHECK(natural_less("a01", "a1"));
    CHECK_FALSE(natural_less("a1", "a01"));
}

TEST_CASE("every kind of PNG becomes three channels") {
    const support::temporary_folder folder;
    const auto read = [&](unsigned channels, const std::vector<std::uint8_t>& samples) {
        return data::read_image(folder.write("x.png", support::png_file(2, 2, channels, samples)));
    };
    const std::vector<std::uint8_t> rgb{1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252};
    const std::vector<std::uint8_t> grey{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};
    CHECK(read(3, rgb).pixels == rgb);
    CHECK(read(4, {1, 2, 3, 0, 4, 5, 6, 255, 7, 8, 9, 128, 250, 251, 252, 1}).pixels == rgb);
    CHECK(read(1, {1, 2, 3, 4}).pixels == grey);
    CHECK(read(2, {1, 0, 2, 255, 3, 9, 4, 7}).pixels == grey);
    CHECK(read(1, {1, 2, 3, 4}).height == 2);
}

TEST_CASE("JPEG") {
    const support::temporary_folder folder;
    const std::vector<std::uint8_t> rgb = [] {
        std::vector<std::uint8_t> values;
        for (int i = 0; i < 16 * 24; ++i) values.insert(values.end(), {200, 100, 50});
        return values;
    }();
    const auto image = data::read_image(folder.write("x.jpg", jpeg_file(16, 24, rgb)));
    CHECK(image.height == 16);
    CHECK(image.width == 24);
    // A constant image survives JPEG up to quantisation and the colour transform's rounding.
    for (std::size_t i = 0; i < rgb.size(); ++i) REQUIRE(std::abs(image.pixels[i] - rgb[i]) <= 3);
}

TEST_CASE("sizes: all alike, as the options require, or resized") {
    const support::temporary_folder folder;
    folder.write("c/1.png", grey_png(3, 5, 255));
    const auto second = folder.write("c/2.png", grey_png(4, 5, 51));
    CHECK(failure_of(folder.path()) == "'" + second.string() + "': image is 4x5 (height x width), expected 3x5");
    CHECK(support::contains(failure_of(folder.path(), {.height = 4, .width = 5}),
                            "1.png': image is 3x5 (height x width), expected 4x5"));
    const auto images = data::read_image_folder(folder.path(), {.height = 2, .width = 7, .resize = true});
    CHECK(images.height == 2);
    CHECK(images.width == 7);
    CHECK(images.images.size() == 2u * 2 * 7 * 3);
    CHECK(images.images.front() == doctest::Approx(1));
    CHECK(images.images.back() == doctest::Approx(0.2));
    CHECK_THROWS_AS(data::read_image_folder(folder.path(), {.height = 4}), argument_error);
    CHECK_THROWS_AS(data::read_image_folder(folder.path(), {.height = -1, .width = -1}), argument_error);
}

TEST_CASE("missing, empty and damaged files are named, the first in order on any thread count") {
    const support::temporary_folder folder;
    CHECK(support::contains(failure_of(folder.path() / "none"), "none': no such folder"));
    CHECK(support::contains(failure_of(folder.path()), "no class folders"));
    folder.write("cats/notes.txt", std::string("x"));
    CHECK(support::contains(failure_of(folder.path()), "cats': no PNG or JPEG images"));

    std::vector<std::uint8_t> rgb(40 * 40 * 3);
    std::iota(rgb.begin(), rgb.end(), std::uint8_t{0});
    const auto png = support::png_file(40, 40, 3, rgb), jpeg = jpeg_file(40, 40, rgb);
    folder.write("cats/a.png", png);
    folder.write("cats/b.jpg", jpeg);
    folder.write("cats/c.png", png);
    CHECK(data::read_image_folder(folder.path()).count == 3);
    for (const std::string& name : {std::string("cats/b.jpg"), std::string("cats/c.png")}) {
        const auto& whole = name == "cats/b.jpg" ? jpeg : png;
        const auto message = [&](const std::string& bytes) {
            folder.write(name, bytes);
            const auto text = failure_of(folder.path());
            CHECK_MESSAGE(support::contains(text, name), text);
            return text;
        };
        CHECK(support::contains(message(""), "empty file"));
        CHECK(support::contains(message("not an image at all"), "neither PNG nor JPEG"));
        for (std::size_t cut = 1; cut < whole.size(); cut += 1 + cut / 8) // every start of the file is too little
            REQUIRE_FALSE(message(whole.substr(0, cut)).empty());
        CHECK(support::contains(message(whole.substr(0, whole.size() - 1)), "truncated"));
        folder.write(name, whole);
    }
    // A Huffman table of more codes than there are symbols, which stb_image 2.27 would write past the end of its own.
    auto table = jpeg;
    const auto segment = table.find("\xFF\xC4");
    REQUIRE(segment != std::string::npos);
    table.replace(segment + 5, 16, std::string(16, '\xFF'));
    folder.write("cats/b.jpg", table);
    CHECK(support::contains(failure_of(folder.path()), "b.jpg': corrupt JPEG: Huffman table of 4080 codes"));
    folder.write("cats/b.jpg", jpeg);
    auto flipped = png;
    flipped[png.size() / 2] ^= 1;
    const auto third = folder.write("cats/c.png", flipped);
    CHECK(failure_of(folder.path()) == "'" + third.string() + "': corrupt PNG: wrong checksum in chunk IDAT");
    folder.write("cats/a.png", std::string());
    for (const int threads : {1, 2, 4}) {
        set_thread_count(threads);
        CHECK(support::contains(failure_of(folder.path()), "a.png': empty file"));
    }
    set_thread_count(0);
    CHECK(support::contains(support::message_of<data_error>([&] { data::read_image(folder.path() / "x.png"); }),
                            "x.png': no such file"));
}

TEST_CASE("the real cats and dogs") {
    const auto folder = support::real_data("catsdogs50");
    if (folder.empty()) return;
    const auto train = data::read_image_folder(folder / "train", {.height = 50, .width = 50});
    CHECK(train.count == 900);
    CHECK(std::accumulate(train.labels.begin(), train.labels.end(), 0) == 450);
    // Sum of all pixels, found with Pillow; here to float rounding.
    CHECK(std::accumulate(train.images.begin(), train.images.end(), 0.0) ==
          doctest::Approx(770004975 / 255.0).epsilon(1e-7));
    const auto test = data::read_image_folder(folder / "test");
    CHECK(test.count == 300);
    CHECK(test.height == 50);
    const auto originals =
        data::read_image_folder(folder / "original_jpeg", {.height = 50, .width = 50, .resize = true});
    CHECK(originals.count == 32);
    // Mean of the originals' mean pixels as Pillow decodes them: area averaging keeps the mean, and decoders differ by a
    // few hundredths of a grey level.
    const double mean = std::accumulate(originals.images.begin(), originals.images.end(), 0.0) / (32.0 * 7500);
    CHECK(mean == doctest::Approx(0.486808).epsilon(2e-4));
    CHECK(support::contains(failure_of(folder / "original_jpeg"), "expected 107x200"));
}

} // namespace image_folder_test
