#include <tapegraph/all.hpp>

#include <cstdio>
#include <vector>

/// A recurrent layer, generated numbers, a data set and its loader from whatever header is <tapegraph/all.hpp>: an LSTM learns
/// whether the numbers of a sequence add up to more than nothing.

namespace tg = tapegraph;

struct sign_of_sum {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", tg::lstm(scope / "lstm", x, {.units = 4}), {.units = 1});
    }
};

template <class Mode>
double trained(const tg::data::dataset& data) {
    auto model = tg::compile<Mode>(sign_of_sum{}, tg::spec<float, tg::dyn, 5, 1>{}, tg::sigmoid_cross_entropy{},
                                   tg::adam{.learning_rate = 0.05});
    return model.fit(data, {.epochs = 12, .batch_size = 32, .verbose = false}).epochs.back().accuracy;
}

int main() {
    const auto numbers = tg::random::normal<float>({256, 5}, {.seed = 3});
    std::vector<float> x(numbers.data(), numbers.data() + numbers.size()), label;
    for (std::size_t row = 0; row < 256; ++row) {
        float sum = 0;
        for (std::size_t step = 0; step < 5; ++step) sum += x[5 * row + step];
        label.push_back(sum > 0 ? 1.0f : 0.0f);
    }
    tg::data::dataset data;
    data.add("x", x, {5, 1});
    data.add("label", label, {1});

    tg::data::loader batches(data.batch(32));
    std::int64_t records = 0;
    for (const tg::data::batch& batch : batches.epoch(0)) records += batch.count();

    const double in_graph = trained<tg::graph>(data), eagerly = trained<tg::eager>(data);
    std::printf("%d records, accuracy %g and %g\n", static_cast<int>(records), in_graph, eagerly);
    return records == 256 && in_graph == eagerly && in_graph > 0.9 ? 0 : 1;
}
