#include <tapegraph/data/readers/image_folder.hpp>
#include <tapegraph/data/readers/jpeg.hpp>

#include <doctest/doctest.h>

#include <support/image_files.hpp>
#include <support/temporary_folder.hpp>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace jpeg_test {

namespace data = tapegraph::data;
using support::contains;
using support::message_of;
using bytes = std::vector<std::uint8_t>;

namespace {

/// A smooth picture, so that what a JPEG loses is little.
bytes picture(int height, int width, int channels) {
    bytes pixels;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            for (int c = 0; c < channels; ++c)
                pixels.push_back(static_cast<std::uint8_t>(40 + (c == 1 ? 2 * y : 3 * x) + (c == 3 ? 100 : 10 * c)));
    return pixels;
}

bytes jpeg(int height, int width, int format = TJPF_RGB, int subsampling = TJSAMP_444) {
    const bytes pixels = picture(height, width, tjPixelSize[format]);
    const tjhandle handle = tjInitCompress();
    unsigned char* out = nullptr;
    unsigned long size = 0;
    REQUIRE(tjCompress2(handle, pixels.data(), width, 0, height, format, &out, &size, subsampling, 95, 0) == 0);
    bytes file(out, out + size);
    tjFree(out);
    tjDestroy(handle);
    return file;
}

std::string refused(const bytes& file) {
    return message_of<tapegraph::data_error>([&] { static_cast<void>(data::decode_jpeg(file)); });
}

} // namespace

TEST_CASE("pixels are what was written, and near stb's") {
    for (const auto& [height, width] : {std::pair{1, 1}, {17, 13}, {48, 40}, {8, 16}}) {
        const bytes file = jpeg(height, width), wanted = picture(height, width, 3);
        const auto image = data::decode_jpeg(file);
        CHECK(image.height == height);
        CHECK(image.width == width);
        REQUIRE(image.pixels.size() == wanted.size());
        const auto other = data::detail::decode_with_stb(file);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            CHECK(std::abs(image.pixels[i] - wanted[i]) <= 4);
            CHECK(std::abs(image.pixels[i] - other.pixels[i]) <= 3);
        }
        CHECK(data::jpeg_size_of(file).height == height);
    }
}

TEST_CASE("grey files are repeated to three channels, four inks become colours") {
    const auto grey = data::decode_jpeg(jpeg(9, 9, TJPF_GRAY, TJSAMP_GRAY));
    CHECK(grey.channels == 3);
    CHECK(grey.at(4, 4, 0) == grey.at(4, 4, 2));
    const auto inks = data::decode_jpeg(jpeg(9, 9, TJPF_CMYK));
    const bytes written = picture(9, 9, 4);
    for (std::size_t i = 0; i < 81; ++i)
        CHECK(std::abs(inks.pixels[i * 3] - written[i * 4] * written[i * 4 + 3] / 255) <= 4);
}

TEST_CASE("scaled decoding keeps to the least size") {
    const bytes file = jpeg(100, 60);
    const auto extents = [&](std::int64_t height, std::int64_t width) {
        const auto image = data::decode_jpeg(file, {.least_height = height, .least_width = width});
        return std::to_string(image.height) + "x" + std::to_string(image.width);
    };
    CHECK(extents(0, 0) == "100x60");
    CHECK(extents(51, 10) == "100x60");
    CHECK(extents(50, 30) == "50x30");
    CHECK(extents(25, 16) == "50x30");
    CHECK(extents(25, 15) == "25x15");
    CHECK(extents(1, 1) == "13x8");
    const auto fast = data::decode_jpeg(file, {.fast = true});
    CHECK(fast.pixels.size() == 18000);
    // A larger image's memory serves the next.
    tapegraph::data::images::image<std::uint8_t> slot;
    data::decode_jpeg_into(file, slot);
    const auto* const place = slot.pixels.data();
    data::decode_jpeg_into(jpeg(20, 20), slot);
    CHECK(slot.pixels.data() == place);
    CHECK(slot.height == 20);
}

TEST_CASE("damage is named") {
    bytes file = jpeg(64, 64);
    CHECK(refused({}) == "empty file");
    CHECK(refused({1, 2, 3, 4}) == "not a JPEG");
    CHECK(contains(refused(bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2))),
                   "corrupt JPEG: "));
    CHECK(contains(refused({0xFF, 0xD8, 0xFF, 0xE0}), "corrupt JPEG: "));
    // A header that promises what the file has no room for.
    for (std::size_t i = 2; i + 9 < file.size(); ++i)
        if (file[i] == 0xFF && file[i + 1] == 0xC0) {
            file[i + 5] = file[i + 7] = 0xF0;
            break;
        }
    CHECK(contains(refused(file), "corrupt JPEG: 61504x61504 pixels do not fit into "));
    // A damaged header (a Huffman table of too many codes) leaves nothing behind for the next file.
    const bytes sound = jpeg(16, 16);
    bytes header = sound;
    for (std::size_t i = 2; i + 9 < header.size(); ++i)
        if (header[i] == 0xFF && header[i + 1] == 0xC4) header[i + 5] = header[i + 6] = header[i + 7] = 0xFF;
    CHECK(refused(header) == "corrupt JPEG: Bogus Huffman table definition");
    CHECK(data::decode_jpeg(sound).pixels.size() == 768);
    // What means nothing between segments is passed over.
    bytes longer = jpeg(16, 16);
    longer.insert(longer.end() - 2, {1, 2, 3});
    CHECK(data::decode_jpeg(longer).pixels.size() == 768);
}

TEST_CASE("a folder by the decoder that is named") {
    const support::temporary_folder folder;
    folder.write("a/1.jpg", jpeg(16, 16));
    folder.write("a/2.png", support::png_file(16, 16, 3, picture(16, 16, 3)));
    folder.write("b/1.jpeg", jpeg(16, 16));
    const auto stb = data::read_image_folder(folder.path());
    const auto turbo = data::read_image_folder(folder.path(), {.decoder = data::decode_jpeg_by_turbo});
    CHECK(turbo.count == 3);
    const auto one = data::read_image(folder.path() / "a/1.jpg", data::decode_jpeg_by_turbo);
    CHECK(turbo.images[0] == static_cast<float>(one.pixels[0]) / 255);
    CHECK(turbo.images[768] == stb.images[768]); // PNG
    const auto broken = folder.write("b/2.jpg", bytes{0xFF, 0xD8, 0xFF, 0xD9});
    CHECK(contains(message_of<tapegraph::data_error>([&] {
                       static_cast<void>(
                           data::read_image_folder(folder.path(), {.decoder = data::decode_jpeg_by_turbo}));
                   }),
                   "2.jpg': corrupt JPEG: "));
    CHECK(contains(message_of<tapegraph::data_error>(
                       [&] { static_cast<void>(data::read_image(broken, data::decode_jpeg_by_turbo)); }),
                   "2.jpg': corrupt JPEG: "));
}

} // namespace jpeg_test
