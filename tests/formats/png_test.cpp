#include <tapegraph/data/readers/stb.hpp>
#include <tapegraph/formats/png.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace png_test {

using tapegraph::argument_error;
using tapegraph::io::encode_png;

TEST_CASE("the frame of a small PNG") {
    const std::vector<std::uint8_t> pixels{0, 255};
    const std::string png = encode_png(pixels, 1, 2, 1);
    // Signature; IHDR: 2 wide, 1 high, 8 bits, gray.
    CHECK(png.substr(0, 33) ==
          std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\2\0\0\0\1\10\0\0\0\0\xd1\x49\x20\x56", 33));
    CHECK(png.substr(png.size() - 12) == std::string("\0\0\0\0IEND\xae\x42\x60\x82", 12));
}

TEST_CASE("every pixel comes back, in all channels, of noise, slopes and flat pictures") {
    for (const int channels : {1, 2, 3, 4})
        for (const auto& [height, width] : {std::pair{1, 1}, {1, 97}, {97, 1}, {13, 17}, {64, 64}})
            for (const int kind : {0, 1, 2}) {
                std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width * channels));
                std::uint32_t noise = 1;
                for (std::size_t i = 0; i < pixels.size(); ++i) {
                    noise = noise * 1664525u + 1013904223u;
                    pixels[i] = static_cast<std::uint8_t>(kind == 0   ? noise >> 24
                                                          : kind == 1 ? i / static_cast<std::size_t>(channels) * 3
                                                                      : 200);
                }
                const std::string png = encode_png(pixels, height, width, channels);
                int h = 0, w = 0, c = 0;
                unsigned char* const back = tapegraph::data::stb::stbi_load_from_memory(
                    reinterpret_cast<const unsigned char*>(png.data()), static_cast<int>(png.size()), &w, &h, &c, 0);
                REQUIRE(back != nullptr);
                CHECK(h == height);
                CHECK(w == width);
                CHECK(c == channels);
                CHECK(std::equal(pixels.begin(), pixels.end(), back));
                tapegraph::data::stb::stbi_image_free(back);
                if (kind == 2 && height == 64) CHECK(png.size() < 300); // of 4096 to 16384 bytes
            }
}

TEST_CASE("what is no picture") {
    const std::vector<std::uint8_t> pixels(12);
    const auto message = [&](std::int64_t h, std::int64_t w, std::int64_t c) {
        return support::message_of<argument_error>([&] { encode_png(pixels, h, w, c); });
    };
    CHECK(message(2, 2, 3).empty());
    CHECK(message(2, 2, 5) == "encode_png: a picture [2, 2, 5] has 5 channels, not 1 to 4");
    CHECK(message(0, 2, 3) == "encode_png: a picture [0, 2, 3] has no pixels, or too many");
    CHECK(message(2, 3, 3) == "encode_png: 12 bytes for a picture [2, 3, 3]");
    constexpr std::int64_t half_gigabyte = std::int64_t{1} << 29, many = std::int64_t{1} << 62;
    for (const auto& [h, w] :
         {std::pair{half_gigabyte, std::int64_t{2}}, {std::int64_t{1}, half_gigabyte}, {many, many}})
        CHECK(message(h, w, 3) == "encode_png: a picture [" + std::to_string(h) + ", " + std::to_string(w) +
                                      ", 3] has no pixels, or too many");
    CHECK(message(half_gigabyte / 4, 1, 3).starts_with("encode_png: 12 bytes for a picture")); // 512 MiB exactly
    CHECK(message(-1, 2, 3) == "encode_png: a picture [-1, 2, 3] has no pixels, or too many");
}

} // namespace png_test
