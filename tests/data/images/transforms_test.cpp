#include <tapegraph/data/images.hpp>

#include <doctest/doctest.h>

#include <support/temporary_folder.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace image_transforms_test {

namespace images = tapegraph::data::images;
using images::affine_options;
using images::box;
using images::image;
using support::message_of;
using tapegraph::fill_mode;
using tapegraph::data::counter_random;

namespace {

using bytes = std::vector<std::uint8_t>;

image<std::uint8_t> row(const bytes& values) { return {1, static_cast<std::int64_t>(values.size()), 1, values}; }
bool inside(const box& b, std::int64_t height, std::int64_t width) {
    return b.top >= 0 && b.left >= 0 && b.height > 0 && b.width > 0 && b.top + b.height <= height &&
           b.left + b.width <= width;
}

} // namespace

TEST_CASE("crops are views of what they are cut from") {
    image<std::uint8_t> x(3, 4, 2);
    for (std::size_t i = 0; i < x.pixels.size(); ++i) x.pixels[i] = static_cast<std::uint8_t>(i);
    const auto part = images::crop(x, {1, 2, 2, 1});
    CHECK(part.pixels == x.pixels.data() + 12);
    CHECK(images::copy(part).pixels == bytes{12, 13, 20, 21});
    CHECK(images::copy(images::center_crop(x, 1, 1)).pixels == bytes{10, 11}); // row 1, column 1
    CHECK(images::copy(images::crop(part, {1, 0, 1, 1})).pixels == bytes{20, 21});
    CHECK(images::crop(x, {3, 4, 0, 0}).size() == 0);
    CHECK(images::crop_or_pad(x, 1, 6).pixels == bytes{0, 0, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0});
    CHECK(images::resize_with_pad(row({7, 7}), 3, 4).pixels == bytes{7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0});
    CHECK(message_of<tapegraph::shape_error>([&] {
              static_cast<void>(images::crop(x, {2, 0, 2, 1}));
          }) == "crop: rows [2, 4), columns [0, 1) do not lie in an image [3,4,2]");
    CHECK(message_of<tapegraph::shape_error>([&] { static_cast<void>(images::center_crop(x, 1, 5)); }) ==
          "center_crop: 1x5 (height x width) of an image of 3x4");
}

TEST_CASE("random crops reach every place, and a record's number decides which") {
    std::vector<int> found(3 * 3);
    for (std::uint64_t record = 0; record < 400; ++record) {
        counter_random random(5, record), again(5, record);
        const box b = images::random_box(5, 6, 3, 4, random);
        REQUIRE(inside(b, 5, 6));
        CHECK(b == images::random_box(5, 6, 3, 4, again));
        ++found[static_cast<std::size_t>(b.top * 3 + b.left)];
    }
    for (const int n : found) CHECK(n > 20); // 44 on average, deviation 6.3
}

TEST_CASE("random resized boxes have areas and ratios within the options") {
    int full_height = 0;
    for (std::uint64_t record = 0; record < 500; ++record) {
        counter_random random(1, record);
        const box b = images::random_resized_box(375, 500, random);
        REQUIRE(inside(b, 375, 500));
        const double area = static_cast<double>(b.height * b.width) / (375 * 500);
        const double ratio = static_cast<double>(b.width) / static_cast<double>(b.height);
        CHECK(area > 0.079); // whole pixels
        CHECK(ratio > 0.74);
        CHECK(ratio < 1.35);
        full_height += b.height == 375;
    }
    CHECK(full_height < 100);
    // No rectangle of that ratio has this area: the middle, as torchvision falls back.
    counter_random random(1, 1);
    CHECK(images::random_resized_box(10, 1000, random, {.least_scale = 0.9, .greatest_scale = 1}) ==
          box{0, 493, 10, 13});
    CHECK(images::random_resized_box(1000, 10, random, {.least_scale = 0.9, .greatest_scale = 1}) ==
          box{493, 0, 13, 10});
    CHECK(images::random_resized_box(1, 1, random) == box{0, 0, 1, 1});
    CHECK(message_of<tapegraph::argument_error>([&] {
              static_cast<void>(images::random_resized_box(4, 4, random, {.least_ratio = 2, .greatest_ratio = 1}));
          }) == "random_resized_crop: scale and ratio must be positive, each lower end not above the upper one");
    const image<std::uint8_t> x(9, 7, 3);
    CHECK(images::random_resized_crop(x, 4, 5, random).pixels.size() == 60);
}

