#include <tapegraph/data/images/normalization.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace resize_test {

namespace images = tapegraph::data::images;
using images::resize_method;

namespace {

/// 5 rows, 7 columns of (37 i) mod 101.
template <class T = float>
images::image<T> sample(std::int64_t channels = 1) {
    images::image<T> x(5, 7, channels);
    for (std::size_t i = 0; i < 35; ++i)
        for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c)
            x.pixels[i * static_cast<std::size_t>(channels) + c] = static_cast<T>((i * 37 % 101 + 20 * c) & 0xFF);
    return x;
}

void check_close(const std::vector<float>& left, const std::vector<double>& right) {
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i)
        CHECK(left[i] == doctest::Approx(right[i]).epsilon(2e-6)); // float, 7 digits kept
}

std::vector<float> to(std::int64_t height, std::int64_t width, resize_method method, bool antialias) {
    return images::resize(sample(), height, width, {method, antialias}).pixels;
}

} // namespace

TEST_CASE("antialiased, images are Pillow's") {
    // Image.fromarray(x).resize((4, 3), Image.BILINEAR), then BICUBIC; Pillow 13, mode F. tf.image.resize(antialias=True) has the
    // same kernels.
    check_close(to(3, 4, resize_method::bilinear, true), {41.7483, 50.6, 37.30286, 52.53061, 43.06878, 56.29333,
                                                          47.16444, 62.78307, 43.62585, 62.37143, 46.18857, 48.22449});
    check_close(to(3, 4, resize_method::bicubic, true), {42.19995, 51.43343, 35.66189, 53.36649, 43.74427, 56.17149,
                                                         45.86797, 65.89442, 41.48339, 64.29572, 46.03796, 47.65588});
    // Growing: nothing to average, so antialias changes nothing.
    const std::vector<double> bilinear{
        0,        24.66667, 53.44444, 59.77778, 10,       38.77778, 67.55556, 62.66667, 20,       42.75,    67.41666,
        62.52778, 43.61111, 52.75,    22.61111, 34.55556, 54.91666, 62.75,    31.33333, 56,       66.07407, 58.37963,
        41.33333, 37.37963, 56.80556, 65.94444, 51.33333, 36.75,    33.36111, 48.11111, 63.7963,  46.75,    42.7963,
        62.22223, 71.36111, 56.75,    59,       33.16667, 36.69444, 59.86111, 69,       38.86111, 36.77778, 54.33334,
        79,       26,       50.66667, 79.44444, 85.77778, 36,       64.77778, 37.44444, 21.33333, 46};
    check_close(to(6, 9, resize_method::bilinear, true), bilinear);
    check_close(to(6, 9, resize_method::bilinear, false), bilinear);
    check_close(to(6, 9, resize_method::bicubic, false),
                {-3.855506, 20.09396, 58.69265, 65.78055, 7.895973, 37.74121, 76.56729, 66.49724, 14.68991,
                 45.6531,   75.98174, 64.83343, 37.25155, 57.40458, 15.2151,  25.74183, 55.40376, 68.42612,
                 27.1972,   59.83562, 74.39224, 60.23593, 39.28762, 35.48208, 61.08821, 69.57883, 48.05647,
                 35.09017,  26.01834, 46.44122, 69.16876, 44.70428, 40.55499, 69.76709, 78.83121, 53.23103,
                 66.47523,  28.56761, 27.01625, 59.77485, 74.17558, 33.48895, 28.25105, 55.40567, 86.25552,
                 22.44788,  49.36997, 87.55058, 92.00982, 34.37584, 71.26041, 36.24522, 14.43097, 46.12732});
}

