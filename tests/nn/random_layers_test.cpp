#include <tapegraph/nn/layers/affine_augmentation.hpp>
#include <tapegraph/nn/layers/augmentation.hpp>
#include <tapegraph/nn/layers/noise.hpp>

#include <nn/layer_bench.hpp>

#include <algorithm>
#include <numbers>
#include <set>

namespace random_layers_test {

/// Noise and augmentation: what they do in training against loops, that they do nothing otherwise, and both modes.

using namespace nn_test;
using std::int64_t;

namespace {

/// Mean and variance.
std::pair<double, double> moments_of(const std::vector<double>& v) {
    double mean = 0, variance = 0;
    for (const double x : v) mean += x / static_cast<double>(v.size());
    for (const double x : v) variance += (x - mean) * (x - mean) / static_cast<double>(v.size());
    return {mean, variance};
}

tg::tensor<double> normal(const tg::shape& dims) { return tg::random::normal<double>(dims, {.seed = 3}); }

} // namespace

TEST_CASE("spatial_dropout drops whole channels of a record") {
    layer_bench b;
    const auto line = noise<double>({6, 4, 5}, 1), image = noise<double>({6, 3, 2, 5}, 2);
    const auto check = [](const tg::tensor<double>& x, const tg::tensor<double>& y) {
        const int64_t places = x.size() / 30;
        int dropped = 0;
        for (int64_t n = 0; n < 6; ++n)
            for (int64_t c = 0; c < 5; ++c) {
                const auto at = [&](int64_t p) { return (n * places + p) * 5 + c; };
                const double factor = y.data()[at(0)] == 0 ? 0 : 1 / (1 - 0.4);
                dropped += factor == 0;
                for (int64_t p = 0; p < places; ++p) CHECK(y.data()[at(p)] == x.data()[at(p)] * factor);
            }
        CHECK(dropped > 3); // of 30, each with 0.4: fewer with a probability of 3e-4, and the numbers are fixed
        CHECK(dropped < 22);
    };
    check(line, tg::spatial_dropout1d(b.scope() / "d", line, {.rate = 0.4}));
    check(image, tg::spatial_dropout2d(b.scope() / "d", image, {.rate = 0.4}));
    CHECK_THROWS_WITH_AS(
        tg::spatial_dropout2d(b.scope() / "d", line, {}),
        doctest::Contains("spatial_dropout2d: input must be [batch, height, width, channels], in scope 'd'"),
        tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::spatial_dropout1d(b.scope() / "d", line, {.rate = 1}),
                         doctest::Contains("rate must lie in [0, 1)"), tg::argument_error);
}

TEST_CASE("alpha_dropout, gaussian_noise and gaussian_dropout have their laws") {
    // Of 20,000 numbers a mean deviates by 0.007 s, a variance by 0.01 s^2 (more for alpha_dropout's two humps); five times that.
    const auto x = normal({20000});
    layer_bench b;
    const tg::tensor<double> alpha = tg::alpha_dropout(b.scope() / "a", x, {.rate = 0.3});
    const auto [mean, variance] = moments_of(alpha.to_vector());
    CHECK(std::abs(mean) < 0.035);
    CHECK(std::abs(variance - 1) < 0.06);
    std::vector<double> sorted = alpha.to_vector();
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::abs(static_cast<double>(std::count(sorted.begin(), sorted.end(), sorted[3000])) - 6000) <
          325); // 5 deviations

    const tg::tensor<double> noisy = tg::gaussian_noise(b.scope() / "n", x, {.stddev = 0.5});
    const auto [shift, spread] = moments_of(tg::tensor<double>(noisy - x).to_vector());
    CHECK(std::abs(shift) < 0.0175);
    CHECK(std::abs(spread / 0.25 - 1) < 0.05);
    const tg::tensor<double> scaled = tg::gaussian_dropout(b.scope() / "g", x, {.rate = 0.2});
    const auto [one, quarter] = moments_of(tg::tensor<double>(scaled / x).to_vector());
    CHECK(std::abs(one - 1) < 0.0175);
    CHECK(std::abs(quarter / 0.25 - 1) < 0.05);

