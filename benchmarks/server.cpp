#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/tapegraph.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

/// Simulates a server: threads that predict batches of one, each with its own model, as fast as
/// they can. Prints microseconds per prediction (the median, the percentiles 90, 99 and 99.9, the
/// worst, and the 99th in medians) and the predictions per second of all threads. Runs several
/// rounds, since machines are shared.
/// Usage: server [callers [seconds [rounds [mlp|cnn|lstm]]]]

namespace tg = tapegraph;

namespace {

struct mlp {
    constexpr auto operator()(auto scope, auto x) const {
        const auto h = tg::eval(relu(tg::dense(scope / "a", x, {.units = 512})));
        return tg::dense(scope / "c", tg::eval(relu(tg::dense(scope / "b", h, {.units = 512}))), {.units = 10});
    }
};
struct cnn {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::max_pooling2d(relu(tg::conv2d(scope / "a", x, {.filters = 16})));
        h = tg::max_pooling2d(relu(tg::conv2d(scope / "b", h, {.filters = 16})));
        return tg::dense(scope / "score", flatten(h), {.units = 10});
    }
};
struct lstm {
    constexpr auto operator()(auto scope, auto x) const {
        return tg::dense(scope / "score", tg::lstm(scope / "lstm", x, {.units = 64}), {.units = 10});
    }
};

double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Net, class Spec>
void measure(const Net& net, const Spec& spec, const tg::shape& one, int callers, double seconds, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::vector<double>> times(static_cast<std::size_t>(callers));
        std::barrier together(callers);
        std::vector<std::thread> threads;
        for (int c = 0; c < callers; ++c)
            threads.emplace_back([&, c] {
                auto model =
                    tg::compile<tg::graph>(net, spec, tg::sparse_softmax_cross_entropy{}, tg::sgd{}, {.seed = 1});
                auto x = tg::tensor<float>::uninitialized(one);
                for (std::int64_t i = 0; i < x.size(); ++i)
                    x.mutable_data()[i] = static_cast<float>(i * 7919 % 1013) / 1013;
                static_cast<void>(model.predict(x));
                together.arrive_and_wait();
                auto& mine = times[static_cast<std::size_t>(c)];
                for (const double end = now() + seconds * 1e6; mine.empty() || mine.back() > 0;) {
                    const double before = now();
                    static_cast<void>(model.predict(x));
                    const double after = now();
                    mine.push_back(after - before);
                    if (after > end) break;
                }
            });
        for (std::thread& t : threads) t.join();
        std::vector<double> all;
        for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
        std::sort(all.begin(), all.end());
        const auto part = [&](double share) {
            return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
        };
        std::printf(
            "p50 %.1f  p90 %.1f  p99 %.1f  p99.9 %.1f  worst %.0f us, p99 / p50 %.1f, %.0f predictions a second\n",
            part(0.5), part(0.9), part(0.99), part(0.999), all.back(), part(0.99) / part(0.5),
            static_cast<double>(all.size()) / seconds);
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
    const int callers = argc > 1 ? std::atoi(argv[1]) : 8, rounds = argc > 3 ? std::atoi(argv[3]) : 3;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 2;
    const std::string which = argc > 4 ? argv[4] : "mlp";
    if (callers < 1 || !(seconds > 0) || rounds < 1 || (which != "mlp" && which != "cnn" && which != "lstm")) {
        std::fprintf(stderr, "usage: server [callers [seconds [rounds [mlp|cnn|lstm]]]]\n");
        return 2;
    }
    if (which == "mlp") measure(mlp{}, tg::spec<float, tg::dyn, 784>{}, {1, 784}, callers, seconds, rounds);
    if (which == "cnn") measure(cnn{}, tg::spec<float, tg::dyn, 28, 28, 1>{}, {1, 28, 28, 1}, callers, seconds, rounds);
    if (which == "lstm") measure(lstm{}, tg::spec<float, tg::dyn, 32, 16>{}, {1, 32, 16}, callers, seconds, rounds);
}