TEST_CASE("without antialias, and areas: the formulas as matrices, by NumPy") {
    check_close(to(3, 4, resize_method::bilinear, false),
                {32.875, 55.54167, 31.91667, 50.375, 26.875, 79, 55.375, 57, 41.91667, 77.20833, 53.58333, 46.79167});
    check_close(to(3, 4, resize_method::bicubic, false), {28.92793, 57.38598, 30.42787, 49.27498, 23.40309, 83.14258,
                                                          54.68457, 55.13012, 40.41003, 81.74795, 56.7897, 45.58379});
    check_close(to(3, 4, resize_method::area, false), {38.65714, 50.14286, 35.65714, 52.91429, 40.4, 57.65714, 46.05714,
                                                       63.31429, 42.14286, 65.17143, 47.8, 47.74286});
    // Nearest: rows 0, 2, 4; columns 0, 2, 4, 6 (floor((i + 1/2) 7 / 4)).
    std::vector<double> nearest;
    for (const int y : {0, 2, 4})
        for (const int x : {0, 2, 4, 6}) nearest.push_back((y * 7 + x) * 37 % 101);
    check_close(to(3, 4, resize_method::nearest, true), nearest);
}

TEST_CASE("bytes are rounded and end at 0 and 255") {
    // Pillow, mode L, BICUBIC.
    const auto bytes = images::resize(sample<std::uint8_t>(), 3, 4, {resize_method::bicubic, true}).pixels;
    CHECK(bytes == std::vector<std::uint8_t>{42, 51, 36, 53, 44, 56, 46, 66, 41, 64, 46, 48});
    const images::image<std::uint8_t> edge(1, 4, 1, {0, 0, 255, 255});
    const auto sharper = images::resize(edge, 1, 9, {resize_method::bicubic}).pixels;
    CHECK(sharper.front() == 0);
    CHECK(sharper.back() == 255);
    // Bytes as floats: 255 is 1.
    images::image<float> floats(1, 4, 1);
    images::resize_into(edge, floats.view());
    CHECK(floats.pixels == std::vector<float>{0, 0, 1, 1});
}

TEST_CASE("channels do not mix: 1, 2, 3, 4 and 5 of them, and the bits are the same") {
    for (const auto method :
         {resize_method::nearest, resize_method::bilinear, resize_method::bicubic, resize_method::area})
        for (std::int64_t channels = 2; channels <= 5; ++channels) {
            const auto x = sample(channels);
            for (const auto& [height, width] :
                 {std::pair<std::int64_t, std::int64_t>{3, 4}, {1, 1}, {11, 13}, {5, 2}}) {
                const auto all = images::resize(x, height, width, {method, true});
                for (std::int64_t c = 0; c < channels; ++c) {
                    images::image<float> one(5, 7, 1);
                    for (std::int64_t y = 0; y < 5; ++y)
                        for (std::int64_t z = 0; z < 7; ++z) one.at(y, z) = x.at(y, z, c);
                    const auto alone = images::resize(one, height, width, {method, true});
                    for (std::int64_t y = 0; y < height; ++y)
                        for (std::int64_t z = 0; z < width; ++z) CHECK(all.at(y, z, c) == alone.at(y, z));
                }
            }
        }
}

TEST_CASE("every size: a constant stays constant, and averages keep the mean") {
    for (const auto method :
         {resize_method::nearest, resize_method::bilinear, resize_method::bicubic, resize_method::area})
        for (const bool antialias : {false, true})
            for (std::int64_t size = 1; size <= 41; size += 4) {
                const images::image<std::uint8_t> white(17, 13, 3, std::vector<std::uint8_t>(17 * 13 * 3, 255));
                for (const auto v : images::resize(white, size, 42 - size, {method, antialias}).pixels)
                    REQUIRE(v == 255);
            }
    // 1 x 1009 to 1 x 7: more taps than one sweep takes.
    images::image<float> ramp(1009, 1, 1);
    for (std::size_t i = 0; i < ramp.pixels.size(); ++i) ramp.pixels[i] = static_cast<float>(i);
    const auto few = images::resize(ramp, 7, 1, {resize_method::area}).pixels;
    for (std::size_t i = 0; i < 7; ++i)
        CHECK(few[i] ==
              doctest::Approx((static_cast<double>(i) + 0.5) * 1009 / 7 - 0.5).epsilon(1e-5)); // 145 float additions
}

