#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

/// A backward pass adds up the adjoints of a tensor in the memory of one of them, unless something else reads it.

namespace adjoints_in_place_test {

namespace tg = tapegraph;

/// Whole numbers, whose sums are exact.
template <class T>
tg::tensor<T> values(const tg::shape& dims, int factor) {
    auto t = tg::tensor<T>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = static_cast<T>(factor * (i * 37 % 101 - 50));
    return t;
}
template <class T>
bool same(const tg::tensor<T>& a, const tg::tensor<T>& b) {
    return a.shape() == b.shape() && a.to_vector() == b.to_vector();
}

TEST_CASE_TEMPLATE("adjoints in place: sums over the uses of a tensor, by whole and by repeated ones", T, float,
                   double) {
    for (const tg::shape& dims : {tg::shape{0, 5}, tg::shape{1, 1}, tg::shape{3, 7}, tg::shape{73, 7},
                                  tg::shape{5, 6661}}) { // more than a tile, and than threads share out
        CAPTURE(to_string(dims));
        const auto x = values<T>(dims, 1), row = values<T>({dims[1].value}, 2);
        tg::gradient_tape tape;
        tg::tensor<T> w = x, r = row;
        tape.watch(w);
        tape.watch(r);
        const tg::tensor<T> columns = sum(w, {0});
        const tg::tensor<T> squares = square(w) * r;
        const tg::tensor<T> product = w * w;
        const tg::tensor<T> y = sum(w * 3) + sum(squares) + sum(columns * row) + sum(product) + sum(-w);
        const auto [dw, dr] = tape.gradient(y, w, r);
        CHECK(same(dw, tg::eval(2 * x * row + row + 2 * x + 2)));
        CHECK(same(dr, tg::eval(sum(square(x), {0}))));
    }
}

TEST_CASE("adjoints in place: what else reads an adjoint keeps its values") {
    // h's adjoint is a result, those of a and b are the same memory in another shape.
    tg::tensor<float> a = values<float>({600}, 1), b = values<float>({600}, 3);
    const tg::tensor<float> sum_of_both = reshape(a + b, {20, 30});
    tg::gradient_tape tape;
    tape.watch(a);
    tape.watch(b);
    const tg::tensor<float> early = a * 5;
    const tg::tensor<float> h = tg::eval(reshape(a, {20, 30})) + tg::eval(reshape(b, {20, 30}));
    const tg::tensor<float> y = sum(h * h) + sum(early) + sum(b);
    const auto [da, db, dh, again] = tape.gradient(y, a, b, h, h);
    CHECK(same(dh, tg::eval(2 * sum_of_both)));
    CHECK(same(again, dh));
    CHECK(same(da, tg::eval(reshape(dh, {600}) + 5)));
    CHECK(same(db, tg::eval(reshape(dh, {600}) + 1)));
}

TEST_CASE("adjoints in place: a gradient that a tape has given is not added to") {
    tg::tensor<float> x = values<float>({9}, 1);
    tg::gradient_tape tape({.persistent = true});
    tape.watch(x);
    const tg::tensor<float> square_of = x * x, y = sum(square_of * x) + sum(square_of) + sum(x);
    const auto first = tape.gradient(y, x);
    const std::vector<float> kept = first.to_vector();
    const auto second = tape.gradient(y, x);
    CHECK(first.to_vector() == kept);
    CHECK(same(second, first));
    CHECK(same(first, tg::eval(3 * square(x.detach()) + 2 * x.detach() + 1)));
}

} // namespace adjoints_in_place_test
