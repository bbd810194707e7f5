#include <operations/builders.hpp>

/// Normalization of records with parameters per channel. whole: first, last, groups and centered of
/// normalization_attributes; real: epsilon.

namespace tapegraph::testing {

namespace normalizations {

normalization_attributes attributes_from(const attributes& with) {
    return {.first = with.whole[0],
            .last = with.whole[1],
            .groups = with.whole[2],
            .centered = with.whole[3],
            .epsilon = with.real[0]};
}

array reference(const std::vector<array>& x, const attributes& with) {
    const extents& dims = x[0].dims;
    const auto count = [&](std::int64_t from, std::int64_t to) {
        std::int64_t product = 1;
        for (std::int64_t i = from; i < to; ++i) product *= dims[std::size_t(i)];
        return product;
    };
    const std::int64_t records = count(0, with.whole[0]), rows = count(with.whole[0], with.whole[1]),
                       channels = count(with.whole[1], rank_of(dims)), in_group = channels / with.whole[2];
    array y(dims);
    for (std::int64_t record = 0; record < records; ++record)
        for (std::int64_t group = 0; group < with.whole[2]; ++group) {
            const auto each = [&](const auto& f) {
                for (std::int64_t r = 0; r < rows; ++r)
                    for (std::int64_t c = group * in_group; c < (group + 1) * in_group; ++c)
                        f((record * rows + r) * channels + c, c);
            };
            const real size = static_cast<real>(rows * in_group);
            real mean = 0, power = 0;
            each([&](std::int64_t i, std::int64_t) { mean += with.whole[3] != 0 ? x[0][i] / size : 0; });
            each([&](std::int64_t i, std::int64_t) { power += (x[0][i] - mean) * (x[0][i] - mean) / size; });
            const real inverse = 1 / std::sqrt(power + static_cast<real>(with.real[0]));
            each([&](std::int64_t i, std::int64_t c) { y[i] = (x[0][i] - mean) * inverse * x[1][c] + x[2][c]; });
        }
    return y;
}

row of(std::int64_t first, std::int64_t last, std::int64_t groups, bool centered, shape_list shapes) {
    return {.with = {{first, last, groups, centered}, {0.25}},
            .shapes = std::move(shapes),
            .domains = {{-2, 2}, {0.5, 2}, {-1, 1}},
            .ulps = 16,
            .floor = 4,
            .why = "rounding of sums, of the mean, and of a difference from it"};
}

} // namespace normalizations

std::vector<operation> normalization_operations() {
    using namespace normalizations;
    operation made = make_operation<floating, floating, floating>(
        "normalization",
        [](const auto& x, const auto& gamma, const auto& beta, const attributes& with) {
            return invoke<normalization_op>(attributes_from(with), nullptr, std::source_location::current(), x, gamma,
                                            beta);
        },
        {of(1, 1, 1, true,
            {{{3, 5}, {5}, {5}},
             {{2, 1}, {1}, {1}},
             {{1, 67}, {67}, {67}},
             {{0, 3}, {3}, {3}},
             {{3, 0}, {0}, {0}},
             {{70, 16}, {16}, {16}},
             {{2, 2, 3}, {2, 3}, {2, 3}}}),
         of(1, 1, 1, false, {{{3, 5}, {5}, {5}}, {{2, 1}, {1}, {1}}, {{0, 3}, {3}, {3}}}),
         of(1, 1, 2, true, {{{3, 34}, {34}, {34}}, {{3, 6}, {6}, {6}}}),
         of(1, 2, 1, true, {{{2, 3, 5}, {5}, {5}}, {{2, 0, 3}, {3}, {3}}, {{1, 67, 2}, {2}, {2}}}),
         of(1, 3, 3, true, {{{2, 2, 3, 6}, {6}, {6}}, {{17, 1, 3, 9}, {9}, {9}}}),
         of(1, 2, 7, true, {{{2, 3, 7}, {7}, {7}}}), of(1, 2, 2, false, {{{2, 3, 4}, {4}, {4}}}),
         of(0, 1, 5, true, {{{4, 5}, {5}, {5}}}), of(0, 0, 1, true, {{{7}, {7}, {7}}})});
    made.graph_types = {dtype::f64, dtype::f32}; // layers cast others
    made.weight = 0;                             // random programs have what it is made of
    made.reference = reference;
    made.source = [](const std::vector<std::string>& x, const attributes& with) {
        std::string text = "detail::normalized(" + x[0] + ", {";
        for (const std::int64_t word : with.whole) text += text_of(word) + ", ";
        return text + number_text(with.real[0]) + "}, true, " + x[1] + ", true, " + x[2] + ")";
    };
    return {made};
}

} // namespace tapegraph::testing
