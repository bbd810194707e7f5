#include <operations/formula.hpp>

namespace formula_rows {

namespace {

constexpr double kink = 0.01; // finite differences across a kink mean nothing
const values far_and_near{{0}, {-0.0}, {inf}, {-inf}, {nan}, {1000}, {-1000}, {30}, {-30}, {1e-9}, {1e30}};

// Built on functions of about two units in the last place, with a few roundings on top: 8 are allowed.
row roughly(row more = {}) {
    if (more.domains.empty()) more.domains = {{-2.5, 2.5}};
    if (more.why.empty()) more.ulps = 8;
    more.awkward = far_and_near;
    return more;
}

std::vector<operation> activations() {
    std::vector<operation> made{
        formula<floating>("relu6", TG_FORMULA_1(relu6(x)), {}, {roughly({.domains = {{-2, 5.9}}, .away = kink})}),
        formula<floating>("leaky_relu", TG_FORMULA_1(leaky_relu(x, k)), {},
                          {roughly({.with = {{}, {0.25}}, .away = kink})}),
        formula<floating, floating>("leaky_relu_tensor", TG_FORMULA_2(leaky_relu(x, y)), {{-30, 30}, {-30, 30}},
                                    {{.domains = {{-2, 2}, {0.1, 0.9}}, .away = kink}}),
        formula<double>("elu", TG_FORMULA_1(elu(x, k)), {{-30, 1e3}}),
        formula_of_rows<floating>("elu by default", TG_FORMULA_1(elu(x)), {roughly({.away = kink})}),
        formula<double>("selu", TG_FORMULA_1(selu(x)), {{-30, 500}}, {roughly({.away = kink})}),
        formula<floating>("softsign", TG_FORMULA_1(softsign(x)), {}, {roughly({.domains = {{0.1, 3}}})}),
        formula<floating>("log_sigmoid", TG_FORMULA_1(log_sigmoid(x)), {{-30, 30}}, {roughly()}),
        formula<floating, floating>("sigmoid_cross_entropy_with_logits",
                                    TG_FORMULA_2(sigmoid_cross_entropy_with_logits(x, y)), {{-30, 30}, {0, 1}},
                                    {{.domains = {{-2.5, 2.5}, {0, 1}},
                                      .ulps = 8,
                                      .awkward = {{0, 0},
                                                  {-0.0, 1},
                                                  {inf, 1},
                                                  {inf, 0},
                                                  {-inf, 0},
                                                  {-inf, 1},
                                                  {nan, 0.5},
                                                  {0, nan},
                                                  {1000, 1},
                                                  {1000, 0.25},
                                                  {-1000, 0},
                                                  {30, 1},
                                                  {-30, 1e-9}}}}),
        formula<floating>("gelu", TG_FORMULA_1(gelu(x)), {{-30, 30}}, // at -30 in double: 900 times the rounding
                          {roughly({.ulps = 2000, .why = "the rounding of x / sqrt 2 grows by x^2 in the tail"})}),
        formula<floating>("gelu_tanh", TG_FORMULA_1(gelu(x, tapegraph::approximate)), {{-30, 30}},
                          {roughly({.ulps = 16, .floor = 1, .why = "1 + tanh cancels in the reference"})}),
        formula<floating>("swish", TG_FORMULA_1(swish(x)), {{-30, 30}}, {roughly()}),
        formula<floating>("mish", TG_FORMULA_1(mish(x)), {{-30, 30}}, {roughly()}),
        formula<floating>("hard_sigmoid", TG_FORMULA_1(hard_sigmoid(x)), {},
                          {roughly({.floor = 1})}), // x + 3 cancels near -3
        formula<floating>("hard_swish", TG_FORMULA_1(hard_swish(x)), {{-30, 30}}, {roughly({.floor = 1})}),
        formula<floating, floating, floating>(
            "clip", TG_FORMULA_3(clip(x, y, z)), {{-20, 20}, {-20, 20}, {-20, 20}},
            {{.shapes = {{{7}, {7}, {7}}, {{}, {}, {}}, {{3, 1}, {1, 4}, {}}, {{0}, {1}, {1}}, {{700}, {1}, {}}},
              .domains = {{-3, 3}, {-1.5, -1}, {1, 1.5}},
              .ulps = 0,
              .apart = true,
              .awkward = {{nan, 0, 1}, {inf, 0, 1}, {-inf, 0, 1}, {5, 3, 2}, {1, 1, 1}}}}),
        formula<double>("clip_numbers", TG_FORMULA_1(clip(x, -0.9, k))),
    };
    for (operation& each : made)
        if (each.types.size() == 1) each.weight /= 2;
    return made;
}

} // namespace

} // namespace formula_rows

namespace tapegraph::testing {
std::vector<operation> activation_operations() { return formula_rows::activations(); }
} // namespace tapegraph::testing
