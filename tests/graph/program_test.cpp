#include <support/builders.hpp>

#include <tapegraph/runtime/call_observer.hpp>

#include <doctest/doctest.h>

#include <string>

namespace program_test {

namespace tg = tapegraph;
using namespace builders;

namespace {

template <class Builder>
runner make() {
    static_assert(first_problem<Builder>() == nullptr);
    return runner(tg::ir::compile_program<Builder>());
}

// What a program throws, or an empty text.
template <class Error, class F>
std::string message(F&& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

struct scaled_sum { // y = 2 x w, per record; s = sum of everything
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {3}), w = variable(t, "w", {3});
        const node y = x * w * 2;
        output(t, "y", y);
        output(t, "s", sum(y));
    }
};

struct two_symbols { // outer product of two vectors and a mean over both
    static constexpr void build(trace& t) {
        const node a = batch_input(t, "a", {}, "rows"), b = batch_input(t, "b", {}, "columns");
        const node product = matmul(expand_dims(a, 1), expand_dims(b, 0));
        output(t, "product", product);
        output(t, "mean", mean(product));
    }
};

struct same_symbol {
    static constexpr void build(trace& t) {
        output(t, "y", batch_input(t, "a") + batch_input(t, "b"));
    }
};

struct undecided { // two symbols that must turn out equal
    static constexpr void build(trace& t) {
        output(t, "y", batch_input(t, "a", {}, "n") + batch_input(t, "b", {}, "m"));
    }
};

} // namespace

TEST_CASE("batches grow, shrink and come back") {
    runner p = make<scaled_sum>();
    p.variables[0] = {1, 10, 100};
    p.program.set_variable(0, p.variables[0].data());
    for (const int n : {4, 1, 9, 3, 9, 0, 1000, 2}) {
        const std::vector<double> x = values(n * 3, static_cast<std::uint32_t>(n) + 1);
        p.feed(0, x, {n, 3});
        p.run();
        REQUIRE(p.output(0).size() == x.size());
        double total = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double y = 2 * (x[i] * p.variables[0][i % 3]);
            CHECK(p.output(0)[i] == y);
            total += y;
        }
        CHECK(p.scalar(1) == doctest::Approx(total)); // another order of summation
    }
}

TEST_CASE("a smaller batch runs in the arena of the larger one") {
    runner p = make<scaled_sum>();
    const std::vector<double> x = values(300, 1);
    p.feed(0, x, {100, 3});
    p.run();
    const std::size_t bytes = p.program.arena_bytes();
    const void* const place = p.program.output(0).data;
    p.feed(0, x, {7, 3});
    p.run();
    CHECK(p.program.arena_bytes() == bytes);
    CHECK(p.program.output(0).data == place);
    CHECK(p.program.output(0).extents[0] == 7);
}

TEST_CASE("symbols bind on their own") {
    runner p = make<two_symbols>();
    for (const auto& [m, n] : {std::pair{2, 5}, {50, 1}, {1, 50}, {3, 3}}) {
        const std::vector<double> a = values(m, 1), b = values(n, 2);
        p.feed(0, a, {m});
        p.feed(1, b, {n});
        p.run();
        double total = 0;
        REQUIRE(p.output(0).size() == a.size() * b.size());
        for (std::size_t i = 0; i < a.size(); ++i)
            for (std::size_t j = 0; j < b.size(); ++j) {
                CHECK(p.output(0)[i * b.size() + j] == a[i] * b[j]);
                total += a[i] * b[j];
            }
        CHECK(p.scalar(1) == doctest::Approx(total / (m * n)));
    }
}

namespace {

struct broadcast_over_rows { // [columns] over [rows, columns], an operand that nothing reads afterwards
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x", {}, "columns"), y = batch_input(t, "y", {}, "rows");
        const node a = x + 1, b = transpose(expand_dims(x, 1) * y);
        output(t, "v", a - b * 3);
    }
};

} // namespace

TEST_CASE("a buffer is shared only by values of one shape, whatever the symbols stand for") {
    // With one row both shapes have as many elements; planned for that, the next extents would fit in the same memory.
    runner p = make<broadcast_over_rows>();
    for (const auto& [rows, columns] : {std::pair{1, 8000}, {2, 4000}, {80, 100}, {1, 8000}}) {
        const std::vector<double> x = values(columns, 1), y = values(rows, 2);
        p.feed(0, x, {columns});
        p.feed(1, y, {rows});
        p.run();
        const std::vector<double> v = p.output(0);
        REQUIRE(v.size() == x.size() * y.size());
        bool equal = true;
        for (std::size_t i = 0; i < y.size(); ++i)
            for (std::size_t j = 0; j < x.size(); ++j) equal = equal && v[i * x.size() + j] == x[j] + 1 - x[j] * y[i] * 3;
        CHECK(equal);
    }
}

