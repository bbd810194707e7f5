#include <ops/table.hpp>

namespace tapegraph::testing {

std::vector<row> arithmetic_rows() {
    std::vector<row> rows;
    const auto put = [&](row r, std::vector<std::vector<double>> awkward = {}) {
        r.ulps = 0.5; // correctly rounded by IEEE 754
        r.awkward = std::move(awkward);
        rows.push_back(std::move(r));
        return &rows.back();
    };
    put(binary(
            "add", [](auto x, auto y) { return x + y; }, {}, {}, [](real x, real y) { return x + y; }),
        {{0, -0.0}, {-0.0, -0.0}, {inf, -inf}, {nan, 1}, {5e-324, 5e-324}});
    put(binary(
            "subtract", [](auto x, auto y) { return x - y; }, {}, {}, [](real x, real y) { return x - y; }),
        {{0, 0}, {-0.0, 0}, {inf, inf}});
    put(binary(
            "multiply", [](auto x, auto y) { return x * y; }, {}, {}, [](real x, real y) { return x * y; }),
        {{0, -1}, {0, inf}, {-inf, 2}, {nan, 0}});
    put(binary(
            "divide", [](auto x, auto y) { return x / y; }, {}, positive, [](real x, real y) { return x / y; }),
        {{1, 0}, {1, -0.0}, {0, 0}, {-1, inf}, {inf, inf}});
    put(unary(
            "negate", [](auto x) { return -x; }, {}, [](real x) { return -x; }),
        {{0}, {-0.0}, {inf}, {nan}});
    put(unary(
            "square", [](auto x) { return square(x); }, {}, [](real x) { return x * x; }),
        {{0}, {-0.0}, {-inf}, {nan}});
    put(binary<false>(
            "x * x + x y", [](auto x, auto y) { return x * x + x * y; }, {}, {},
            [](real x, real y) { return x * x + x * y; }))
        ->ulps = 3; // two products and a sum may cancel; the floor is their size
    rows.back().floor = 8;
    // Numbers take the element type of what is beside them: in float the literal is rounded to float.
    put(unary(
            "number * x - number", [](auto x) { return 0.25 * x - 3; }, {}, [](real x) { return real(0.25) * x - 3; }))
        ->ulps = 1;
    put(unary<false>(
        "number / x", [](auto x) { return 2 / x; }, positive, [](real x) { return 2 / x; }));
    return rows;
}

} // namespace tapegraph::testing
