#include <support/compiled_modes.hpp>

#include <tapegraph/eager/transforms.hpp>
#include <tapegraph/graph/transforms.hpp>
#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

/// Operations from outside the library: first and second derivatives, both modes, errors.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using tg::tensor;

namespace {

// x / (1 + x^2)
struct witch_op : tg::map_op<1> {
    static constexpr std::string_view name = "witch";
    template <class V>
    static constexpr V value(V x) {
        return x / (V(1) + x * x);
    }
    static constexpr auto vjp(auto dy, auto x, auto y) { return dy * (y / x - 2 * y * y); }
};
constexpr auto witch = [](const auto& x) { return tg::apply<witch_op>(x); };

// [n, k] to [n]: the scaled length of each row. The derivative looks at the value.
struct row_norm_op : tg::custom_op<1> {
    static constexpr std::string_view name = "row_norm";
    struct attributes {
        double scale = 1;
    };
    static constexpr void infer(const attributes& a, tg::inference& io) {
        io.type = io.in[0].type;
        if (!io.require(io.in[0].dims.rank() == 2, "row_norm: the operand is a matrix")) return;
        io.require(a.scale > 0, "row_norm: the scale must be positive");
        io.result.push_back(io.in[0].dims[0]);
    }
    template <int I>
    static constexpr auto vjp(const attributes& a, auto dy, auto x, auto y) {
        return expand_dims(dy / y, -1) * x * (a.scale * a.scale);
    }
};
constexpr auto row_norm = [](const auto& x, double scale) {
    return tg::invoke<row_norm_op>({scale}, nullptr, std::source_location::current(), x);
};

constexpr auto loss = [](auto x) {
    const auto norms = row_norm(witch(x) * 3 + x, 1.5);
    const auto cubes = sum(norms * norms * norms);
    return tg::eval(cubes * 0.25 + sum(witch(norms)));
};
constexpr auto first_order = [](auto x) { return tg::value_and_gradient(loss)(x); };
constexpr auto second_order = [](auto x) {
    return tg::gradient([](auto v) { return sum(square(tg::gradient(loss)(v))); })(x);
};

} // namespace

template <class T>
struct tapegraph::runtime::kernel<row_norm_op, T> {
    static void run(const kernel_call& call) {
        const double scale = attributes_of<row_norm_op>(call).scale;
        const buffer_view& x = call.in[0];
        for (std::int64_t i = 0; i < x.extents[0]; ++i) {
            double total = 0;
            for (std::int64_t k = 0; k < x.extents[1]; ++k) {
                const auto each = static_cast<double>(x.as<const T>()[i * x.extents[1] + k]);
                total += each * each;
            }
            call.out[0].as<T>()[i] = static_cast<T>(scale * std::sqrt(total));
        }
    }
};

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

TEST_CASE("operations from outside: both modes, first and second derivatives") {
    compiled_modes first(first_order, tg::spec<double, tg::dyn, 3>{});
    compiled_modes narrow(first_order, tg::spec<float, tg::dyn, 3>{});
    compiled_modes second(second_order, tg::spec<double, tg::dyn, 3>{});
    for (std::int64_t n : {4, 1, 0, 130}) {
        TG_SAME(first.compare(drawn<double>({n, 3}, 1)));
        TG_SAME(narrow.compare(drawn<float>({n, 3}, 2)));
        CHECK(second.distance(drawn<double>({n, 3}, 3)) < 1e-13); // unfused in eager mode: other roundings
    }
    const tensor_function<double> f = [](const tensors<double>& x) { return tensor<double>(loss(x[0])); };
    const tensors<double> x{drawn<double>({4, 3}, 5)};
    const auto value = [&](const tensors<double>& at) {
        const tensor<double> y = f(at);
        return dot(y, weights_like(y, 9));
    };
    for (const slope& s : element_slopes(value, x, 0, tape_gradient(f, x, 1, 9)[0])) CHECK(s.agrees(1e-7));
    const auto derivative = [&](const tensors<double>& at) {
        const tensor<double> g = tape_gradient(f, at, 1, 9)[0];
        return dot(g, weights_like(g, 10));
    };
    for (const slope& s : element_slopes(derivative, x, 0, nested_gradient(f, x, 1, 9)[0])) CHECK(s.agrees(1e-6));
}

TEST_CASE("operations from outside: their own words when operands do not fit") {
    CHECK_THROWS_WITH_AS(row_norm(tensor<float>{1, 2}, 1), "row_norm: the operand is a matrix: f32[2]", tg::shape_error);
    CHECK_THROWS_WITH_AS(row_norm(tg::zeros<float>({2, 2}), -1), "row_norm: the scale must be positive: f32[2, 2]",
                         tg::shape_error);
}
