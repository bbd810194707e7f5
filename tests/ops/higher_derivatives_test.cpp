#include <support/finite_differences.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <array>
#include <utility>

namespace higher_derivatives_test {

/// Third derivatives of functions that are linear in pieces, under a cube. The table's second derivatives of such a function
/// alone are zero whatever the derivatives of its derivative are; here each of them meets an adjoint that depends on x.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

using function = tensor_function<double>;

// sum(w f(x)^3), and as often as `depth` says the weighted sum of squares of its gradient in its place: a number whose own
// gradient is a derivative above. With squares adjoints of gradients depend on x, too.
// `watched`: by an outer tape.
tg::tensor<double> number(const function& f, tensors<double> x, int depth, bool watched = false) {
    if (depth == 0) {
        const tg::tensor<double> y = f(x);
        return tg::tensor<double>(sum(y * y * y * weights_like(y, 2)));
    }
    tg::gradient_tape tape;
    if (!watched)
        for (auto& each : x) tape.watch(each);
    const tg::tensor<double> below = number(f, x, depth - 1, true);
    tg::tensor<double> total = 0.0;
    std::uint64_t seed = 10 * static_cast<std::uint64_t>(depth);
    const std::vector<tg::any_tensor> sources(x.begin(), x.end());
    for (const tg::any_tensor& each : tape.gradient(below, sources)) {
        const tg::tensor<double> g(each);
        total = tg::tensor<double>(total + sum(g * g * weights_like(g, ++seed)));
    }
    return total;
}

/// The derivative of depth 2 by every operand, against differences of depth 1 along a direction, and that of depth 3 against
/// differences of depth 2.
void check(const char* name, const function& f, const std::vector<tg::shape>& shapes) {
    INFO(name);
    tensors<double> x;
    sequence random(7);
    for (const tg::shape& s : shapes) {
        auto t = tg::tensor<double>::uninitialized(s);
        for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = random.between(-1, 1);
        x.push_back(t);
    }
    for (const int depth : {1, 2}) {
        INFO("derivative " << depth + 1);
        tg::gradient_tape tape;
        tensors<double> here = x;
        for (auto& each : here) tape.watch(each);
        const tg::tensor<double> value = number(f, here, depth, true);
        const std::vector<tg::any_tensor> sources(here.begin(), here.end());
        const auto gradients = tape.gradient(value, sources);
        for (std::size_t k = 0; k < x.size(); ++k) {
            INFO("operand " << k);
            const tg::tensor<double> direction = weights_like(x[k], 90 + k), gradient(gradients[k]);
            const auto moved = [&](double by) {
                tensors<double> there = x;
                there[k] = tg::tensor<double>(x[k] + by * direction);
                return number(f, there, depth).item();
            };
            const double h =
                1e-5; // h^2 and epsilon / h, times what derivatives grow by from one to the next, some 1e-7
            const double exact = dot(gradient, direction), difference = (moved(h) - moved(-h)) / (2 * h);
            CHECK(exact == doctest::Approx(difference).epsilon(1e-5));
            CHECK(std::abs(exact) > 1e-3); // or it says nothing
        }
    }
}

} // namespace

TEST_CASE("third derivatives: pooling") {
    check("max_pooling2d",
          [](const auto& x) {
              return max_pooling2d(x[0], {.pool_size = {2, 2}, .stride = {1, 2}});
          },
          {{1, 4, 5, 2}});
    check("average_pooling2d",
          [](const auto& x) {
              return average_pooling2d(x[0], {.pool_size = {2, 3}, .stride = {1, 2}});
          },
          {{1, 3, 5, 2}});
    check("lp_pooling2d",
          [](const auto& x) {
              return lp_pooling2d(x[0], 3, {.pool_size = {2, 3}, .stride = {1, 2}});
          },
          {{1, 3, 5, 2}});
}

