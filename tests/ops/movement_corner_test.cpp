#include <support/messages.hpp>

#include <tapegraph/compile/function.hpp>
#include <tapegraph/eager/gradient_tape.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace movement_corner_test {

/// Shapes and movement: literals from NumPy, what is refused and with which words, integers, threads.

namespace tg = tapegraph;
using tg::tensor;
using vector = std::vector<double>;
using support::message_of;

namespace {

const tensor<double> line{1, 2, 3};
const tensor<double> plane{{1, 2, 3}, {4, 5, 6}};

} // namespace

// numpy 1.24: np.pad([1., 2, 3], (4, 5), mode=...).tolist(), and of an axis of one element.
TEST_CASE("padding modes as NumPy has them, longer than the axis, too") {
    const auto padded = [](tg::pad_mode mode) { return pad(line, {{4, 5}}, {.mode = mode}).to_vector(); };
    CHECK(padded(tg::pad_mode::reflect) == vector{1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2});
    CHECK(padded(tg::pad_mode::symmetric) == vector{3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2});
    CHECK(padded(tg::pad_mode::edge) == vector{1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3});
    CHECK(padded(tg::pad_mode::wrap) == vector{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2});
    CHECK(pad(line, {{1, 2}}, {.value = -1}).to_vector() == vector{-1, 1, 2, 3, -1, -1});
    const tensor<double> one{5};
    for (auto mode : {tg::pad_mode::reflect, tg::pad_mode::symmetric, tg::pad_mode::edge, tg::pad_mode::wrap})
        CHECK(pad(one, {{2, 1}}, {.mode = mode}).to_vector() == vector{5, 5, 5, 5});
    // np.pad([[1., 2, 3], [4, 5, 6]], ((1, 1), (2, 1)), 'reflect')
    CHECK(pad(plane, {{1, 1}, {2, 1}}, {.mode = tg::pad_mode::reflect}).to_vector() ==
          vector{6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2});
    CHECK(message_of([] {
              pad(tg::zeros<double>({0}), {{1, 0}}, {.mode = tg::pad_mode::edge});
          }) == "pad: an empty axis has nothing to repeat: f64[0] to [1]");
}

// numpy 1.24: a = np.arange(24.).reshape(2, 3, 4); a[tuple(np.moveaxis(i, -1, 0))] for i = [[0, 2], [1, 1]] and [[1, 0, 3], [0, 2, 2]].
TEST_CASE("gather_nd and scatter_nd") {
    const auto a = reshape(tg::arange<double>(24), {2, 3, 4});
    const tensor<std::int64_t> rows{{0, 2}, {1, 1}};
    const tensor<std::int32_t> elements{{1, 0, 3}, {0, 2, 2}};
    CHECK(gather_nd(a, rows).to_vector() == vector{8, 9, 10, 11, 16, 17, 18, 19});
    CHECK(gather_nd(a, elements).to_vector() == vector{15, 10});
    CHECK(gather_nd(a, tg::full<std::int32_t>({1, 1}, 1)).shape() == tg::shape{1, 3, 4});
    const tensor<std::int32_t> twice{{1, 0}, {0, 2}, {1, 0}};
    CHECK(scatter_nd(line, twice, {2, 3}).to_vector() == vector{0, 0, 2, 4, 0, 0});
}

