#include <support/graph_runner.hpp>
#include <support/messages.hpp>
#include <support/settings_guard.hpp>

#include <doctest/doctest.h>

namespace messages_test_of_modes {

/// Sums of messages along edges, as two operations and as one, in both modes and every element type: the same bits and errors.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using support::message_of;

namespace {

#define TG_SAME(text) CHECK_MESSAGE((text).empty(), text)

/// [5, columns of h]
constexpr tg::shape five_rows(const auto& h) {
    const tg::shape from = tg::shape_of(h);
    tg::shape target;
    target.attach(from.table());
    target.push_back(5);
    target.push_back(from[1]);
    return target;
}
constexpr auto plain = [](const auto& h, const auto& from, const auto& to) {
    return scatter_add(gather(h, from), to, five_rows(h));
};
constexpr auto weighted = [](const auto& h, const auto& from, const auto& to, const auto& weights) {
    return scatter_add(gather(h, from) * expand_dims(weights, -1), to, five_rows(h));
};
constexpr auto slopes = [](const auto& h, const auto& from, const auto& to) {
    return tg::gradient([&](const auto& x) { return tg::sum(tg::square(plain(x, from, to))); })(h);
};

tg::tensor<std::int32_t> ends(std::int64_t count, std::int64_t below, unsigned seed) {
    auto t = tg::tensor<std::int32_t>::uninitialized({count});
    for (std::int64_t i = 0; i < count; ++i) {
        seed = seed * 1664525u + 1013904223u;
        t.mutable_data()[i] = static_cast<std::int32_t>((seed >> 8) % static_cast<unsigned>(below));
    }
    return t;
}

} // namespace

TEST_CASE_TEMPLATE("messages: two operations and one have the same bits in both modes", T, float, double, tg::half,
                   tg::bfloat16, std::int32_t, std::int64_t) {
    const support::settings_guard guard;
    using matrix = tg::spec<T, tg::dyn, tg::dim<"width">>;
    using edges = tg::spec<std::int32_t, tg::dim<"edges">>;
    both_modes run(plain, matrix{}, edges{}, edges{});
    both_modes with_weights(weighted, matrix{}, edges{}, edges{}, tg::spec<T, tg::dim<"edges">>{});
    // Narrow rows, rows of a vector and more, edges that threads share.
    for (const std::int64_t width : {0, 1, 3, 4, 7, 16, 31, 129})
        for (const std::int64_t count : {0, 1, 13, 1000})
            for (const int threads : {1, 3}) {
                CAPTURE(width);
                CAPTURE(count);
                tg::set_thread_count(threads);
                const auto h = tg::cast<T>(drawn<double>({11, width}, 1, -9, 9));
                const tg::tensor<T> table = h;
                const auto from = ends(count, 11, 1), to = ends(count, 5, 2);
                TG_SAME(run.compare(table, from, to));
                const tg::tensor<T> one = gather_scatter_add(table, from, to, {5, width});
                TG_SAME(difference(run.results(), {one}));
                const tg::tensor<T> weights = tg::cast<T>(drawn<double>({count}, 3, -9, 9));
                TG_SAME(with_weights.compare(table, from, to, weights));
                if constexpr (std::is_floating_point_v<T>) {
                    const tg::tensor<T> sums = gather_scatter_add(table, from, to, weights, {5, width});
                    TG_SAME(difference(with_weights.results(), {sums}));
                }
            }
}

TEST_CASE("messages: gradients have the same bits in both modes") {
    both_modes run(slopes, tg::spec<float, tg::dyn, tg::dim<"width">>{}, tg::spec<std::int32_t, tg::dim<"edges">>{},
                   tg::spec<std::int32_t, tg::dim<"edges">>{});
    for (const std::int64_t width : {1, 5, 40})
        TG_SAME(run.compare(drawn<float>({11, width}, 1), ends(300, 11, 1), ends(300, 5, 2)));
}

TEST_CASE("messages: what is refused says which operand and why") {
    const auto h = tg::ones<float>({4, 3});
    const tg::tensor<std::int32_t> edges{0, 3, 1}, four{0, 1, 2, 3};
    const auto text = [&](const auto& call) { return message_of<tg::error>(call); };
    CHECK(text([&] {
              return gather_scatter_add(h, edges, four, {5, 3});
          }).find("`from` and `to` differ in shape") != std::string::npos);
    CHECK(text([&] {
              return gather_scatter_add(h, edges, edges, {5, 4});
          }).find("the target differs from the table in more than the axis") != std::string::npos);
    CHECK(text([&] {
              return gather_scatter_add(h, edges, edges, tg::ones<float>({4}), {5, 3});
          }).find("weights must have the table's type and the shape of the indices") != std::string::npos);
    CHECK(text([&] {
              return gather_scatter_add(tg::ones<std::int32_t>({4, 3}), edges, edges, edges, {5, 3});
          }).find("a weighted table must be floating-point") != std::string::npos);
    CHECK(text([&] {
              return gather_scatter_add(h, four, four, {3, 3});
          }) == "scatter_add: index 3 at position 3 is outside [0, 3)");
    CHECK(text([&] {
              return gather_scatter_add(slice(h, {{0, 3}}), four, four, {3, 3});
          }) == "gather: index 3 at position 3 is outside [0, 3)");
}

} // namespace messages_test_of_modes
