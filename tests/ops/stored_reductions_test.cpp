#include <support/finite_differences.hpp>
#include <support/messages.hpp>

#include <tapegraph/ops/ops.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

namespace stored_reductions_test {

/// Conventions of reductions against what NumPy 1.24 and PyTorch give, kept here as literals, and derivatives beside zeros
/// against those of the polynomial itself.
///
/// The literals marked "torch" come from
///
///     def g(f, v):  # d(sum of w f(x))/dx, w = 1, 2, 3, ...
///         x = torch.tensor(v, dtype=torch.float64, requires_grad=True); y = f(x)
///         w = torch.arange(1, y.numel() + 1, dtype=torch.float64).reshape(y.shape)
///         (y * w).sum().backward(); return x.grad.tolist()
///
/// called with the expression in the comment, those marked "numpy" from the expression itself.

namespace tg = tapegraph;
using namespace tapegraph::testing;
using support::message_of;
using tg::tensor;
using vector = std::vector<double>;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class F>
vector slope_at(const F& f, tensor<double> x) {
    tg::gradient_tape tape;
    tape.watch(x);
    const tensor<double> y = tg::eval(f(x));
    auto w = tensor<double>::uninitialized(y.shape());
    for (std::int64_t i = 0; i < w.size(); ++i) w.mutable_data()[i] = static_cast<double>(i + 1);
    const tensor<double> weighted = y * w;
    return tape.gradient(weighted, x).to_vector();
}

// Equal, or apart by no more than a few roundings of numbers of order one.
bool near(const vector& a, const vector& b, double tolerance = 1e-14) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (!(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])))) return false;
    }
    return true;
}

// The product of all elements but those in `without`.
double product_without(const vector& x, std::initializer_list<std::size_t> without) {
    double result = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        bool counts = true;
        for (std::size_t w : without) counts = counts && w != i;
        if (counts) result *= x[i];
    }
    return result;
}

// sum_i v_i d(sum_k w_k f_k)/dx_i and its gradient, by nested tapes.
template <class F>
std::pair<vector, vector> two_gradients(const F& f, tensor<double> x, const tensor<double>& v) {
    tg::gradient_tape outer;
    outer.watch(x);
    tensor<double> first;
    {
        tg::gradient_tape inner;
        const tensor<double> y = tg::eval(f(x));
        first = inner.gradient(y, x);
    }
    const tensor<double> total = sum(first * v);
    return {first.to_vector(), outer.gradient(total, x).to_vector()};
}

const vector weights{0.7, -1.3, 0.4, 2.1, -0.6};

} // namespace

TEST_CASE("stored: ties share evenly") {
    CHECK(slope_at([](auto x) { return max(x); }, {2, 5, 5, 1}) == vector{0, 0.5, 0.5, 0});        // torch x.amax()
    CHECK(slope_at([](auto x) { return max(x, 0); }, {{1, 3}, {1, 2}}) == vector{0.5, 2, 0.5, 0}); // torch x.amax(0)
    // torch linalg.vector_norm(x, inf)
    CHECK(slope_at([](auto x) { return norm(x, inf); }, {3, -3, 1}) == vector{0.5, -0.5, 0});
}

TEST_CASE("stored: products beside zeros") {
    const auto all = [](auto x) { return prod(x); };
    CHECK(slope_at(all, {2, 0, 4}) == vector{0, 8, 0});       // torch x.prod()
    CHECK(slope_at(all, {2, 0, 0, 3}) == vector{0, 0, 0, 0}); // torch
    // torch x.prod(1)
    CHECK(near(slope_at([](auto x) { return prod(x, 1); }, {{2, 0, 4}, {1, 3, 5}}), {0, 8, 0, 30, 10, 6}));
    const auto running = [](auto x) { return cumulative_product(x); };
    CHECK(slope_at(running, {2, 0, 3, 4}) == vector{1, 118, 0, 0});                    // torch x.cumprod(0)
    CHECK(slope_at(running, {2, 0, 3, 0, 5}) == vector{1, 22, 0, 0, 0});               // torch
    CHECK(cumulative_product(tensor<double>{2, 0, 3}).to_vector() == vector{2, 0, 0}); // numpy cumprod
    CHECK(cumulative_product(tensor<std::int32_t>{1, 2, 3, 4}).to_vector() == std::vector<std::int32_t>{1, 2, 6, 24});
}

