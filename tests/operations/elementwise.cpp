#include <operations/formula.hpp>

namespace formula_rows {

namespace {

constexpr double tiny = 5e-324;
const interval inside{-0.95, 0.95};
const values everywhere{{0}, {-0.0}, {inf}, {-inf}, {nan}, {1}, {-1}, {tiny}, {1e-9}, {-1e-9}};

row at(interval where, values awkward) { return {.domains = {where}, .awkward = std::move(awkward)}; }
// Beside what is awkward for every function.
row near(interval where, values more) {
    more.insert(more.end(), everywhere.begin(), everywhere.end());
    return at(where, std::move(more));
}
// Nothing rounds, and no derivative passes.
row stepwise(std::vector<interval> domains, values awkward) {
    return {.domains = std::move(domains), .ulps = 0, .derivatives = 0, .awkward = std::move(awkward)};
}

// Elementary functions beyond those of function.cpp. They are accurate to about two units in the last place
// (docs/accuracy.md); 4 are allowed, which tells a wrong formula, branch or lane from rounding.
std::vector<operation> elementwise() {
    const values halves{{0},   {-0.0}, {0.5}, {-0.5}, {1.5},       {2.5}, {-2.5},
                        {inf}, {-inf}, {nan}, {1e30}, {0.4999999}, {tiny}};
    const values quotients{{7, 2},   {-7, 2}, {7, -2}, {-7, -2}, {6, 3},   {-6, 3},  {0, 5},     {0, -5},
                           {1, inf}, {5, 0},  {-5, 0}, {0, 0},   {nan, 1}, {1, nan}, {5.25, 0.5}};
    std::vector<operation> made{
        formula<floating>("exp2", TG_FORMULA_1(exp2(x)), {{-8, 4}},
                          {near(moderate, {{10}, {-10}, {127}, {-126}, {1030}, {-1080}, {0.5}})}),
        formula<floating>("log2", TG_FORMULA_1(log2(x)), {{0.2, 1e3}},
                          {near(positive, {{8}, {0.125}, {1e30}, {1e-30}})}),
        formula<floating>("log10", TG_FORMULA_1(log10(x)), {{0.2, 1e3}},
                          {near(positive, {{8}, {0.125}, {1e30}, {1e-30}})}),
        formula<floating>("tan", TG_FORMULA_1(tan(x)), {{-1.3, 1.3}},
                          {near({-1.2, 1.2}, {{1000.5}, {-100000}, {1.5}, {3}})}),
        formula<floating>("asin", TG_FORMULA_1(asin(x)), {{-0.9, 0.9}},
                          {near(inside, {{0.5}, {-0.5}, {1.5}, {-2}, {0.999999}})}),
        formula<floating>("acos", TG_FORMULA_1(acos(x)), {{-0.9, 0.9}}, {near(inside, {{0.5}, {-0.5}, {1.5}, {-2}})}),
        formula<floating>("atan", TG_FORMULA_1(atan(x)), {}, {near({-3, 3}, {{1e30}, {-1e30}, {0.41}})}),
        formula<floating>("sinh", TG_FORMULA_1(sinh(x)), {{-6, 6}}, {near(moderate, {{88}, {-88}, {800}})}),
        formula<floating>("cosh", TG_FORMULA_1(cosh(x)), {{-6, 6}}, {near(moderate, {{88}, {-88}, {800}})}),
        formula<floating>("asinh", TG_FORMULA_1(asinh(x)), {}, {near({-3, 3}, {{1e10}, {-1e30}, {0.25}})}),
        formula<floating>("acosh", TG_FORMULA_1(acosh(x)), {{1.2, 1e3}},
                          {near({1.2, 4}, {{1e10}, {1e30}, {-3}, {-1e6}, {0.99}})}),
        formula<floating>("atanh", TG_FORMULA_1(atanh(x)), {{-0.8, 0.8}}, {near({-0.9, 0.9}, {{2}, {-3}, {0.9375}})}),
        formula<floating>("erfc", TG_FORMULA_1(erfc(x)), {}, {near(moderate, {{0.24}, {3}, {8}, {-6}, {30}})}),
        formula<floating>("cbrt", TG_FORMULA_1(cbrt(x)), {{0.1, 1e3}}, {near(positive, {{27}, {-8}, {1e30}, {1e-30}})}),
        formula<floating>("reciprocal", TG_FORMULA_1(reciprocal(x)), {{0.2, 1e3}},
                          {at(positive, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {4}})}),
        formula_of_rows<floating>("pow<5>", TG_FORMULA_1(pow<5>(x)),
                                  {at(moderate, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {-1}})}),
        formula_of_rows<floating>("pow<-3>", TG_FORMULA_1(pow<-3>(x)),
                                  {at(positive, {{0}, {-0.0}, {inf}, {-inf}, {nan}, {-2}})}),
        formula<double>("cube", TG_FORMULA_1(pow<3>(x)), {{-9, 9}}),
        formula<double>("inverse_square", TG_FORMULA_1(pow<-2>(x)), {{0.2, 1e3}}),
        formula<floating, floating>(
            "atan2", TG_FORMULA_2(atan2(x, y)), {{}, {0.2, 1e3}},
            {{.domains = {positive},
              .awkward =
                  {{0, 0}, {0, -1}, {-0.0, -1}, {inf, -inf}, {nan, 1}, {1, nan}, {1e30, 1e-30}, {3, -inf}, {-2, -2}}}}),
        formula<floating, floating>(
            "hypot", TG_FORMULA_2(hypot(x, y)), {{0.2, 1e3}, {}},
            {{.domains = {positive},
              .awkward = {{0, 0}, {3, 4}, {inf, nan}, {nan, 1}, {-inf, 1}, {3e30, 4e30}, {3e-30, 4e-30}}}}),
        formula<floating, floating>(
            "squared_difference", TG_FORMULA_2(squared_difference(x, y)), {{-20, 20}, {-20, 20}},
            {{.domains = {{2, 4}, {-2, 1}}, .awkward = {{0, 0}, {inf, 1}, {inf, inf}, {nan, 1}}}}),
        formula<double, double, double>("lerp", TG_FORMULA_3(lerp(x, y, z)), {{-20, 20}, {-20, 20}, {-20, 20}},
                                        {{.shapes = {{{7}, {7}, {7}}, {{3, 1}, {4}, {}}, {{700}, {1}, {700}}},
                                          .domains = {{0.5, 2}, {0.5, 2}, {0, 1}}}}),
        formula<double>("full_like", TG_FORMULA_1(full_like(x, k))),