TEST_CASE("flips and quarter turns move pixels and change none") {
    const image<std::uint8_t> x(2, 3, 1, {1, 2, 3, 4, 5, 6});
    CHECK(images::flip_left_right(x).pixels == bytes{3, 2, 1, 6, 5, 4});
    CHECK(images::flip_up_down(x).pixels == bytes{4, 5, 6, 1, 2, 3});
    CHECK(images::transpose(x).pixels == bytes{1, 4, 2, 5, 3, 6});
    CHECK(images::rotate_quarters(x, 1).pixels == bytes{3, 6, 2, 5, 1, 4}); // numpy.rot90
    CHECK(images::rotate_quarters(x, 2).pixels == bytes{6, 5, 4, 3, 2, 1});
    CHECK(images::rotate_quarters(x, -1).pixels == bytes{4, 1, 5, 2, 6, 3});
    CHECK(images::rotate_quarters(x, 4) == x);
    int flipped = 0;
    for (std::uint64_t record = 0; record < 200; ++record) {
        counter_random random(2, record);
        const auto y = images::random_flip_left_right(x, random);
        CHECK((y == x || y == images::flip_left_right(x)));
        flipped += y != x;
    }
    CHECK(flipped > 70);
    CHECK(flipped < 130);
}

TEST_CASE("the four values beyond the edges of an image") {
    const auto x = row({10, 20, 30, 40});
    const auto shifted = [&](double right, fill_mode mode) {
        return images::shift(x, 0, right, {.fill_mode = mode, .fill_value = 7}).pixels;
    };
    CHECK(shifted(2, fill_mode::nearest) == bytes{10, 10, 10, 20});
    CHECK(shifted(2, fill_mode::constant) == bytes{7, 7, 10, 20});
    CHECK(shifted(2, fill_mode::reflect) == bytes{20, 10, 10, 20});
    CHECK(shifted(2, fill_mode::wrap) == bytes{30, 40, 10, 20});
    CHECK(shifted(-7, fill_mode::reflect) == bytes{10, 10, 20, 30}); // 40 30 20 10 | 10 20 30 ...
    CHECK(shifted(-9, fill_mode::wrap) == bytes{20, 30, 40, 10});
    CHECK(shifted(0.5, fill_mode::nearest) == bytes{10, 15, 25, 35}); // between two pixels
    CHECK(images::shift(x, 0, 0.4, {.nearest = true}).pixels == x.pixels);
    CHECK(images::shift(image<std::uint8_t>(3, 1, 1, {1, 2, 3}), 1, 0, {fill_mode::constant}).pixels == bytes{0, 1, 2});
}

TEST_CASE("turns, zooms and what they are together") {
    image<float> x(5, 5, 1);
    for (std::size_t i = 0; i < 25; ++i) x.pixels[i] = static_cast<float>(i);
    const auto turned = images::rotate(x, 0.25), quarter = images::rotate_quarters(x, 1);
    for (std::size_t i = 0; i < 25; ++i) CHECK(turned.pixels[i] == doctest::Approx(quarter.pixels[i]));
    // Twice as much of it: every second pixel, from the middle on.
    const auto smaller = images::zoom(x, 1, 1, {fill_mode::constant, -1});
    CHECK(smaller.at(2, 2) == 12);
    CHECK(smaller.at(1, 2) == 2);
    CHECK(smaller.at(0, 2) == -1);
    // A turn and a shift in one sampling: what the two do one after the other, where no border is met.
    const auto both = images::affine(x, images::translation(1, 0).after(images::rotation(0.25)));
    const auto steps = images::shift(images::rotate(x, 0.25), 1, 0);
    for (std::int64_t y = 1; y < 5; ++y)
        for (std::int64_t z = 0; z < 5; ++z) CHECK(both.at(y, z) == doctest::Approx(steps.at(y, z)));
    counter_random random(3, 0);
    const auto drawn =
        images::random_affine(x, {.turn = 0.1, .height_shift = 0.2, .width_zoom = 0.3, .keep_ratio = false}, random);
    CHECK(drawn.pixels != x.pixels);
    CHECK(images::random_affine(x, {}, random).pixels == x.pixels);
    CHECK(message_of<tapegraph::argument_error>([&] {
              static_cast<void>(images::random_affine(x, {.height_zoom = 1}, random));
          }) == "random_affine: a zoom must lie below 1");
    CHECK(message_of<tapegraph::argument_error>([&] { static_cast<void>(images::rotate(x, NAN)); }) ==
          "affine: numbers must be finite and below a million");
}

