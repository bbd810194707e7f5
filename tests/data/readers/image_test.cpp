#include <tapegraph/data/readers/image.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace image_test {

using tapegraph::data::resize_image;
using tapegraph::data::rgb_image;

namespace {

/// The red channel after a resize; green is twice and blue three times red, and must stay so.
std::vector<float> resized(std::int64_t height, std::int64_t width, const std::vector<int>& red, std::int64_t to_height,
                           std::int64_t to_width) {
    rgb_image image{height, width, {}};
    for (const int r : red)
        for (int c = 1; c <= 3; ++c) image.pixels.push_back(static_cast<std::uint8_t>(r * c));
    std::vector<float> out(static_cast<std::size_t>(to_height * to_width * 3), -1.0f);
    resize_image(image, to_height, to_width, out.data());
    std::vector<float> first;
    for (std::size_t i = 0; i < out.size(); i += 3) {
        CHECK(out[i + 1] == doctest::Approx(2 * out[i]).epsilon(1e-5));
        CHECK(out[i + 2] == doctest::Approx(3 * out[i]).epsilon(1e-5));
        first.push_back(out[i] * 255);
    }
    return first;
}

void check_close(const std::vector<float>& left, const std::vector<double>& right) {
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i] == doctest::Approx(right[i]).epsilon(1e-5)); // float
}

} // namespace

TEST_CASE("the same size changes no value") { check_close(resized(1, 3, {0, 40, 85}, 1, 3), {0, 40, 85}); }

TEST_CASE("shrinking averages areas, pixels at the ends by their part") {
    check_close(resized(2, 4, {0, 10, 20, 30, 40, 50, 60, 70}, 1, 2), {25, 45});
    // 3 -> 2: each output covers one and a half pixels.
    check_close(resized(1, 3, {30, 60, 9}, 1, 2), {(30 + 0.5 * 60) / 1.5, (0.5 * 60 + 9) / 1.5});
    check_close(resized(3, 1, {30, 60, 9}, 1, 1), {33});
}

TEST_CASE("growing interpolates between pixel centres and holds the borders") {
    check_close(resized(1, 2, {0, 80}, 1, 4), {0, 20, 60, 80});
    check_close(resized(1, 1, {7}, 2, 3), {7, 7, 7, 7, 7, 7});
    // Rows grow while columns shrink.
    check_close(resized(2, 2, {0, 20, 40, 60}, 4, 1), {10, 20, 40, 50});
}

TEST_CASE("a constant image stays constant at any size, and white stays at most 1") {
    for (std::int64_t size = 1; size <= 23; ++size) {
        rgb_image image{17, 13, std::vector<std::uint8_t>(17 * 13 * 3, 255)};
        std::vector<float> out(static_cast<std::size_t>(size * (24 - size) * 3));
        resize_image(image, size, 24 - size, out.data());
        for (const float v : out) {
            REQUIRE(v <= 1.0f);
            REQUIRE(v == doctest::Approx(1).epsilon(1e-5));
        }
    }
}

} // namespace image_test