    CHECK(same_bits(tg::alpha_dropout(b.scope(false) / "a", x, {.rate = 0.3}), x));
    CHECK(same_bits(tg::gaussian_noise(b.scope(false) / "a", x, {.stddev = 2}), x));
    CHECK(same_bits(tg::gaussian_dropout(b.scope(false) / "a", x, {.rate = 0.3}), x));
    CHECK(same_bits(tg::gaussian_noise(b.scope() / "a", x, {.stddev = 0}), x));
    CHECK_THROWS_WITH_AS(tg::gaussian_noise(b.scope() / "a", x, {.stddev = -1}),
                         doctest::Contains("stddev must not be negative"), tg::argument_error);
}

namespace {

/// x[n] at (row, column), beyond it as the mode says.
double pixel(const tg::tensor<double>& x, int64_t n, int64_t row, int64_t column, int64_t c, tg::fill_mode mode,
             double beyond) {
    const auto inside = [&](int64_t i, int64_t size) -> int64_t {
        switch (mode) {
        case tg::fill_mode::wrap: return ((i % size) + size) % size;
        case tg::fill_mode::nearest: return std::clamp<int64_t>(i, 0, size - 1);
        case tg::fill_mode::reflect: {
            const int64_t folded = ((i % (2 * size)) + 2 * size) % (2 * size);
            return folded < size ? folded : 2 * size - 1 - folded;
        }
        default: return i >= 0 && i < size ? i : -1;
        }
    };
    const int64_t r = inside(row, x.shape()[1].value), k = inside(column, x.shape()[2].value);
    return r < 0 || k < 0 ? beyond : x(n, r, k, c);
}

/// y, at every place, is x at f(row, column), pairs counted from the centre, between four pixels.
template <class F>
double sampling_error(const tg::tensor<double>& x, const tg::tensor<double>& y, tg::fill_mode mode, double beyond,
                      const F& f) {
    const int64_t height = x.shape()[1].value, width = x.shape()[2].value;
    const double middle = static_cast<double>(height - 1) / 2, centre = static_cast<double>(width - 1) / 2;
    double largest = 0;
    for (int64_t n = 0; n < x.shape()[0].value; ++n)
        for (int64_t i = 0; i < height; ++i)
            for (int64_t j = 0; j < width; ++j)
                for (int64_t c = 0; c < x.shape()[3].value; ++c) {
                    const auto [r, k] = f(static_cast<double>(i) - middle, static_cast<double>(j) - centre);
                    const double row = r + middle, column = k + centre;
                    const double top = std::floor(row), left = std::floor(column);
                    double value = 0;
                    for (const int down : {0, 1})
                        for (const int along : {0, 1})
                            value += (down == 1 ? row - top : top + 1 - row) *
                                     (along == 1 ? column - left : left + 1 - column) *
                                     pixel(x, n, static_cast<int64_t>(top) + down, static_cast<int64_t>(left) + along,
                                           c, mode, beyond);
                    largest = std::max(largest, std::abs(value - y(n, i, j, c)));
                }
    return largest;
}

using pair = std::pair<double, double>;
/// Places carry a few epsilons of ten, and pixels differ by two.
constexpr double tolerance = 1e-13;

} // namespace