TEST_CASE("a part, mirrored and normalised, is what the steps one by one give") {
    const auto x = sample<std::uint8_t>(3);
    const images::box part{1, 2, 4, 5};
    const images::channel_statistics statistics{{0.1f, 0.2f, 0.3f}, {0.5f, 0.25f, 2}};
    std::vector<float> slot(6 * 3 * 3 + 1, -7.0f);
    images::model_input_into(images::crop(x, part), std::span<float>(slot).first(54), 6, 3,
                             {.normalize = statistics, .resize = {resize_method::bilinear, true}, .mirror = true});
    CHECK(slot.back() == -7);
    images::image<float> plain(6, 3, 3);
    images::resize_into(images::copy(images::crop(x, part)), plain.view(), {resize_method::bilinear, true});
    for (std::int64_t y = 0; y < 6; ++y)
        for (std::int64_t z = 0; z < 3; ++z)
            for (std::int64_t c = 0; c < 3; ++c) {
                const auto k = static_cast<std::size_t>(c);
                CHECK(slot[static_cast<std::size_t>((y * 3 + z) * 3 + c)] ==
                      doctest::Approx((plain.at(y, 2 - z, c) - statistics.mean[k]) / statistics.deviation[k])
                          .epsilon(1e-5));
            }
}

TEST_CASE("normalisation by a data set and by the image itself") {
    const images::image<std::uint8_t> x(1, 2, 2, {0, 255, 51, 102});
    CHECK(images::normalize(x, {{0.5f, 0.2f}, {0.5f, 0.1f}}).pixels[0] == doctest::Approx(-1));
    CHECK(images::normalize(x, {{0.5f, 0.2f}, {0.5f, 0.1f}}).pixels[1] == doctest::Approx(8));
    // tf.image.per_image_standardization of 1, 2, 3, 4: mean 2.5, deviation sqrt(1.25); of a constant, 1 / sqrt(4).
    const auto own = images::per_image_standardization(images::image<float>(2, 2, 1, {1, 2, 3, 4})).pixels;
    CHECK(own[0] == doctest::Approx(-1.3416408));
    CHECK(own[3] == doctest::Approx(1.3416408));
    const auto same = images::per_image_standardization(images::image<float>(2, 2, 1, {9, 9, 9, 9})).pixels;
    CHECK(same == std::vector<float>{0, 0, 0, 0});
    images::statistics_of_channels all;
    all.add(x);
    all.add(x);
    CHECK(all.result().mean[0] == doctest::Approx(0.1));
    CHECK(all.result().deviation[1] == doctest::Approx(0.3));
}

TEST_CASE("errors of resizing and normalising give the reason") {
    using support::message_of;
    const auto x = sample(3);
    CHECK(message_of<tapegraph::shape_error>([&] { static_cast<void>(images::resize(x, 0, 4)); }) ==
          "resize: an image [0,4,3] has no pixels");
    CHECK(message_of<tapegraph::shape_error>([&] { static_cast<void>(images::resize(x, -1, 4)); }) ==
          "image: impossible extents [-1,4,3]");
    CHECK(message_of<tapegraph::shape_error>([&] {
              static_cast<void>(images::resize(images::image<float>(0, 3, 3), 2, 4));
          }) == "resize: an image [0,3,3] has no pixels");
    images::image<float> grey(2, 2, 1);
    CHECK(message_of<tapegraph::shape_error>([&] { images::resize_into(x, grey.view()); }) ==
          "resize: an image [5,7,3] has other channels than [2,2,1]");
    CHECK(message_of<tapegraph::shape_error>([&] {
              static_cast<void>(images::normalize(x, {{1, 1}, {1, 1}}));
          }) == "normalize: 2 means and 2 deviations for 3 channels");
    CHECK(message_of<tapegraph::argument_error>([&] {
              static_cast<void>(images::normalize(grey, {{1}, {0}}));
          }) == "normalize: the deviation of channel 0 must be positive, got 0");
    std::vector<float> slot(5);
    CHECK(message_of<tapegraph::shape_error>([&] { images::model_input_into(x, std::span<float>(slot), 2, 2); }) ==
          "model_input_into: room for 5 values, an image [2,2,3] has 12");
    CHECK(message_of<tapegraph::argument_error>([&] {
              static_cast<void>(images::statistics_of_channels().result());
          }) == "statistics_of_channels: no images");
    CHECK(message_of<tapegraph::shape_error>([&] { images::image<float>(2, 2, 1, {1}); }) ==
          "image: 1 values for [2,2,1]");
}

} // namespace resize_test