TEST_CASE("first and second derivatives of prod beside 0, 1, 2 and 3 zeros are the polynomial's") {
    for (int zeros = 0; zeros <= 3; ++zeros) {
        vector x{1.5, -2, 0.75, 3, -1.25};
        for (int z = 0; z < zeros; ++z) x[static_cast<std::size_t>((2 * z + 1) % 5)] = 0;
        vector first(5), second(5, 0.0);
        for (std::size_t i = 0; i < 5; ++i) {
            first[i] = product_without(x, {i});
            for (std::size_t k = 0; k < 5; ++k)
                if (k != i) second[i] += weights[k] * product_without(x, {i, k});
        }
        const auto [g, h] = two_gradients([](auto v) { return prod(v); }, tg::from_range<double>(x, {5}),
                                          tg::from_range<double>(weights, {5}));
        CHECK_MESSAGE(near(g, first), zeros << " zeros, first");
        CHECK_MESSAGE(near(h, second), zeros << " zeros, second");
    }
}

TEST_CASE("first and second derivatives of cumulative_product beside 0 to 3 zeros, in all four kinds") {
    for (int kind = 0; kind < 4; ++kind)
        for (int zeros = 0; zeros <= 3; ++zeros) {
            const bool reverse = kind % 2 != 0, exclusive = kind / 2 != 0;
            vector x{1.5, -2, 0.75, 3, -1.25};
            for (int z = 0; z < zeros; ++z) x[static_cast<std::size_t>((2 * z + 1) % 5)] = 0;
            // y_k is the product over the elements that count for k; polynomials are linear in each element.
            vector first(5, 0.0), second(5, 0.0);
            const auto counts = [&](std::size_t i, std::size_t k) {
                return (i == k && !exclusive) || (reverse ? i > k : i < k);
            };
            for (std::size_t k = 0; k < 5; ++k)
                for (std::size_t i = 0; i < 5; ++i) {
                    if (!counts(i, k)) continue;
                    double others = 1;
                    for (std::size_t j = 0; j < 5; ++j)
                        if (j != i && counts(j, k)) others *= x[j];
                    first[i] += others;
                    for (std::size_t l = 0; l < 5; ++l) {
                        if (l == i || !counts(l, k)) continue;
                        double rest = 1;
                        for (std::size_t j = 0; j < 5; ++j)
                            if (j != i && j != l && counts(j, k)) rest *= x[j];
                        second[i] += weights[l] * rest;
                    }
                }
            const auto [g, h] = two_gradients(
                [&](auto v) {
                    return cumulative_product(v, 0, {reverse, exclusive});
                },
                tg::from_range<double>(x, {5}), tg::from_range<double>(weights, {5}));
            CHECK_MESSAGE(near(g, first), zeros << " zeros, kind " << kind << ", first");
            CHECK_MESSAGE(near(h, second), zeros << " zeros, kind " << kind << ", second");
        }
}

TEST_CASE("stored: norms and their derivatives at zero") {
    const tensor<double> x{3, -4, 0};
    // torch linalg.vector_norm(x, o)
    CHECK(norm(x).item() == 5);
    CHECK(norm(x, 1).item() == 7);
    CHECK(norm(x, inf).item() == 4);
    CHECK(norm(x, -inf).item() == 0);
    CHECK(norm(x, 0).item() == 2);
    CHECK(norm(x, 3).item() == doctest::Approx(4.497941445275415).epsilon(1e-15));
    CHECK(norm(x, -1).item() == 0);
    CHECK(slope_at([](auto v) { return norm(v); }, {0, 0}) == vector{0, 0});      // torch
    CHECK(slope_at([](auto v) { return norm(v, 1); }, {0, -2}) == vector{0, -1}); // torch
    CHECK(near(slope_at([](auto v) { return norm(v, 3); }, {0, -2, 1}), {0, -0.9244816991341795, 0.2311204247835449}));
    CHECK(slope_at([](auto v) { return norm(v, 3); }, {0, 0}) == vector{0, 0});
    CHECK(slope_at([](auto v) { return norm(v, 0); }, {0, 2}) == vector{0, 0});
    CHECK(slope_at([](auto v) { return stddev(v); }, {2, 2, 2}) == vector{0, 0, 0}); // torch x.std(correction=0)
}

