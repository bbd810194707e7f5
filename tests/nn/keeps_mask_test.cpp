#include <tapegraph/tapegraph.hpp>

#include <tapegraph/compile/instance.hpp>
#include <tapegraph/nn/layers/masking.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace keeps_mask_test {

namespace tg = tapegraph;

/// A layer of another namespace that keeps masks.

namespace mine {

struct line_options {
    double slope = 2;
};
template <class Scope, tg::tensor_like X>
constexpr auto line(const Scope& scope, const X& x, const line_options& o = {},
                    std::source_location where = std::source_location::current()) {
    const auto input = scope.operand(x, where);
    const auto start = scope.variable_like(input, "start", {}, {.initializer = tg::init::ones{}});
    return tg::eval(o.slope * input + start, where);
}
TG_KEEPS_MASK(line, line_options)

} // namespace mine

namespace {

struct model {
    constexpr auto operator()(auto scope, auto x, auto counts) const {
        const auto given = mine::line(scope / "given", tg::with_mask(x, counts), {.slope = 3});
        const auto twice = mine::line(scope / "default", given);
        static_assert(tg::detail::is_masked<std::remove_cvref_t<decltype(twice)>>);
        return tg::eval(twice.counted(twice.value));
    }
};

} // namespace

TEST_CASE("a layer of a user's keeps masks, with its options and without") {
    auto net = tg::instance(
        model{}, tg::inputs{tg::input<"x">(tg::spec<double, 2, 2>{}), tg::input<"counts">(tg::spec<bool, 2, 2>{})});
    const tg::tensor<double> y = net(tg::tensor<double>{{1, 5}, {2, 3}}, tg::tensor<bool>{{true, false}, {true, true}});
    CHECK(y.to_vector() == std::vector<double>{9, 0, 15, 21}); // 2 (3 x + 1) + 1, 0 where a step does not count
}

} // namespace keeps_mask_test
