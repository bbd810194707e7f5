#include <cuda/imitated_results.hpp>

#include <tapegraph/eager/searching.hpp>

#include <vector>

namespace searching_modes_test {

/// Searches and counts, which are made of sorts, running sums and gathers, give the same on the
/// imitated device, whose memory the host cannot access, as on the CPU.

namespace tg = tapegraph;
using tapegraph::testing::check_same;
using tg::tensor;

namespace {

// Ties, and more than a block of threads.
const tensor<float> line = [] {
    auto x = tensor<float>::uninitialized({1300});
    for (int i = 0; i < 1300; ++i) x.mutable_data()[i] = static_cast<float>(i * 37 % 101) - 50;
    return x;
}();

} // namespace

TEST_CASE("searching and counting on the device") {
    check_same([] { return searchsorted(sort(line), tensor<float>(line * 0.75f)).to_vector(); });
    check_same([] { return searchsorted(sort(line), line, {.side = tg::search_side::right}).to_vector(); });
    check_same([] { return nonzero(tensor<bool>(line > 20)).to_vector(); });
    check_same([] { return nonzero(tensor<float>(reshape(line, {13, 100})), 5).positions.to_vector(); });
    check_same([] { return unique(line).values.to_vector(); });
    check_same([] { return unique(line, {.size = 50}).counts.to_vector(); });
    check_same([] { return unique(line).inverse.to_vector(); });
    check_same([] { return histogram_fixed_width(line, -40, 40, 16).to_vector(); });
    check_same([] { return bincount(unique(line).inverse).to_vector(); });
}

} // namespace searching_modes_test