TEST_CASE("stored: variance, softmax, logsumexp") {
    const tensor<double> x{1, 2, 4, 8}, rows{{1, 2, 4}, {3, 5, 9}};
    CHECK(variance(x).item() == 7.1875);                                              // numpy var(ddof=0)
    CHECK(near(variance(x, {}, {.correction = 1}).to_vector(), {9.583333333333334})); // numpy var(ddof=1)
    CHECK(near(stddev(x, {}, {.correction = 1}).to_vector(), {3.095695936834452}));
    CHECK(near(variance(rows, 1, {.correction = 1}).to_vector(), {7.0 / 3, 28.0 / 3})); // numpy var(axis=1, ddof=1)
    const auto [m, v] = moments(rows, 1, {.keepdims = true});
    CHECK(m.shape() == tg::shape{2, 1});
    CHECK(near(m.to_vector(), {7.0 / 3, 17.0 / 3}));
    CHECK(near(v.to_vector(), {14.0 / 9, 56.0 / 9}));
    // torch softmax(x, 0)
    const tensor<double> square{{1, 2}, {3, 5}};
    CHECK(near(softmax(square, 0).to_vector(),
               {0.11920292202211755, 0.04742587317756679, 0.8807970779778823, 0.9525741268224334}));
    CHECK(near(slope_at([](auto s) { return softmax(s, 0); }, square),
               {-0.20998717080701296, -0.0903533194618243, 0.20998717080701343, 0.09035331946182379}));
    // Far from zero nothing overflows; infinities alone give infinity.
    CHECK(near(softmax(tensor<double>{1e4, 1e4 - 1, -1e4}).to_vector(),
               {1 / (1 + std::exp(-1.0)), 1 / (1 + std::exp(1.0)), 0}));
    CHECK(logsumexp(tensor<double>{-1e4, -1e4}).item() == doctest::Approx(-1e4 + std::log(2.0)).epsilon(1e-15));
    CHECK(logsumexp(tensor<float>{1e4f, -1e4f}).item() == 1e4f);
    CHECK(log_softmax(tensor<double>{1e4, -1e4}).to_vector() == vector{0, -2e4});
    CHECK(log_softmax(tensor<float>{1e8f, 1e8f}).to_vector() ==
          std::vector<float>(2, static_cast<float>(-std::log(2.0))));
    CHECK(near(log_softmax(tensor<double>{inf, 3}).to_vector(), {not_a_number, not_a_number}));
    CHECK(near(log_softmax(tensor<double>{-inf, -inf}).to_vector(), {not_a_number, not_a_number}));
    CHECK(log_softmax(tensor<double>{-inf, 3}).to_vector() == vector{-inf, 0});
    CHECK(near(slope_at([](auto s) { return logsumexp(s); }, {-inf, 3}), {0, 1}));              // torch
    CHECK(near(softmax(tensor<double>{-inf, -inf}).to_vector(), {not_a_number, not_a_number})); // torch
}

TEST_CASE("stored: positions") {
    using positions = std::vector<std::int32_t>;
    CHECK(argmax(tensor<double>{1, 5, 5}).item() == 1); // numpy
    CHECK(argmin(tensor<double>{2, 1, 1}).item() == 1);
    CHECK(argmax(tensor<double>{1, not_a_number, 7, not_a_number}).item() == 1);
    CHECK(argmin(tensor<double>{1, not_a_number, 7, not_a_number}).item() == 1);
    const tensor<double> x{{1, 9}, {9, 2}};
    CHECK(argmax(x).item() == 1);
    CHECK(argmax(x, 0).to_vector() == positions{1, 0});
    CHECK(argmax(x, -1, {.keepdims = true}).shape() == tg::shape{2, 1});
    const auto [values, indices] = top_k(tensor<double>{3, 1, 3, 7}, 3);
    CHECK(values.to_vector() == vector{7, 3, 3});     // torch topk; PyTorch leaves the order of equal elements open,
    CHECK(indices.to_vector() == positions{3, 0, 2}); // here as in TensorFlow the first comes first
    CHECK(slope_at([](auto v) { return top_k(v, 2).values; }, {3, 1, 4, 7}) == vector{0, 0, 2, 1});
}

