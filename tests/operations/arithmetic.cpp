#include <operations/formula.hpp>

namespace formula_rows {

namespace {

// Correctly rounded by IEEE 754.
row rounded(std::vector<interval> domains = {}, values awkward = {}) {
    return {.domains = std::move(domains), .ulps = 0.5, .awkward = std::move(awkward)};
}

std::vector<operation> arithmetic() {
    std::vector<operation> made{
        formula<floating, floating>("add", TG_FORMULA_2(x + y), {},
                                    {rounded({}, {{0, -0.0}, {-0.0, -0.0}, {inf, -inf}, {nan, 1}, {5e-324, 5e-324}})}),
        formula<floating, floating>("subtract", TG_FORMULA_2(x - y), {},
                                    {rounded({}, {{0, 0}, {-0.0, 0}, {inf, inf}})}),
        formula<floating, floating>("multiply", TG_FORMULA_2(x * y), {{-30, 30}, {-30, 30}},
                                    {rounded({}, {{0, -1}, {0, inf}, {-inf, 2}, {nan, 0}})}),
        formula<floating, floating>("divide", TG_FORMULA_2(x / y), {{-1e3, 1e3}, {0.2, 1e3}},
                                    {rounded({{}, positive}, {{1, 0}, {1, -0.0}, {0, 0}, {-1, inf}, {inf, inf}})}),
        formula<floating>("negate", TG_FORMULA_1(-x), {}, {rounded({}, {{0}, {-0.0}, {inf}, {nan}})}),
        formula<floating>("square", TG_FORMULA_1(square(x)), {{-20, 20}}, {rounded({}, {{0}, {-0.0}, {-inf}, {nan}})}),
        // Numbers take the element type of what is beside them: in float the literal is rounded to float.
        formula_of_rows<floating>("number * x - number", TG_FORMULA_1(0.25 * x - 3), {{.ulps = 1}}),
        formula<double>("plus_number", TG_FORMULA_1(x + k)),
        formula<double>("number_minus", TG_FORMULA_1(k - x)),
        formula<double>("minus_number", TG_FORMULA_1(x - k)),
        formula<double>("times_number", TG_FORMULA_1(k * x)),
        formula<double>("number_over", TG_FORMULA_1(k / x), {{0.2, 1e3}},
                        {{.with = {{}, {2}}, .domains = {positive}, .ulps = 0.5}}),
        formula<double>("over_number", TG_FORMULA_1(x / (k + 3))),
        // Formulas of several operations, so that eager mode fuses, too.
        formula_of_rows<double, double>("x * x + x y", TG_FORMULA_2(x * x + x * y),
                                        {{.ulps = 3, .floor = 8, .why = "two products and a sum may cancel"}}),
        formula<double, double, double>("multiply_add", TG_FORMULA_3(x * y + z), {{-20, 20}, {-20, 20}, {}}),
        formula<double, double>("swish_gap", TG_FORMULA_2(x * sigmoid(x) - tanh(y * 0.5) * x), {{-20, 20}, {}}),
        formula<double>("shared_twice", TG_FORMULA_1(x * x * (1 - x) + exp(-(x * x))), {{-8, 8}}),
        formula<double, double>("huber_like", TG_FORMULA_2(where(x > y, square(x - y), k * (y - x))),
                                {{-20, 20}, {-20, 20}}),
        formula_of_rows<floating>("named arithmetic",
                                  TG_FORMULA_1(add(multiply(x, 2), negate(divide(subtract(x, 1), 1)))),
                                  {{.floor = 4, .why = "the sum may cancel"}}),
    };
    for (operation& each : made)
        if (each.types.size() > 1) each.weight *= 2;
    return made;
}

} // namespace

} // namespace formula_rows

namespace tapegraph::testing {
std::vector<operation> arithmetic_operations() { return formula_rows::arithmetic(); }
} // namespace tapegraph::testing
