#include <operations/formula.hpp>

namespace formula_rows {

namespace {

// The library's own functions are accurate to a few units in the last place; tools/ulp_sweep measures them densely. Here 4 of
// them are allowed, which tells a wrong formula, branch or lane from rounding.
row closely(std::vector<interval> domains, values awkward) {
    return {.domains = std::move(domains), .awkward = std::move(awkward)};
}

std::vector<operation> functions() {
    std::vector<operation> made{
        formula<floating>("exp", TG_FORMULA_1(exp(x)), {{-5, 3}},
                          {closely({}, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {88}, {-80}, {800}, {-800}})}),
        formula<floating>("expm1", TG_FORMULA_1(expm1(x)), {{-5, 3}},
                          {closely({}, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {1e-9}, {-1e-9}, {-60}, {800}})}),
        formula<floating>("log", TG_FORMULA_1(log(x)), {{0.2, 1e3}},
                          {closely({positive}, {{0}, {-0.0}, {1}, {inf}, {-1}, {nan}, {1e-30}, {1e30}})}),
        formula<floating>("log1p", TG_FORMULA_1(log1p(x)), {{-0.7, 1e3}},
                          {closely({{-0.5, 3}}, {{0}, {-0.0}, {-1}, {-2}, {inf}, {nan}, {1e-9}, {-1e-9}, {1e20}})}),
        formula<floating>("sqrt", TG_FORMULA_1(sqrt(x)), {{0.1, 1e3}},
                          {closely({positive}, {{0}, {-0.0}, {4}, {inf}, {-1}, {nan}})}),
        formula<floating>("rsqrt", TG_FORMULA_1(rsqrt(x)), {{0.1, 1e3}},
                          {closely({positive}, {{0}, {4}, {inf}, {-1}, {nan}})}),
        formula<floating>("sin", TG_FORMULA_1(sin(x)), {{-30, 30}},
                          {closely({{-4, 4}}, {{0}, {-0.0}, {inf}, {nan}, {1000.5}, {-1e6}})}),
        formula<floating>("cos", TG_FORMULA_1(cos(x)), {{-30, 30}},
                          {closely({{-4, 4}}, {{0}, {-0.0}, {-inf}, {nan}, {1000.5}, {-1e6}})}),
        formula<floating>("sigmoid", TG_FORMULA_1(sigmoid(x)), {{-30, 30}},
                          {closely({}, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {40}, {-40}, {-80}, {90}})}),
        formula<floating>("tanh", TG_FORMULA_1(tanh(x)), {},
                          {closely({}, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {1e-9}, {20}, {-20}, {0.62}})}),
        formula<floating>("softplus", TG_FORMULA_1(softplus(x)), {{-30, 30}},
                          {closely({}, {{0}, {inf}, {-inf}, {nan}, {-40}, {40}, {1000}, {-80}})}),
        formula<floating>("erf", TG_FORMULA_1(erf(x)), {},
                          {closely({}, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {1e-9}, {4}, {-6}, {0.84375}})}),
        formula<floating, floating>("pow", TG_FORMULA_2(pow(x, y)), {{0.2, 4}, {-2, 3}},
                                    {closely({positive, {-2, 2.5}}, {{0, 0},
                                                                     {0, 2},
                                                                     {0, -1},
                                                                     {-2, 3},
                                                                     {-2, 2},
                                                                     {-2, 0.5},
                                                                     {1, inf},
                                                                     {2, -inf},
                                                                     {nan, 0},
                                                                     {1, nan},
                                                                     {inf, -1},
                                                                     {-0.0, 3},
                                                                     {10, 30}})}),
        // An exponent that is a number is a formula of one tensor.
        formula_of_rows<double>("pow number", TG_FORMULA_1(pow(x, 3)), {{}}),
        // Fused: one kernel, one adjoint kernel for both operands.
        formula_of_rows<double, double>(
            "tanh(x y + exp(-y)) sin x", TG_FORMULA_2(tanh(x * y + exp(-y)) * sin(x)),
            {{.domains = {{-1, 1}, {-1, 1}}, .ulps = 8, .floor = 1, .why = "x y + exp(-y) may cancel"}}),
    };
    for (operation& each : made)
        if (each.types.size() > 1) each.weight *= 2;
    return made;
}

} // namespace

} // namespace formula_rows

namespace tapegraph::testing {
std::vector<operation> function_operations() { return formula_rows::functions(); }
} // namespace tapegraph::testing