TEST_CASE("stored: integers and bool") {
    CHECK(sum(tensor<std::uint8_t>{200, 100}).item() == 44);         // numpy sum(dtype=uint8)
    CHECK(prod(tensor<std::int32_t>{1 << 20, 1 << 20}).item() == 0); // numpy prod(dtype=int32)
    const std::int64_t large = (std::int64_t{1} << 60) + 1;          // no double holds it
    CHECK(sum(tensor<std::int64_t>{large, 1, -1}).item() == large);
    CHECK(max(tensor<std::int64_t>{large, large - 1}).item() == large);
    CHECK(argmax(tensor<std::int64_t>{large - 1, large}).item() == 1);
    CHECK(cumulative_sum(tensor<std::int64_t>{large, 1}).to_vector() == std::vector<std::int64_t>{large, large + 1});
    CHECK(max(tensor<std::int32_t>{-5, -3, -9}).item() == -3);
    CHECK(min(tensor<std::uint8_t>{5, 200}).item() == 5);
    CHECK(sort(tensor<std::int32_t>{3, -1, 2}).to_vector() == std::vector<std::int32_t>{-1, 2, 3});
    CHECK(sort(tensor<std::uint8_t>{3, 250, 2}, {.descending = true}).to_vector() ==
          std::vector<std::uint8_t>{250, 3, 2});
    CHECK(count_nonzero(tensor<double>{0, not_a_number, -0.0, 2}).item() == 2); // numpy
    const auto nothing = tg::zeros<double>({2, 0});
    CHECK(any(nothing > 0, 1).to_vector() == std::vector<bool>{false, false}); // numpy
    CHECK(tg::all(nothing > 0, 1).to_vector() == std::vector<bool>{true, true});
    auto many = tg::zeros<float>({70001});
    CHECK(!any(many != 0).item());
    many.mutable_data()[70000] = 1;
    CHECK(any(many != 0).item());
    CHECK(!tg::all(many != 0).item());
    CHECK(message_of([] { mean(tensor<std::int32_t>{1, 2}); }).find("mean: the elements are integers") == 0);
    CHECK(message_of([] { any(tensor<float>{1, 2}); }).find("any, all: the elements must be bool") == 0);
    CHECK(message_of([] { max(tensor<bool>{true}); }).find("max, min: the elements are bool") == 0);
    CHECK(message_of([] { top_k(tensor<float>{1, 2}, 3); }).find("top_k: k is outside") == 0);
    CHECK(message_of([] { top_k(tensor<float>{1, 2}, -1); }).find("top_k: k is outside") == 0);
    CHECK(message_of([] { sort(tensor<float>{1, 2}, 1); }).find("outside the rank") != std::string::npos);
    CHECK(message_of([] { norm(tensor<float>{1, 2}, 2, 1); }).find("outside the rank") != std::string::npos);
}

TEST_CASE("accuracy: ten million floats, a large mean, any number of threads") {
    const std::int64_t n = 10'000'000;
    auto x = tensor<float>::uninitialized({n});
    sequence random(3);
    double exact = 0;
    for (std::int64_t i = 0; i < n; ++i) exact += x.mutable_data()[i] = static_cast<float>(random.between(0, 2));
    tg::set_thread_count(1);
    const float total = sum(x).item(), average = mean(x).item();
    const auto columns = sum(reshape(x, {n / 10, 10}), 0).to_vector();
    tg::set_thread_count(2);
    CHECK(sum(x).item() == total);
    CHECK(mean(x).item() == average);
    CHECK(sum(reshape(x, {n / 10, 10}), 0).to_vector() == columns);
    tg::set_thread_count(0);
    CHECK(std::abs(total / exact - 1) < 1e-6);
    CHECK(std::abs(average / (exact / static_cast<double>(n)) - 1) < 1e-6);
    // The same number over and over rounds the same way each time; blocks of 64 and double between them bound that.
    const auto same = tg::full<float>({n}, 0.1f);
    CHECK(std::abs(sum(same).item() / (static_cast<double>(0.1f) * n) - 1) < 1e-6);
    CHECK(std::abs(sum(reshape(same, {n / 10, 10}), 0).data()[3] / (static_cast<double>(0.1f) * n / 10) - 1) < 1e-6);

    // What the header of variance states: 4 epsilon of the variance and (epsilon |mean|)^2.
    const double epsilon = std::numeric_limits<float>::epsilon();
    for (const double spread : {1.0, 0.05}) {
        const std::int64_t count = 100000;
        auto far = tensor<float>::uninitialized({count});
        double centre = 0, squares = 0;
        for (std::int64_t i = 0; i < count; ++i)
            centre += far.mutable_data()[i] = static_cast<float>(1e4 + spread * random.between(-1, 1));
        centre /= static_cast<double>(count);
        for (float v : far.values()) squares += (v - centre) * (v - centre);
        squares /= static_cast<double>(count);
        const double bound = 4 * epsilon * squares + std::pow(epsilon * centre, 2);
        CHECK(std::abs(variance(far).item() - squares) <= bound);
    }
}

} // namespace stored_reductions_test
