#include "../examples/models/cats_and_dogs.hpp"
#include "fma_peak.hpp"

#include <tapegraph/nn/metrics/all.hpp>
#include <tapegraph/train/callbacks.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

/// Measures what fit, callbacks and metrics cost relative to bare steps (train_on_batch of a model
/// without metrics), in graph mode, float, one thread, processor time: for the CNN, alternating,
/// and for a model whose step is next to nothing and whose output is the CNN's, so that the cost
/// itself is visible. Steps of fit are counted from one on_batch_end to the next; callbacks at an
/// epoch's end are counted separately.
///
/// Usage: fit_overhead [rounds = 7]

namespace {

namespace tg = tapegraph;

constexpr int batch = 1;

struct tiny {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "score", flatten(x), {.units = 1}); }
};

const auto measures = tg::metrics{tg::binary_accuracy{.from_logits = true}, tg::precision{.from_logits = true},
                                  tg::recall{.from_logits = true}, tg::auc{.from_logits = true}};

struct turn {
    double bare, plain_fit, whole_fit, epoch_end;
};

template <class Model, class Spec>
void measure(const char* name, const Model& network, const Spec& spec, const std::vector<float>& x,
             const std::vector<std::int64_t>& dims, int steps, int rounds) {
    const tg::sgd slow{.learning_rate = 1e-6};
    auto bare = tg::compile<tg::graph>(network, spec, tg::sigmoid_cross_entropy{}, slow, {.seed = 1});
    auto measured = tg::compile<tg::graph>(network, spec, tg::sigmoid_cross_entropy{}, slow, measures, {.seed = 1});
    std::vector<float> all, labels;
    for (int i = 0; i < steps * batch; ++i) {
        all.insert(all.end(), x.begin(), x.end());
        labels.push_back(static_cast<float>(i % 2));
    }
    tg::data::dataset set;
    set.add("x", all, dims).add("y", labels, {1});
    std::vector<std::int64_t> extents{batch};
    extents.insert(extents.end(), dims.begin(), dims.end());
    const tg::tensor<float> one(
        std::vector<float>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(x.size()) * batch),
        tg::shape(static_cast<int>(extents.size()), extents.data()));
    const tg::tensor<float> goal = tg::zeros<float>({batch, 1});
    const std::string log = (std::filesystem::temp_directory_path() / "tapegraph_fit_overhead.csv").string();

    std::vector<turn> turns;
    const auto steps_of = [&](auto& model, auto&&... callbacks) {
        std::vector<double> each;
        double last = 0;
        model.fit(set, {.epochs = 2, .batch_size = batch, .shuffle = false, .verbose = 0, .prefetch = 0}, callbacks...,
                  tg::on_batch_end([&](tg::training_state& s) {
                      const double now = benchmarks::seconds_now();
                      if (s.batch > 1) each.push_back(now - last);
                      last = now;
                  }));
        return benchmarks::median(each);
    };
    for (int round = 0; round < rounds; ++round) {
        turn t{};
        std::vector<double> each;
        for (int i = 0; i < 2 * steps; ++i)
            each.push_back(benchmarks::seconds_of([&] { bare.train_on_batch(one, goal); }));
        t.bare = benchmarks::median(each);
        t.plain_fit = steps_of(bare);
        double before = 0, end = 0;
        t.whole_fit = steps_of(
            measured, tg::on_epoch_end([&](tg::training_state&) { before = benchmarks::seconds_now(); }),
            tg::early_stopping{.monitor = "loss", .patience = 1000}, tg::csv_logger{.path = log},
            tg::learning_rate_scheduler([](std::int64_t epoch) { return 1e-6 / static_cast<double>(epoch + 1); }),
            tg::terminate_on_nan{}, tg::time_limit{.seconds = 1e9},
            tg::on_epoch_end([&](tg::training_state&) { end = benchmarks::seconds_now() - before; }));
        t.epoch_end = end;
        turns.push_back(t);
    }
    std::filesystem::remove(log);
    const auto median = [&](auto member) {
        std::vector<double> values;
        for (const turn& t : turns) values.push_back(t.*member * 1e6);
        return benchmarks::median(values);
    };
    const double base = median(&turn::bare), plain = median(&turn::plain_fit), whole = median(&turn::whole_fit);
    std::printf("| %s | %d | %.2f | %.2f | %.2f | %+.2f (%+.2f %%) | %.0f |\n", name, batch, base, plain, whole,
                whole - base, 100 * (whole - base) / base, median(&turn::epoch_end));
}

} // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
    if (rounds < 1) return std::fputs("usage: fit_overhead [rounds]\n", stderr), 1;
    tg::set_thread_count(1);
    benchmarks::processor_time() = true;
    std::puts("| model | batch | bare step, us | in fit | with metrics and callbacks | difference | epoch's end, us |");
    std::puts("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    std::vector<float> pixels(50 * 50 * 3);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 7919 % 1013) / 1013;
    measure("tiny", tiny{}, tg::spec<float, tg::dyn, 4>{}, {1, 2, 3, 4}, {4}, 2000, rounds);
    measure("CNN", models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{}, pixels, {50, 50, 3}, 20, rounds);
}