TEST_CASE("extents that contradict one another are refused") {
    const std::vector<double> x(8, 1.0);
    SUBCASE("one symbol") {
        runner p = make<same_symbol>();
        p.feed(0, x, {4});
        p.feed(1, x, {5});
        CHECK(message<tg::shape_error>([&] { p.run(); }) ==
              "input 'b': extent of axis 0 is 5, but another input has 4 there");
        p.feed(1, x, {4});
        p.run();
        CHECK(p.output(0) == std::vector<double>(4, 2.0));
    }
    SUBCASE("two symbols that were taken to be equal") {
        runner p = make<undecided>();
        p.feed(0, x, {4});
        p.feed(1, x, {5});
        CHECK(message<tg::shape_error>([&] { p.run(); }) == "extents that must be equal differ: n is 4, m is 5");
        p.feed(0, x, {5});
        p.run();
        CHECK(p.output(0).size() == 5);
    }
    SUBCASE("a number") {
        runner p = make<scaled_sum>();
        p.feed(0, x, {2, 4});
        CHECK(message<tg::shape_error>([&] { p.run(); }) == "input 'x': extent of axis 1 is 4, expected 3");
    }
}

TEST_CASE("feeds are checked") {
    runner p = make<same_symbol>();
    const std::vector<double> x(4, 1.0);
    p.feed(0, x, {4});
    CHECK(message<tg::argument_error>([&] { p.run(); }) == "input 'b' has not been fed");
    CHECK(message<tg::shape_error>([&] { p.feed(1, x, {2, 2}); }) == "input 'b' has shape [?], fed with [2, 2]");
    tg::buffer_view wrong;
    wrong.rank = 1;
    CHECK(message<tg::dtype_error>([&] { p.program.set_input(1, wrong); }) == "input 'b' is f64, fed with f32");
}

namespace {

struct scalar_parameter {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x"), rate(&t, t.input("rate", dtype::f64, {}, true));
        output(t, "y", x * rate);
        output(t, "narrow", eval(tg::cast<float>(rate)));
    }
};

struct makes_nan {
    static constexpr void build(trace& t) {
        const node x = batch_input(t, "x");
        enter(t, "block");
        const node y = log(x);
        output(t, "z", y * 0 + 1);
        output(t, "total", sum(y));
    }
};

} // namespace

TEST_CASE("a scalar parameter changes between runs") {
    runner p = make<scalar_parameter>();
    const std::vector<double> x{1, 2, 3};
    p.feed(0, x, {3});
    for (const double rate : {0.5, -3.0}) {
        p.program.set_parameter(1, rate);
        p.run();
        CHECK(p.output(0) == std::vector<double>{rate, 2 * rate, 3 * rate});
        CHECK(p.scalar(1) == rate);
    }
}

TEST_CASE("check_finite names the first operation, its scope and its line") {
    runner p = make<makes_nan>();
    const std::vector<double> good{1, 2, 3}, bad{1, 2, -3};
    p.feed(0, good, {3});
    p.run(true);
    p.feed(0, bad, {3});
    const std::string text = message<tg::numeric_error>([&] { p.run(true); });
    CHECK(text.find("element 2 of a result of shape [3] is not finite, in scope 'block' at program_test.cpp:") !=
          std::string::npos);
    CHECK(text.find("log: ") == 0);
    p.run(); // without the check it runs through
}

TEST_CASE("check_finite finds the same while a program is observed, step by step") {
    struct calls : tg::runtime::call_observer {
        int begun = 0, ended = 0;
        void begin(const tg::runtime::observed_call&) override { ++begun; }
        void end() override { ++ended; }
    } seen;
    runner p = make<makes_nan>();
    const std::vector<double> good{1, 2, 3}, bad{1, 2, -3};
    const tg::runtime::observer_scope watched(seen);
    p.feed(0, good, {3});
    p.run(true);
    CHECK(seen.begun > 0);
    CHECK(seen.ended == seen.begun);
    p.feed(0, bad, {3});
    const std::string text = message<tg::numeric_error>([&] { p.run(true); });
    CHECK(text.find("log: ") == 0);
    CHECK(text.find("element 2 of a result of shape [3] is not finite") != std::string::npos);
    p.run(); // nobody asked for the check
}

} // namespace program_test