TEST_CASE("translation, rotation and zoom sample at the documented positions") {
    layer_bench b;
    const auto x = noise<double>({2, 5, 6, 2}, 1);
    for (const tg::fill_mode mode :
         {tg::fill_mode::reflect, tg::fill_mode::wrap, tg::fill_mode::nearest, tg::fill_mode::constant}) {
        CAPTURE(static_cast<int>(mode));
        // Ranges of one number: 1.5 rows down and 1.8 columns to the left; also further than the image is long.
        for (const double far : {0.3, -1.7}) {
            const tg::tensor<double> moved = tg::random_translation(
                b.scope() / "t", x,
                {.height_factor = {far, far}, .width_factor = {-0.3, -0.3}, .fill_mode = mode, .fill_value = 7});
            CHECK(sampling_error(x, moved, mode, 7, [&](double r, double k) {
                      return pair{r - 5 * far, k + 1.8};
                  }) < tolerance);
        }
        const tg::tensor<double> turned =
            tg::random_rotation(b.scope() / "r", x, {.factor = {0.1, 0.1}, .fill_mode = mode, .fill_value = -2});
        const double turn = 0.2 * std::numbers::pi;
        CHECK(sampling_error(x, turned, mode, -2, [&](double r, double k) {
                  return pair{std::cos(turn) * r + std::sin(turn) * k, std::cos(turn) * k - std::sin(turn) * r};
              }) < tolerance);
        const tg::tensor<double> zoomed = tg::random_zoom(
            b.scope() / "z", x,
            {.height_factor = {0.7, 0.7}, .width_factor = {-0.4, -0.4}, .keep_ratio = false, .fill_mode = mode});
        CHECK(sampling_error(x, zoomed, mode, 0, [](double r, double k) {
                  return pair{1.7 * r, 0.6 * k};
              }) < tolerance);
    }
    // A quarter turn counter-clockwise: what stood on the right stands at the top.
    const auto square = noise<double>({1, 4, 4, 1}, 2);
    const tg::tensor<double> quarter = tg::random_rotation(b.scope() / "r", square, {.factor = {0.25, 0.25}});
    for (int64_t i = 0; i < 4; ++i)
        for (int64_t j = 0; j < 4; ++j) CHECK(std::abs(quarter(0, i, j, 0) - square(0, j, 3 - i, 0)) < tolerance);
    CHECK(same_bits(tg::random_rotation(b.scope(false) / "r", x, {.factor = 0.5}), x));
    CHECK_THROWS_WITH_AS(tg::random_zoom(b.scope() / "z", x, {.height_factor = {-1, 0}}),
                         doctest::Contains("random_zoom: factors must lie above -1"), tg::argument_error);
    CHECK_THROWS_WITH_AS(tg::random_rotation(b.scope() / "z", x, {.factor = {0.5, 0.25}}),
                         doctest::Contains("a factor must be finite"), tg::argument_error);
}

TEST_CASE("flips and crops are drawn for each record") {
    layer_bench b;
    const auto x = noise<double>({60, 3, 4, 2}, 1);
    const auto same_record = [&](const tg::tensor<double>& y, int64_t n, const auto& source) {
        for (int64_t i = 0; i < y.shape()[1].value; ++i)
            for (int64_t j = 0; j < y.shape()[2].value; ++j) {
                const auto [r, k] = source(i, j);
                for (int64_t c = 0; c < 2; ++c)
                    if (y(n, i, j, c) != x(n, r, k, c)) return false;
            }
        return true;
    };
    using places = std::pair<int64_t, int64_t>;
    const auto kinds = [&](tg::flip_mode mode) {
        const tg::tensor<double> y = tg::random_flip(b.scope() / "f", x, {.mode = mode});
        std::set<int> seen;
        for (int64_t n = 0; n < 60; ++n) {
            int found = -1;
            for (int kind = 0; kind < 4; ++kind)
                if (same_record(y, n, [&](int64_t i, int64_t j) {
                        return places{(kind & 1) != 0 ? 2 - i : i, (kind & 2) != 0 ? 3 - j : j};
                    }))
                    found = kind;
            seen.insert(found);
        }
        return seen;
    };
    CHECK(kinds(tg::flip_mode::horizontal_and_vertical) == std::set<int>{0, 1, 2, 3});
    CHECK(kinds(tg::flip_mode::vertical) == std::set<int>{0, 1});
    CHECK(kinds(tg::flip_mode::horizontal) == std::set<int>{0, 2});

    const tg::tensor<double> cropped = tg::random_crop(b.scope() / "c", x, {.height = 2, .width = 2});
    std::set<places> corners;
    for (int64_t n = 0; n < 60; ++n) {
        places found{-1, -1};
        for (int64_t top = 0; top <= 1; ++top)
            for (int64_t left = 0; left <= 2; ++left)
                if (same_record(cropped, n, [&](int64_t i, int64_t j) { return places{i + top, j + left}; }))
                    found = {top, left};
        corners.insert(found);
    }
    CHECK(corners.size() == 6); // each of them, and nothing else
    CHECK(corners.begin()->first == 0);
    CHECK(same_bits(tg::random_crop(b.scope(false) / "c", x, {.height = 3, .width = 2}),
                    tg::eval(tg::slice(x, {tg::all, tg::all, {1, 3}}))));
    CHECK_THROWS_WITH_AS(tg::random_crop(b.scope() / "c", x, {.height = 4, .width = 2}),
                         doctest::Contains("random_crop: height and width must be positive"), tg::argument_error);
}

