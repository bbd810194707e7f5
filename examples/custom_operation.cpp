#include <tapegraph/tapegraph.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>

// Two operations that the library does not have, defined by a program that uses them.
// docs/operations/extending.md explains them line by line.

namespace tg = tapegraph;

// 1. An elementwise operation: (sqrt(x^2 + 1) - 1) / 2 + x, the "bent identity". It fuses like the library's own.
struct bent_identity_op : tg::map_op<1> {
    static constexpr std::string_view name = "bent_identity";
    template <class V>
    TG_HD static constexpr V value(V x) {
        return (tg::math::sqrt(x * x + V(1)) - V(1)) * V(0.5) + x;
    }
    static constexpr auto vjp(auto dy, auto x, auto) { return dy * (x / (2 * tg::sqrt(x * x + 1)) + 1); }
};
template <tg::operand X>
constexpr auto bent_identity(const X& x) {
    return tg::apply<bent_identity_op>(x);
}

// 2. An operation with a kernel of its own: squared distances of the rows of x [n, k] from the rows of y [m, k], [n, m].
struct squared_distances_op : tg::custom_op<2> {
    static constexpr std::string_view name = "squared_distances";
    static constexpr void infer(const attributes&, tg::inference& io) {
        const tg::shape &x = io.in[0].dims, &y = io.in[1].dims;
        io.type = io.in[0].type;
        if (!io.require(io.in[1].type == io.type, "squared_distances: element types differ") ||
            !io.require(x.rank() == 2 && y.rank() == 2, "squared_distances: operands are matrices"))
            return;
        io.require(tg::equal_or_required(x[1], y[1]), "squared_distances: rows differ in length");
        io.result.push_back(x[0]);
        io.result.push_back(y[0]);
    }
    // d_ij = sum_k (x_ik - y_jk)^2, so dL/dx_i = 2 (sum_j dd_ij) x_i - 2 sum_j dd_ij y_j, and the same for y.
    template <int I>
    static constexpr auto vjp(const attributes&, auto dd, auto x, auto y, auto) {
        if constexpr (I == 0)
            return 2 * (sum(dd, 1, {.keepdims = true}) * x - matmul(dd, y));
        else
            return 2 * (expand_dims(sum(dd, 0), -1) * y - matmul(dd, x, {.transpose_a = true}));
    }
};
template <class T>
struct tg::runtime::kernel<squared_distances_op, T> {
    static void run(const tg::kernel_call& call) {
        const tg::buffer_view &x = call.in[0], &y = call.in[1];
        const std::int64_t n = x.extents[0], m = y.extents[0], width = x.extents[1];
        tg::cpu::parallel_for(n, n * m * width > 65536, [&](std::int64_t i) {
            for (std::int64_t j = 0; j < m; ++j) {
                T total = 0;
                for (std::int64_t k = 0; k < width; ++k) {
                    const T difference = x.as<const T>()[i * width + k] - y.as<const T>()[j * width + k];
                    total += difference * difference;
                }
                call.out[0].as<T>()[i * m + j] = total;
            }
        });
    }
};
template <tg::tensor_like X, tg::tensor_like Y>
constexpr auto squared_distances(const X& x, const Y& y, std::source_location where = std::source_location::current()) {
    return tg::invoke<squared_distances_op>({}, nullptr, where, x, y);
}
// For vmap: when every example has its own rows and all share y, the rows of all examples are rows
// of one matrix.
template <>
struct tg::batching_rule<squared_distances_op> {
    template <class Context, class X, class Y>
    static constexpr auto apply(const Context& c, const tg::no_attributes& none, const X& x, const Y& y) {
        static_assert(!Context::template is_batched<Y>, "squared_distances: all examples share y");
        const tg::shape all = tg::shape_of(c.whole(x));
        tg::shape rows = all, result = all;
        rows = tg::shape(2, all.data() + 1, all.table());
        rows.set(0, all.size(0, 2));
        result.set(2, tg::shape_of(y)[0]);
        return c.reshape(c.template run<squared_distances_op>(none, nullptr, c.reshape(c.whole(x), rows), y), result);
    }
};

// A loss that uses both, in either mode.
constexpr auto loss = [](auto x, auto centres) {
    const auto d = squared_distances(bent_identity(x) * 0.5, centres);
    return tg::eval(-sum(tg::logsumexp(-d, 1)));
};

static_assert(tg::gradient([](auto x) { return bent_identity(x); })(0.0) == 1);

int main() {
    const auto x = tg::random::normal<double>({6, 3}, {.seed = 1}),
               centres = tg::random::normal<double>({4, 3}, {.seed = 2});

    auto graph =
        tg::function<tg::graph>(tg::value_and_gradient(loss), tg::spec<double, tg::dyn, 3>{}, tg::spec<double, 4, 3>{});
    const auto [value, gradient] = graph(x, centres);
    const auto eager = tg::value_and_gradient(loss)(x, centres);
    const auto same = [](const tg::tensor<double>& a, const tg::tensor<double>& b) {
        return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(double)) == 0;
    };
    std::printf("loss %.6f\n", value.item());
    std::printf("both modes: %s\n", same(value, eager.value) &&
                                            same(std::get<0>(gradient), std::get<0>(eager.gradient)) &&
                                            same(std::get<1>(gradient), std::get<1>(eager.gradient))
                                        ? "the same bits"
                                        : "different bits");

    // Central differences with step 1e-5 are accurate to about 1e-9 here.
    double largest = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) {
        tg::tensor<double> above = x, below = x;
        above.mutable_data()[i] += 1e-5;
        below.mutable_data()[i] -= 1e-5;
        const double slope = (loss(above, centres).item() - loss(below, centres).item()) / 2e-5;
        largest = std::max(largest, std::abs(slope - std::get<0>(gradient).data()[i]));
    }
    std::printf("derivatives %s\n", largest < 1e-7 ? "agree with differences" : "are wrong");

    // The activation has no kernel of its own: it is computed inside the kernel that scales it.
    auto fused = tg::function<tg::graph>([](auto v) { return tg::eval(bent_identity(v) * 0.5 + 1); },
                                         tg::spec<float, tg::dyn>{});
    std::printf("kernels of a formula with bent_identity: %d\n", fused.view().steps.size());

    const auto batch = tg::random::normal<double>({5, 6, 3}, {.seed = 3});
    const tg::tensor<double> losses = tg::vmap<0, tg::unbatched>(loss)(batch, centres);
    const tg::tensor<double> third = reshape(slice(batch, {{2, 3}}), {6, 3});
    std::printf("per example: %s\n", std::abs(losses(2) - loss(third, centres).item()) < 1e-12 ? "yes" : "no");
}
