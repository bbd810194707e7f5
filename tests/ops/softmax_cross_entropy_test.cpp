#include <ops/loss_of.hpp>
#include <transforms/vmap_support.hpp>

#include <doctest/doctest.h>

namespace softmax_cross_entropy_test {

/// The cross entropy of class numbers: in graph mode the bits of eager mode, values and gradients; up to second derivatives
/// what log_softmax and take_along give; and under vmap what each example gives alone.

namespace tg = tapegraph;
using namespace tapegraph::testing;

namespace {

constexpr auto labels_of(const auto& x, tg::extent rows, int classes) { // i * 7919 % classes
    return tg::eval(tg::arange<std::int32_t>(x, rows, 0, 7919) % classes);
}
constexpr auto losses = [](auto x) { // [n, 5]
    return tg::sparse_softmax_cross_entropy_with_logits(x, labels_of(x, tg::shape_of(x)[0], 5));
};
constexpr auto all_losses = [](auto x) { return std::tuple{losses(x)}; };
constexpr auto long_losses = [](auto x) { // [n, 2100]
    return std::tuple{tg::sparse_softmax_cross_entropy_with_logits(x, labels_of(x, tg::shape_of(x)[0], 2100))};
};
constexpr auto chosen = [](auto x) {
    const auto labels = labels_of(x, tg::shape_of(x)[0], 5);
    const auto logarithms = tg::log_softmax(x);
    return tg::eval(-tg::squeeze(tg::take_along(logarithms, tg::expand_dims(labels, -1)), -1));
};
// The gradient of the squares of a gradient of cubes.
template <class F>
constexpr auto second_of(F) {
    return tg::gradient([](auto x) {
        const auto inner = tg::gradient([](auto a) {
            const auto y = F{}(a);
            return sum(y * y * y);
        });
        return tg::eval(sum(square(inner(x))));
    });
}
constexpr auto second = second_of(losses);
constexpr auto second_of_chosen = second_of(chosen);
constexpr auto storage_losses = [](auto x) { return losses(x); };

} // namespace

TEST_CASE("both modes: cross entropy of class numbers") {
    both_modes forward(losses, tg::spec<float, tg::dyn, 5>{});
    both_modes gradients(gradient_loss(all_losses), tg::spec<float, tg::dyn, 5>{});
    both_modes long_gradients(gradient_loss(long_losses), tg::spec<float, tg::dyn, 2100>{});
    both_modes rounded(storage_losses, tg::spec<tg::half, tg::dyn, 5>{});
    both_modes twice(second, tg::spec<double, tg::dyn, 5>{});
    for (const std::int64_t n : {7, 1, 0, 900}) {
        const auto x = drawn<float>({n, 5}, 1);
        CHECK(forward.compare(x) == "");
        CHECK(gradients.compare(x) == "");
        CHECK(rounded.compare(tg::tensor<tg::half>(tg::cast<tg::half>(x))) == "");
        CHECK(twice.distance(drawn<double>({n, 5}, 1)) < 1e-11); // derivatives of derivatives add in another order
    }
    for (const std::int64_t n : {1, 20}) CHECK(long_gradients.compare(drawn<float>({n, 2100}, 2)) == "");
}

TEST_CASE("cross entropy of class numbers is -log_softmax at the class, derivatives included") {
    const auto x = drawn<double>({7, 5}, 3);
    const auto check = [&](const auto& got, const auto& want) {
        const tg::tensor<double> a = got(x), b = want(x);
        CHECK(tg::tensor<double>(max(abs(a))).item() > 1e-3); // or it says nothing
        CHECK(tg::tensor<double>(max(abs(a - b))).item() < 1e-12);
    };
    check(losses, chosen);
    check(second, second_of_chosen);
}

// One example: x [4, 5].
constexpr auto one = [](auto x, auto z) { return tg::sparse_softmax_cross_entropy_with_logits(x, z); };

TEST_CASE("cross entropy of class numbers under vmap is that of each example") {
    const auto x = drawn<double>({3, 4, 5}, 1);
    const tg::tensor<std::int32_t> own{{0, 1, 2, 3}, {4, 4, 0, 1}, {2, 2, 2, 2}}, common{0, 4, 1, 2};
    for (std::int64_t i = 0; i < 3; ++i) {
        const auto same = [&](const tg::tensor<double>& all, const tg::tensor<double>& alone) {
            CHECK(tg::tensor<double>(max(abs(tg::take(all, i, 0) - alone))).item() == 0);
        };
        const tg::tensor<double> each = tg::take(x, i, 0);
        const tg::tensor<std::int32_t> labels = tg::take(own, i, 0);
        same(tg::vmap(one)(x, own), one(each, labels));
        same(tg::vmap<0, tg::unbatched>(one)(x, common), one(each, common));
    }
    const tg::tensor<double> first = tg::take(x, 0, 0);
    const tg::tensor<double> shared_logits = tg::vmap<tg::unbatched, 0>(one)(first, own);
    CHECK(tg::tensor<double>(max(abs(tg::take(shared_logits, 2, 0) - one(first, tg::tensor<std::int32_t>{2, 2, 2, 2}))))
              .item() == 0);
}

} // namespace softmax_cross_entropy_test