        formula<floating>("floor", TG_FORMULA_1(floor(x)), {}, {stepwise({{-4, 4}}, halves)}),
        formula<floating>("ceil", TG_FORMULA_1(ceil(x)), {}, {stepwise({{-4, 4}}, halves)}),
        formula<floating>("round", TG_FORMULA_1(round(x)), {}, {stepwise({{-4, 4}}, halves)}),
        formula<floating>("trunc", TG_FORMULA_1(trunc(x)), {}, {stepwise({{-4, 4}}, halves)}),
        formula<floating>("is_nan", TG_FORMULA_1(is_nan(x)), {}, {stepwise({}, everywhere)}),
        formula_of_rows<floating>("is_inf", TG_FORMULA_1(is_inf(x)), {stepwise({}, everywhere)}),
        formula<floating>("is_finite", TG_FORMULA_1(is_finite(x)), {}, {stepwise({}, everywhere)}),
        formula<floating, floating>("floor_divide", TG_FORMULA_2(floor_divide(x, y)), {{-30, 30}, {0.3, 30}},
                                    {stepwise({{-9, 9}, positive}, quotients)}),
        formula<double, double>("remainder", TG_FORMULA_2(remainder(x, y)), {{-30, 30}, {0.3, 30}}),
        formula_of_rows<floating, floating>(
            "x % y", [](const auto& x, const auto& y, const attributes&) { return x % y; },
            [](real x, real y, real) { return remainder(x, y); }, "x % y",
            {{.domains = {{-0.9, 1.9}, {2, 3}},
              .ulps = 0.5,
              .away = 0.01,
              .awkward = quotients}}), // jumps at multiples of y
    };
    // Beside the functions of function.cpp these are many: seldom each, so that programs stay mixtures.
    for (operation& each : made)
        if (each.types.size() == 1) each.weight /= 2;
    return made;
}

} // namespace

} // namespace formula_rows

namespace tapegraph::testing {
std::vector<operation> elementwise_operations() { return formula_rows::elementwise(); }
} // namespace tapegraph::testing