TEST_CASE("brightness and contrast") {
    layer_bench b;
    const auto x = noise<double>({2, 3, 4, 2}, 1);
    const tg::tensor<double> bright =
        tg::random_brightness(b.scope() / "b", x, {.factor = {0.2, 0.2}, .value_range = {-1, 1}});
    const tg::tensor<double> stark =
        tg::random_contrast(b.scope() / "c", x, {.factor = {0.5, 0.5}, .value_range = {-1, 1}});
    for (int64_t n = 0; n < 2; ++n)
        for (int64_t c = 0; c < 2; ++c) {
            double mean = 0;
            for (int64_t p = 0; p < 12; ++p) mean += x(n, p / 4, p % 4, c) / 12;
            for (int64_t p = 0; p < 12; ++p) {
                const double v = x(n, p / 4, p % 4, c);
                CHECK(std::abs(bright(n, p / 4, p % 4, c) - std::clamp(v + 0.4, -1., 1.)) < tolerance);
                CHECK(std::abs(stark(n, p / 4, p % 4, c) - std::clamp(1.5 * (v - mean) + mean, -1., 1.)) < tolerance);
            }
        }
    const tg::tensor<double> drawn =
        tg::random_brightness(b.scope() / "b", x, {.factor = 0.05, .value_range = {-2, 2}});
    const double first = drawn(0, 0, 0, 0) - x(0, 0, 0, 0), second = drawn(1, 0, 0, 0) - x(1, 0, 0, 0);
    CHECK(std::abs(first) <= 0.2);
    CHECK(std::abs(first - second) > 1e-6); // each record its own
}

namespace {

struct augmented {
    constexpr auto operator()(auto scope, auto x) const { // [batch, 6, 6, 2]
        auto h = tg::conv2d(scope / "conv", x, {.filters = 2, .padding = tg::padding::same()});
        h = tg::random_flip(scope / "flip", h);
        h = tg::random_translation(scope / "move", h, {.height_factor = 0.2, .width_factor = 0.1});
        h = tg::random_rotation(scope / "turn", h, {.factor = 0.1, .fill_mode = tg::fill_mode::constant});
        h = tg::random_zoom(scope / "zoom", h, {.height_factor = 0.2, .fill_mode = tg::fill_mode::wrap});
        h = tg::random_crop(scope / "crop", h, {.height = 5, .width = 4});
        h = tg::random_contrast(scope / "contrast", h, {.factor = 0.3, .value_range = {-2, 2}});
        h = tg::random_brightness(scope / "light", h, {.factor = 0.1, .value_range = {-2, 2}});
        h = tg::spatial_dropout2d(scope / "channels", h, {.rate = 0.2});
        h = tg::gaussian_noise(scope / "noise", tg::alpha_dropout(scope / "alpha", h, {.rate = 0.1}), {.stddev = 0.1});
        return tg::dense(scope / "score", tg::flatten(tg::gaussian_dropout(scope / "scale", h, {.rate = 0.1})),
                         {.units = 1});
    }
};

template <class Mode>
auto make() {
    return tg::compile<Mode>(augmented{}, tg::spec<double, tg::dyn, 6, 6, 2>{}, tg::mean_squared_error{},
                             tg::sgd{.learning_rate = 0.05}, {.seed = 9});
}

} // namespace

TEST_CASE("noise and augmentation: both modes draw and train alike") {
    auto graph = make<tg::graph>();
    auto eager = make<tg::eager>();
    const std::string summary = graph.summary();
    CAPTURE(summary);
    CHECK(summary.find("crop (random_crop)") != std::string::npos);
    train_alike(graph, eager, {4, 3, 4}, [](int size, std::uint64_t seed) {
        return std::pair{noise<double>({size, 6, 6, 2}, seed), noise<double>({size, 1}, seed)};
    });
    // A seed gives its numbers again, another one others.
    auto again = make<tg::eager>();
    const auto x = noise<double>({4, 6, 6, 2}, 1), y = noise<double>({4, 1}, 2);
    const double loss = again.train_on_batch(x, y).loss;
    CHECK(make<tg::eager>().train_on_batch(x, y).loss == loss);
    CHECK(again.train_on_batch(x, y).loss != loss);
}

} // namespace random_layers_test