TEST_CASE("colours") {
    const image<std::uint8_t> x(2, 2, 3, {200, 30, 90, 10, 240, 120, 70, 70, 70, 5, 80, 250});
    CHECK(images::adjust_brightness(x, 0.2).pixels == bytes{251, 81, 141, 61, 255, 171, 121, 121, 121, 56, 131, 255});
    CHECK(images::adjust_brightness(x, -0.2).pixels[4] == 189);
    // Python's colorsys: hue + 1/4, saturation * 1.5.
    CHECK(images::adjust_hue(x, 0.25).pixels == bytes{175, 200, 30, 10, 15, 240, 70, 70, 70, 250, 5, 203}); // 202.5
    CHECK(images::adjust_hue(x, -0.75) == images::adjust_hue(x, 0.25));
    CHECK(images::adjust_hue(x, 0) == x);
    CHECK(images::adjust_saturation(x, 1.5).pixels == bytes{200, 0, 71, 0, 240, 115, 70, 70, 70, 0, 77, 250});
    CHECK(images::adjust_saturation(x, 0).pixels[0] == 200);
    CHECK(images::adjust_saturation(x, 0).pixels[1] == 200);
    // Means 71.25, 105, 132.5.
    const auto flat = images::adjust_contrast(x, 0.5).pixels;
    CHECK(flat[0] == 136);
    CHECK(flat[4] == 173);
    CHECK(images::adjust_contrast(x, 0).pixels[11] == 133);
    CHECK(images::rgb_to_grayscale(x).pixels == bytes{88, 158, 70, 77});
    CHECK(images::grayscale_to_rgb(images::rgb_to_grayscale(x)).pixels[2] == 88);
    CHECK(images::invert(x).pixels[0] == 55);
    CHECK(images::adjust_gamma(image<float>(1, 2, 1, {0.25f, 1}), 0.5, 2).pixels == std::vector<float>{1, 2});
    CHECK(images::clip_colours(image<float>(1, 2, 1, {-0.25f, 1.5f})).pixels == std::vector<float>{0, 1});
    CHECK(images::to_bytes(images::to_float(x)) == x);

    counter_random first(4, 9), second(4, 9);
    const images::colour_jitter_options all{0.2, 0.5, 1.5, 0.5, 1.5, 0.1};
    CHECK(images::random_colour_jitter(x, all, first) == images::random_colour_jitter(x, all, second));
    CHECK(images::random_colour_jitter(x, {}, first) == x);
    counter_random drawn(7, 1), again(7, 1);
    CHECK(images::random_brightness(x, 0.5, drawn) == images::adjust_brightness(x, again.uniform(-0.5, 0.5)));
    CHECK(images::random_contrast(x, 0.2, 0.4, drawn) == images::adjust_contrast(x, again.uniform(0.2, 0.4)));
    CHECK(images::random_saturation(x, 0.1, 0.3, drawn) == images::adjust_saturation(x, again.uniform(0.1, 0.3)));
    CHECK(images::random_hue(x, 0.4, drawn) == images::adjust_hue(x, again.uniform(-0.4, 0.4)));
    CHECK(images::random_hue(x, 0.4, drawn) != x);
    const image<float> grey(1, 1, 1);
    CHECK(message_of<tapegraph::shape_error>([&] { static_cast<void>(images::adjust_hue(grey, 0.1)); }) ==
          "adjust_hue: an image [1,1,1] is not red, green and blue");
    CHECK(message_of<tapegraph::argument_error>([&] {
              static_cast<void>(images::random_colour_jitter(x, {.hue = 0.6}, first));
          }) == "random_colour_jitter: hue must lie in [0, 0.5], got 0.6");
}