TEST_CASE("third derivatives: movement") {
    check("slice", [](const auto& x) { return slice(x[0], {{1, 5, 2}, {3, 0, -1}}); }, {{5, 4}});
    check("take", [](const auto& x) { return take(x[0], 1, 1); }, {{3, 4}});
    check("pad", [](const auto& x) { return pad(x[0], {{1, 0}, {0, 2}}, {.value = 0.5}); }, {{2, 3}});
    check("pad, reflect",
          [](const auto& x) {
              return pad(x[0], {{1, 1}, {0, 2}}, {.mode = tg::pad_mode::reflect});
          },
          {{2, 4}});
    check("roll", [](const auto& x) { return roll(x[0], 2, 1); }, {{2, 5}});
    check("concat", [](const auto& x) { return concat(x[0], x[1], 1); }, {{2, 3}, {2, 1}});
    check("transpose", [](const auto& x) { return transpose(x[0]); }, {{2, 3}});
    check("broadcast_to", [](const auto& x) { return broadcast_to(x[0], {3, 2, 4}); }, {{2, 1}});
    check("tile", [](const auto& x) { return tile(x[0], {2, 2}); }, {{2, 3}});
}

TEST_CASE("third derivatives: indices and order") {
    const tg::tensor<std::int32_t> rows{2, 0, 2}, pairs{{1, 0}, {0, 2}, {1, 0}}, along{{1, 1}, {0, 1}};
    check("gather", [=](const auto& x) { return gather(x[0], rows, 0); }, {{3, 2}});
    check("scatter_add", [=](const auto& x) { return scatter_add(x[0], rows, {4, 2}, 0); }, {{3, 2}});
    const tg::tensor<std::int32_t> ends{1, 3, 1};
    check("gather_scatter_add", [=](const auto& x) { return gather_scatter_add(x[0], rows, ends, {4, 2}); }, {{3, 2}});
    check("gather_scatter_add, weighted",
          [=](const auto& x) { return gather_scatter_add(x[0], rows, ends, x[1], {4, 2}); }, {{3, 2}, {3}});
    check("gather_scatter_add, weighted, along the last axis",
          [=](const auto& x) { return gather_scatter_add(x[0], rows, ends, x[1], {2, 4}, -1); }, {{2, 3}, {3}});
    check("gather_nd", [=](const auto& x) { return gather_nd(x[0], pairs); }, {{2, 3}});
    check("scatter_nd", [=](const auto& x) { return scatter_nd(x[0], pairs, {2, 3}); }, {{3}});
    check("take_along", [=](const auto& x) { return take_along(x[0], along, 1); }, {{2, 3}});
    check("put_along", [=](const auto& x) { return put_along(x[0], along, {2, 3}, 1); }, {{2, 2}});
    check("sort", [](const auto& x) { return sort(x[0]); }, {{2, 4}});
    check("cumulative_sum", [](const auto& x) { return cumulative_sum(x[0], 0); }, {{4, 2}});
}

TEST_CASE("third derivatives: reductions and products") {
    check("sum", [](const auto& x) { return sum(x[0], 1); }, {{2, 3}});
    check("max", [](const auto& x) { return max(x[0], 0); }, {{3, 2}});
    check("prod", [](const auto& x) { return prod(x[0], 0); }, {{3, 2}});
    check("matmul", [](const auto& x) { return matmul(x[0], x[1]); }, {{2, 3}, {3, 2}});
    check("log_softmax", [](const auto& x) { return log_softmax(x[0]); }, {{2, 3}});
    const tg::tensor<std::int32_t> classes{2, 0};
    check("sparse_softmax_cross_entropy_with_logits",
          [=](const auto& x) { return sparse_softmax_cross_entropy_with_logits(x[0], classes); }, {{2, 3}});
    const auto normalized = [](tg::normalization_attributes a) {
        return [a](const tensors<double>& x) {
            return tg::detail::normalized(x[0], a, true, x[1], true, x[2], std::source_location::current());
        };
    };
    check("normalization", normalized({.first = 1, .last = 2, .groups = 2, .epsilon = 0.1}), {{2, 3, 4}, {4}, {4}});
    check("normalization", normalized({.first = 1, .last = 1, .centered = 0, .epsilon = 0.1}), {{3, 4}, {4}, {4}});
    check("normalization", normalized({.first = 2, .last = 2, .examples = 1, .own = 1, .epsilon = 0.1}),
          {{2, 3, 4}, {2, 4}, {2, 4}});
    check(
        "attention",
        [](const auto& x) {
            return attention(x[0], x[1], x[2], x[3], {.causal = true, .causal_offset = 1});
        },
        {{1, 2, 2, 2}, {1, 3, 1, 2}, {1, 3, 1, 2}, {2, 3}});
    check("conv2d", [](const auto& x) { return conv2d(x[0], x[1], {.stride = {2, 1}}); }, {{1, 4, 3, 2}, {2, 2, 2, 2}});
}

} // namespace higher_derivatives_test
