#include "table.hpp"

#include <tapegraph/eager/searching.hpp>

/// Of reductions whole[0] is keepdims and the rest are the axes; without any, all axes are reduced.

namespace tapegraph::testing {

namespace {

axes over(const attributes& with) { return axes_of_words(std::vector<int>(with.whole.begin() + 1, with.whole.end())); }
reduce_options kept(const attributes& with) { return {.keepdims = with.whole[0] != 0}; }
variance_options corrected(const attributes& with) {
    return {.keepdims = with.whole[0] != 0, .correction = static_cast<std::int64_t>(with.real[0])};
}
bool flag(const attributes& with, std::size_t word) { return with.whole[word] != 0; }
int axis(const attributes& with) { return static_cast<int>(with.whole[0]); }

} // namespace

std::vector<operation> reductions_for_pytorch() {
    return {
        TG_ONE("sum", sum(x, over(with), kept(with))),
        TG_ONE("prod", prod(x, over(with), kept(with))),
        TG_ONE("max", max(x, over(with), kept(with))),
        TG_ONE("min", min(x, over(with), kept(with))),
        TG_ONE("mean", mean(x, over(with), kept(with))),
        TG_ONE("logsumexp", logsumexp(x, over(with), kept(with))),
        TG_ONE("any", any(x != 0, over(with), kept(with))),
        TG_ONE("all", all_of(x != 0, over(with), kept(with))),
        TG_ONE("count_nonzero", count_nonzero(x, over(with), kept(with))),
        TG_ONE("variance", variance(x, over(with), corrected(with))),
        TG_ONE("stddev", stddev(x, over(with), corrected(with))),
        TG_ONE("norm", norm(x, k, over(with), kept(with))),
        TG_ONE("argmax", argmax(x, axis(with), {.keepdims = flag(with, 1)})),
        TG_ONE("argmin", argmin(x, axis(with), {.keepdims = flag(with, 1)})),
        TG_ONE("argmax of all", argmax(x)),
        TG_ONE("argmin of all", argmin(x)),
        TG_ONE("softmax", softmax(x, axis(with))),
        TG_ONE("log_softmax", log_softmax(x, axis(with))),
        TG_ONE("cumulative_sum", cumulative_sum(x, axis(with))),
        TG_ONE("cumulative_product", cumulative_product(x, axis(with))),
        TG_ONE("sort", sort(x, axis(with), {.descending = flag(with, 1)})),
        TG_ONE("argsort", argsort(x, axis(with), {.descending = flag(with, 1)})),
        TG_ONE("top_k values", top_k(x, with.whole[2], axis(with), {.largest = flag(with, 1)}).values),
        TG_ONE("top_k indices", top_k(x, with.whole[2], axis(with), {.largest = flag(with, 1)}).indices),
        TG_EAGER("nonzero", floating, nonzero(x)),
        TG_EAGER("unique", floating, unique(x).values),
        TG_EAGER("bincount", std::int32_t, bincount(x)),
        TG_TWO("searchsorted", searchsorted(x, y, {.side = flag(with, 0) ? search_side::right : search_side::left})),
    };
}

} // namespace tapegraph::testing