TEST_CASE("mix-up takes shares of neighbours, labels too") {
    const std::vector<float> own{1, 2, 3, 10, 20, 30, 100, 200, 300};
    std::vector<float> values = own, labels{1, 0, 0, 0, 1, 0, 0, 0, 1};
    counter_random random(8, 0);
    const auto shares = images::mix_up(values, labels, 3, 0.4, random);
    for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t before = (i + 2) % 3;
        CHECK(shares[i] >= 0);
        CHECK(shares[i] <= 1);
        for (std::size_t k = 0; k < 3; ++k)
            CHECK(values[i * 3 + k] ==
                  doctest::Approx(shares[i] * own[i * 3 + k] + (1 - shares[i]) * own[before * 3 + k]));
        CHECK(labels[i * 3 + i] == doctest::Approx(shares[i]));
        CHECK(labels[i * 3 + before] == doctest::Approx(1 - shares[i]));
    }
    // Beta(a, a) has mean 1/2 and variance 1 / (4 (2 a + 1)); 20,000 draws.
    for (const double alpha : {0.2, 1.0, 3.0}) {
        double sum = 0, squares = 0;
        for (int i = 0; i < 20000; ++i) {
            const double s = images::detail::beta_draw(alpha, random);
            sum += s;
            squares += (s - 0.5) * (s - 0.5);
        }
        CHECK(sum / 20000 == doctest::Approx(0.5).epsilon(0.02)); // four deviations of the mean
        CHECK(squares / 20000 == doctest::Approx(1 / (4 * (2 * alpha + 1))).epsilon(0.05));
    }
    const double tiny = images::detail::beta_draw(1e-4, random); // its gammas underflow
    CHECK((tiny >= 0 && tiny <= 1));
    CHECK(message_of<tapegraph::shape_error>([&] { images::mix_up(values, labels, 2, 1, random); }) ==
          "mix_up: 9 values and 9 of labels are not 2 records");
    CHECK(message_of<tapegraph::argument_error>([&] { images::mix_up(values, labels, 3, 0, random); }) ==
          "mix_up: alpha must be positive and finite, got 0");
    CHECK(images::mix_up({}, {}, 0, 1, random).empty());
}

TEST_CASE("CutMix puts a rectangle of the neighbour where it was") {
    constexpr std::size_t count = 40, size = 6 * 7 * 2;
    std::vector<float> values(count * size), labels(count * count);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const auto own = values;
    for (std::size_t i = 0; i < count; ++i) labels[i * count + i] = 1;
    counter_random random(9, 3);
    const auto shares = images::cut_mix(values, labels, count, 6, 7, 1, random);
    bool some = false;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t before = (i + count - 1) % count;
        std::size_t kept = 0;
        for (std::size_t k = 0; k < size; ++k) {
            const bool mine = values[i * size + k] == own[i * size + k];
            CHECK((mine || values[i * size + k] == own[before * size + k]));
            kept += mine;
        }
        CHECK(shares[i] == doctest::Approx(static_cast<double>(kept) / size));
        CHECK(labels[i * count + i] == doctest::Approx(shares[i]));
        some = some || (kept > 0 && kept < size);
    }
    CHECK(some);
    CHECK(message_of<tapegraph::shape_error>([&] { images::cut_mix(values, labels, count, 6, 5, 1, random); }) ==
          "cut_mix: records of 84 values are not images of 6x5");
}

} // namespace image_transforms_test
