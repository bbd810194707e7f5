#include <operations/formula.hpp>

namespace formula_rows {

namespace {

const values pairs{{0, -0.0}, {1, 1}, {nan, 1}, {1, nan}, {nan, nan}, {inf, 1}, {1, -inf}, {-inf, nan}, {inf, inf}};

// Nothing here rounds, so values are equal. Where operands are equal, or at a kink, finite differences mean nothing.
row unequal() { return {.ulps = 0, .apart = true, .awkward = pairs}; }
row kinked(values awkward = {}) { return {.ulps = 0, .away = 0.01, .awkward = std::move(awkward)}; }
row question() { return {.ulps = 0, .derivatives = 0, .whole = true, .awkward = pairs}; } // so that ties are many
row flat(std::vector<interval> domains, values awkward = {}) {
    return {.domains = std::move(domains), .ulps = 0, .derivatives = 0, .awkward = std::move(awkward)};
}

std::vector<operation> selections() {
    std::vector<operation> made{
        formula<floating, floating>("maximum", TG_FORMULA_2(maximum(x, y)), {}, {unequal()}),
        formula<floating, floating>("minimum", TG_FORMULA_2(minimum(x, y)), {}, {unequal()}),
        formula<floating>("abs", TG_FORMULA_1(abs(x)), {}, {kinked({{0}, {-0.0}, {-inf}, {nan}, {-5e-324}})}),
        formula<floating>("sign", TG_FORMULA_1(sign(x)), {}, {kinked({{0}, {-0.0}, {-inf}, {nan}, {5e-324}})}),
        formula<floating>("relu", TG_FORMULA_1(relu(x)), {}, {kinked({{0}, {-0.0}, {inf}, {-inf}, {nan}})}),
        formula<bool, double, double>("where", TG_FORMULA_3(where(x, y, z))),
        formula<bool, double>("where_number", TG_FORMULA_2(where(x, y, k))),
        formula_of_rows<floating, floating, floating>("where x > 0", TG_FORMULA_3(where(x > 0, y, z)),
                                                      {{.shapes = {{{7}, {7}, {7}},
                                                                   {{}, {5}, {}},
                                                                   {{3, 1}, {1, 4}, {}},
                                                                   {{2, 3}, {3}, {2, 1}},
                                                                   {{0}, {0}, {1}},
                                                                   {{700}, {1}, {700}},
                                                                   {{5}, {2, 1}, {3, 1, 1}},
                                                                   {{181, 1}, {191}, {181, 191}}},
                                                        .ulps = 0,
                                                        .away = 0.01,
                                                        .awkward = {{1, nan, 2}, {-1, nan, 2}, {nan, 1, 2}}}}),
        formula_of_rows<floating>("where with numbers", TG_FORMULA_1(where(x > 0, 2 * x, -1)), {kinked()}),
        formula_of_rows<floating>("where number first", TG_FORMULA_1(where(x > 0, 0.5, x)), {kinked()}),

        formula<floating, floating>("less", TG_FORMULA_2(x < y), {}, {question()}),
        formula_of_rows<floating, floating>("less_equal", TG_FORMULA_2(x <= y), {question()}),
        formula_of_rows<floating, floating>("greater", TG_FORMULA_2(x > y), {question()}),
        formula<floating, floating>("greater_equal", TG_FORMULA_2(x >= y), {}, {question()}),
        formula<floating, floating>("equal", TG_FORMULA_2(x == y), {}, {question()}),
        formula<floating, floating>("not_equal", TG_FORMULA_2(x != y), {}, {question()}),
        formula<double, double>("less_named", TG_FORMULA_2(less(x, y))),
        formula<double, double>("greater_named", TG_FORMULA_2(greater(x, y))),
        formula<double>("less_equal_number", TG_FORMULA_1(less_equal(x, k))),
        formula<bool, bool>("logical_and", TG_FORMULA_2(logical_and(x, y)), {}, {question()}),
        formula<bool, bool>("logical_or", TG_FORMULA_2(logical_or(x, y)), {}, {question()}),
        formula<bool, bool>("logical_xor", TG_FORMULA_2(logical_xor(x, y))),
        formula<bool>("logical_not", TG_FORMULA_1(logical_not(x)), {}, {flat({}, {{0}, {nan}, {1}})}),
        formula_of_rows<floating, floating>(
            "named comparisons",
            TG_FORMULA_2(logical_xor(logical_and(less(x, y), not_equal(x, y)),
                                     logical_or(greater_equal(x, y), equal(less_equal(x, 0), greater(x, 0))))),
            {flat({}, {{1, 1}, {0, 1}})}),

        formula_of_rows<floating>("cast to int32", TG_FORMULA_1(cast<std::int32_t>(x)),
                                  {flat({{-9, 9}}, {{0}, {-0.0}, {-0.99}, {2147483520.0}, {-2147483648.0}})}),
        formula_of_rows<floating>("cast to int64", TG_FORMULA_1(cast<std::int64_t>(x)), {flat({{-9, 9}})}),
        formula_of_rows<floating>("cast to bool", TG_FORMULA_1(cast<bool>(x)),
                                  {flat({{-1, 1}}, {{0}, {-0.0}, {nan}, {5e-324}, {0.25}})}),
        formula_of_rows<floating>("cast to float", TG_FORMULA_1(cast<float>(x)), {flat({}, {{1e300}, {nan}, {-0.0}})}),
        formula<double>("through_float", TG_FORMULA_1(cast<element>(cast<float>(x)))),
        formula<bool>("cast_bool", TG_FORMULA_1(cast<element>(x))),
        formula<floating>("stop_gradient", TG_FORMULA_1(stop_gradient(x)), {}, {flat({}, {{nan}})}),
    };
    for (operation& each : made) {
        if (each.name == "stop_gradient" || each.name == "through_float") each.smooth = false;
        if (each.name == "through_float") each.rounds = true;
        if (each.name == "through_float") each.formula = false; // adjoints become float on the way: sums would differ
        if (each.types.size() > 1 && each.name.find("named") == std::string::npos) each.weight *= 2;
    }
    return made;
}

} // namespace

} // namespace formula_rows

namespace tapegraph::testing {
std::vector<operation> selection_operations() { return formula_rows::selections(); }
} // namespace tapegraph::testing
