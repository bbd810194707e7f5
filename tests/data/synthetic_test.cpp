#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/synthetic.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace synthetic_test {

using tapegraph::argument_error;
using namespace tapegraph;

TEST_CASE("textured blobs: balanced, in range, a function of seed and record alone") {
    const auto set = data::textured_blobs(20, 3);
    CHECK(set.images.size() == 20u * 50 * 50 * 3);
    CHECK(std::count(set.labels.begin(), set.labels.end(), 1) == 10);
    for (const float v : set.images) REQUIRE((v >= 0 && v <= 1));
    const auto fewer = data::textured_blobs(7, 3);
    CHECK(std::equal(fewer.images.begin(), fewer.images.end(), set.images.begin()));
    CHECK(data::textured_blobs(7, 4).images != fewer.images);
    set_thread_count(1);
    CHECK(data::textured_blobs(7, 3).images == fewer.images);
    set_thread_count(0);
    CHECK(data::textured_blobs(3, 1, {.height = 9, .width = 17}).images.size() == 3u * 9 * 17 * 3);
    CHECK(data::textured_blobs(0, 1).images.empty());
    CHECK_THROWS_AS(data::textured_blobs(-1, 1), argument_error);
    CHECK_THROWS_AS(data::textured_blobs(1, 1, {.height = 0}), argument_error);
}

TEST_CASE("textured blobs: colour says nothing about the class, the direction of change everything") {
    constexpr std::size_t n = 400, side = 50;
    const auto set = data::textured_blobs(n, 11);
    double mean[2] = {0, 0}, spread = 0;
    std::size_t by_direction = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const float* image = set.images.data() + i * side * side * 3;
        double sum = 0, down = 0, across = 0;
        for (std::size_t y = 1; y < side; ++y)
            for (std::size_t x = 1; x < side; ++x)
                for (std::size_t c = 0; c < 3; ++c) {
                    const float here = image[(y * side + x) * 3 + c];
                    sum += here;
                    down += std::pow(here - image[((y - 1) * side + x) * 3 + c], 2);
                    across += std::pow(here - image[(y * side + x - 1) * 3 + c], 2);
                }
        sum /= 49.0 * 49 * 3;
        mean[set.labels[i]] += sum / (n / 2);
        spread += (sum - 0.5) * (sum - 0.5) / n;
        by_direction += (across > down) == (set.labels[i] == 1);
    }
    CHECK(std::abs(mean[0] - mean[1]) < 4 * std::sqrt(spread * 4 / n)); // four standard errors of the difference
    CHECK(by_direction >= n * 97 / 100);
}

TEST_CASE("moons and clouds") {
    const auto moons = data::two_moons(101, 1, 0);
    CHECK(moons.points.size() == 202);
    for (std::size_t i = 0; i < 101; ++i) {
        const double x = moons.points[2 * i], y = moons.points[2 * i + 1];
        CHECK(moons.labels[i] == static_cast<int>(i % 2));
        // Without noise a point lies on its half circle, to float rounding.
        const double radius = moons.labels[i] == 0 ? std::hypot(x, y) : std::hypot(x - 1, y - 0.5);
        REQUIRE(std::abs(radius - 1) < 1e-6);
        REQUIRE((moons.labels[i] == 0 ? y >= -1e-6 : y <= 0.5 + 1e-6));
    }
    CHECK(data::two_moons(5, 1).points == data::two_moons(5, 1).points);
    CHECK(data::two_moons(5, 1).points != data::two_moons(5, 2).points);
    const auto clouds = data::gaussian_clouds(30, 1, 3, 5, 0);
    CHECK(clouds.points.size() == 150);
    for (std::size_t i = 0; i < 150 - 15; ++i) REQUIRE(clouds.points[i] == clouds.points[i + 15]);
    CHECK_THROWS_AS(data::two_moons(-1, 1), argument_error);
    CHECK_THROWS_AS(data::gaussian_clouds(1, 1, 0), argument_error);
}

TEST_CASE("images become a data set") {
    const auto set = data::make_dataset<float>(data::textured_blobs(6, 1), {1});
    CHECK(set.size() == 6);
    CHECK(set.columns()[0].shape == std::vector<std::int64_t>{50, 50, 3});
    CHECK(set.columns()[1].type == dtype::f32);
    CHECK(set.columns()[1].shape == std::vector<std::int64_t>{1});
    data::loader batches(set.batch(4));
    batches.begin_epoch(0);
    CHECK(batches.next()->values<float>("label")[1] == 1.0f);
}

} // namespace synthetic_test