TEST_CASE("axes, parts and constants: small literals") {
    CHECK(repeat(line, 2).to_vector() == vector{1, 1, 2, 2, 3, 3});
    CHECK(tile(plane, {2}).to_vector() == vector{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
    CHECK(roll(line, 1).to_vector() == vector{3, 1, 2});
    CHECK(roll(line, -4).to_vector() == vector{2, 3, 1});
    CHECK(tensor<double>(tril(plane)).to_vector() == vector{1, 0, 0, 4, 5, 0});
    CHECK(tensor<double>(triu(plane, 1)).to_vector() == vector{0, 2, 3, 0, 0, 6});
    CHECK(diag_part(plane).to_vector() == vector{1, 5});
    CHECK(diag_part(plane, 2).to_vector() == vector{3});
    CHECK(diag_part(plane, -1).to_vector() == vector{4});
    CHECK(diag_part(plane, 3).size() == 0);
    CHECK(tg::eye<float>(line, 2, 3, 1).to_vector() == std::vector<float>{0, 1, 0, 0, 0, 1});
    CHECK(tg::linspace<double>(line, 0, 1, 5).to_vector() == vector{0, 0.25, 0.5, 0.75, 1});
    CHECK(tg::linspace<float>(line, 0, 0.7, 8).to_vector().back() == 0.7f); // the end itself, not a sum of steps
    CHECK(tg::linspace<double>(line, 2, 3, 1).to_vector() == vector{2});
    CHECK(tg::linspace<double>(line, 2, 3, 0).size() == 0);
    CHECK(tg::arange<std::int64_t>(line, 3, 5, -2).to_vector() == std::vector<std::int64_t>{5, 3, 1});
    CHECK(tensor<bool>(tg::sequence_mask(tensor<std::int32_t>{0, 2}, 3)).to_vector() ==
          std::vector<bool>{false, false, false, true, true, false});
    CHECK(tensor<std::uint8_t>(full_like(tensor<std::uint8_t>{1, 2}, 200)).to_vector() ==
          std::vector<std::uint8_t>{200, 200});
    CHECK(tg::concat({tensor<bool>{true}, tensor<bool>{false, true}}).to_vector() ==
          std::vector<bool>{true, false, true});
    CHECK(tg::one_hot<std::int32_t>(tensor<std::int32_t>{1, 0}, 2, {.on = 7, .off = -1, .axis = 0}).to_vector() ==
          std::vector<std::int32_t>{-1, 7, 7, -1});
    CHECK(squeeze(tg::zeros<double>({1, 0, 1})).shape() == tg::shape{0});
    CHECK(take(line, -1).rank() == 0);
}

TEST_CASE("shapes that are refused") {
    const auto none = tg::zeros<double>({0, 3});
    CHECK(message_of([&] { reshape(plane, {-1, -1}); }) == "reshape: -1 stands for one extent only: f64[2, 3]");
    CHECK(message_of([&] {
              reshape(none, {0, -1});
          }) == "reshape: beside an extent of 0, -1 can be anything: f64[0, 3]");
    CHECK(message_of([&] { reshape(plane, {-2, -3}); }) == "reshape: an extent is negative: f64[2, 3]");
    CHECK(message_of([&] { reshape(plane, {4, -1}); }) == "reshape: number of elements differs: f64[2, 3] to [4, 1]");
    CHECK(reshape(none, {-1, 3}).shape() == tg::shape{0, 3});
    CHECK(message_of([&] { squeeze(plane, 0); }) == "squeeze: the extent of the axis is not 1: f64[2, 3]");
    CHECK(message_of([&] { squeeze(none, 1); }) == "squeeze: the extent of the axis is not 1: f64[0, 3]");
    CHECK(message_of([&] {
              expand_dims(plane, {0, 0});
          }).substr(0, 42) == "expand_dims, squeeze: an axis outside the ");
    CHECK(message_of([&] {
              expand_dims(tg::zeros<float>({1, 1, 1, 1, 1, 1, 1, 1}), 0);
          }).find("rank above 8") != std::string::npos);
    CHECK(message_of([&] { swap_axes(plane, 0, 2); }) == "transpose: an axis outside the rank: f64[2, 3]");
    CHECK(message_of([&] { move_axis(plane, {0, 0}, {0, 1}); }) == "transpose: an axis outside the rank: f64[2, 3]");
    CHECK(message_of([&] {
              tg::concat({plane, plane, none}, 1);
          }) == "concat: extents differ off the axis: f64[2, 3], f64[2, 3], f64[0, 3]");
    CHECK(message_of([&] { concat(plane, line); }) == "concat: ranks differ: f64[2, 3], f64[3]");
    CHECK(message_of([&] { tg::concat({plane}, 2); }) == "concat: axis outside the rank: f64[2, 3]");
    CHECK(message_of([&] {
              tg::stack({line, tensor<double>{1, 2}});
          }) == "concat: extents differ off the axis: f64[1, 3], f64[1, 2]");
    CHECK(message_of([&] { tg::split<2>(plane, 1); }).substr(0, 53) ==
          "split: the extent does not divide into equal parts: f");
    CHECK(message_of([&] {
              split(plane, {1, 1}, 1);
          }).substr(0, 48) == "split: the sizes do not add up to the extent: f6");
    CHECK(message_of([&] {
              split(plane, {4, -1}, 1);
          }).substr(0, 48) == "split: the sizes do not add up to the extent: f6");
    CHECK(message_of([&] { tg::unstack<3>(plane); }).substr(0, 51) ==
          "unstack: the number of parts is not the extent: f64");
    CHECK(message_of([&] { take(plane, 2); }) == "slice: range outside the tensor: f64[2, 3] to [1, 3]");
    CHECK(message_of([&] { take(plane, -4, 1); }) == "slice: range outside the tensor: f64[2, 3] to [2, 1]");
    CHECK(message_of([&] { take(plane, 0, 2); }).substr(0, 40) == "slice, take, split: axis outside the ran");
    CHECK(message_of([&] { reverse(plane, 2); }).substr(0, 40) == "slice, take, split: axis outside the ran");
    CHECK(message_of([&] { slice(plane, {{0, 1, 0}}); }).substr(0, 21) == "slice: a step is zero");
    CHECK(message_of([&] { pad(plane, {{-1, 2}}); }).substr(0, 24) == "pad: amounts are negativ");
    CHECK(message_of([&] {
              pad(plane, {{-1, 2}}, {.mode = tg::pad_mode::edge});
          }).substr(0, 43) == "pad, tile, repeat: an amount is negative: f");
    CHECK(message_of([&] {
              pad(line, {{1, 1}, {1, 1}}, {.mode = tg::pad_mode::wrap});
          }).substr(0, 31) == "pad, tile: more amounts than ax");
    CHECK(message_of([&] { tile(line, {1, 1, 1, 1, 1, 1, 1, 1, 1}); }).substr(0, 18) == "tile: rank above 8");
    CHECK(message_of([&] { repeat(line, -1); }).substr(0, 20) == "pad, tile, repeat: a");
    CHECK(message_of([&] { roll(line, 1, 1); }).substr(0, 25) == "repeat, roll: axis outsid");
    CHECK(message_of([&] { diag_part(line); }).substr(0, 15) == "diag, diag_part");
    const tensor<std::int32_t> i{0, 1};
    CHECK(message_of([&] { gather(plane, i, 2); }) == "gather, scatter_add: axis outside the rank: f64[2, 3], i32[2]");
    CHECK(message_of([&] { gather(plane, i, 1, 1); }).empty());
    CHECK(message_of([&] {
              gather(plane, tensor<std::int32_t>{0, 1, 2}, 1, 1);
          }).substr(0, 36) == "gather: extents of batch axes differ");
    CHECK(message_of([&] { gather(plane, line); }).substr(0, 51) ==
          "gather, scatter_add: indices must be i32 or i64: f6");
    CHECK(message_of([&] { scatter_add(line, i, {4}); }).substr(0, 72) ==
          "scatter_add: the values must have the shape that gather would give: f64[");
    CHECK(message_of([&] {
              scatter_nd(line, tg::zeros<std::int32_t>({2, 1}), {4});
          }).substr(0, 43) == "scatter_nd: the values must have the shape ");
    CHECK(message_of([&] {
              gather_nd(plane, tg::zeros<std::int32_t>({1, 3}));
          }).substr(0, 45) == "gather_nd, scatter_nd: the last extent of the");
    CHECK(message_of([&] {
              take_along(plane, tg::zeros<std::int32_t>({1, 2}), 1);
          }).substr(0, 51) == "take_along, put_along: extents differ off the axis:");
    CHECK(message_of([&] {
              put_along(plane, tg::zeros<std::int32_t>({2, 2}), {2, 4}, 1);
          }).substr(0, 45) == "put_along: values and indices differ in shape");
}

// The same words in both modes; nothing is read outside.
TEST_CASE("indices that are refused when they are seen") {
    const auto check = [](const auto& f, const tensor<std::int32_t>& indices, const std::string& text) {
        const tensor<double> x = reshape(tg::arange<double>(12), {3, 4});
        CHECK(message_of([&] { f(x, indices); }) == text);
        tg::graph_function<std::remove_cvref_t<decltype(f)>, tg::spec<double, 3, 4>, tg::spec<std::int32_t, tg::dyn, 2>>
            compiled;
        CHECK(message_of([&] { compiled(x, indices); }) == text);
    };
    const tensor<std::int32_t> high{{0, 1}, {2, 4}}, low{{0, -1}, {1, 1}};
    check([](auto x, auto i) { return gather(x, i, 1); }, high, "gather: index 4 at position 3 is outside [0, 4)");
    check([](auto x, auto i) { return gather(x, i); }, low, "gather: index -1 at position 1 is outside [0, 3)");
    check([](auto x, auto i) { return gather_nd(x, i); }, high,
          "gather_nd: index 4 at position [1, 1] is outside [0, 4)");
    check([](auto x, auto i) { return gather_nd(x, i); }, {{0, 1}, {3, 0}},
          "gather_nd: index 3 at position [1, 0] is outside [0, 3)");
    check(
        [](auto x, auto i) {
            return scatter_nd(take(slice(x, {{0, 2}}), 0, 1), i, {3, 4});
        },
        low, "scatter_nd: index -1 at position [0, 1] is outside [0, 4)");
    check(
        [](auto x, auto i) {
            return scatter_add(slice(x, {{0, 2}, {0, 2}}), i, {4});
        },
        high, "scatter_add: index 4 at position 3 is outside [0, 4)");
    check([](auto x, auto i) { return take_along(x, i, 1); }, {{0, 1}, {1, 0}, {-7, 1}},
          "take_along: index -7 at position 4 is outside [0, 4)");
    check(
        [](auto x, auto i) {
            return put_along(slice(x, {{0, 2}, {0, 2}}), i, {2, 3});
        },
        high, "put_along: index 4 at position 3 is outside [0, 3)");
    check([](auto, auto i) { return tg::one_hot<float>(i, 4); }, high,
          "one_hot: index 4 at position 3 is outside [0, 4)");
}

TEST_CASE("duplicates add up to the same bits for any number of threads") {
    const std::int64_t count = 40000;
    std::vector<float> values(static_cast<std::size_t>(count * 3));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761u % 1000) / 7;
    const auto x = tg::from_range<float>(values, {count, 3});
    auto indices = tensor<std::int32_t>::uninitialized({count});
    for (std::int64_t i = 0; i < count; ++i) indices.mutable_data()[i] = static_cast<std::int32_t>(i * i % 11);
    std::vector<std::vector<float>> results;
    for (int threads : {1, 2, 3, 7}) {
        tg::set_thread_count(threads);
        auto all = scatter_add(x, indices, {11, 3}).to_vector();
        const auto more = scatter_nd(x, reshape(indices, {-1, 1}), {11, 3}).to_vector();
        all.insert(all.end(), more.begin(), more.end());
        const auto along = put_along(transpose(x), tile(reshape(indices, {1, -1}), {3, 1}), {3, 11}).to_vector();
        all.insert(all.end(), along.begin(), along.end());
        tensor<float> y = x;
        tg::gradient_tape tape;
        tape.watch(y);
        const tensor<float> wide = pad(y, {{50000, 70000}, {1, 5}}, {.mode = tg::pad_mode::reflect});
        const auto gradient = tape.gradient(tensor<float>(wide * wide), y).to_vector();
        all.insert(all.end(), gradient.begin(), gradient.end());
        results.push_back(all);
    }
    tg::set_thread_count(0);
    for (const auto& r : results) CHECK(r == results[0]);
}

// Tiles, repetitions and reflections of 16-bit numbers have derivatives, too: sums in float, rounded once.
TEST_CASE_TEMPLATE("derivatives of repetition in 16 bits", T, tg::bfloat16, tg::half) {
    tensor<T> x = tg::cast<T>(line);
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<T> weights = tg::cast<T>(tensor<double>{1, 256, 2, 1, 3, 1, 4, 1});
    const tensor<T> y = pad(x, {{2, 3}}, {.mode = tg::pad_mode::reflect}) * weights; // of 3 2 1 2 3 2 1 2
    const auto dx = tensor<double>(tg::cast<double>(tape.gradient(y, x))).to_vector();
    CHECK(dx == vector{6, std::is_same_v<T, tg::half> ? 259.0 : 260.0, 4}); // bfloat16 has no 259
}

TEST_CASE("linspace in 16 bits counts with fractions") {
    const tensor<double> points = tg::cast<double>(tg::linspace<tg::half>(line, 0, 1, 5));
    CHECK(points.to_vector() == vector{0, 0.25, 0.5, 0.75, 1});
}

} // namespace movement_corner_test
