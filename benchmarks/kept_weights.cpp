/// Predictions of models that keep packed weights between runs, and of the same models whose memory was handed out, so that
/// they keep none but filters which they compare by a hash: kept_weights [THREADS [MODEL]]. Both in turns, medians; with one thread
/// processor time, with more wall-clock time.

#include "models/encoder.hpp"
#include "models/gpt.hpp"
#include "models/mlp.hpp"
#include "models/mobilenet_v2.hpp"
#include "models/resnet18.hpp"

#include <tapegraph/nn/layers/recurrent.hpp>
#include <tapegraph/runtime/kept_memory.hpp>
#include <tapegraph/traced.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

namespace tg = tapegraph;

namespace {

/// [batch, 64, 128] to ten scores.
struct two_lstms {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::lstm(scope / 0, x, {.units = 512, .return_sequences = true});
        h = tg::lstm(scope / 1, h, {.units = 512});
        return tg::dense(scope / "score", h, {.units = 10});
    }
};

int threads = 1;
std::string_view only;

double seconds() {
    std::timespec t{};
    ::clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> of) {
    std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
    return of[of.size() / 2];
}

template <class Model, class Spec, class X>
void race(std::string_view name, const Model& network, Spec spec, const X& x) {
    if (name.find(only) == name.npos) return;
    const std::size_t before = tg::kept_memory_bytes();
    auto keeps = tg::compile<tg::traced>(network, spec, {.seed = 1});
    auto packs = tg::compile<tg::traced>(network, spec, {.seed = 1});
    for (tg::variable& v : packs.variables()) v.own_data();
    for (int run = 0; run < 2; ++run) keeps.predict(x), packs.predict(x);
    const double first = seconds();
    const bool same = keeps.predict(x).to_vector() == packs.predict(x).to_vector();
    const int runs = std::clamp(static_cast<int>(0.04 / (seconds() - first)), 1, 200);
    std::vector<double> times[2], ratios;
    for (int turn = 0; turn < 9; ++turn) {
        double of[2]{};
        for (int which = 0; which < 2; ++which) {
            const double begin = seconds();
            for (int run = 0; run < runs; ++run) which == 0 ? keeps.predict(x) : packs.predict(x);
            of[which] = (seconds() - begin) / runs;
            times[which].push_back(of[which]);
        }
        ratios.push_back(of[1] / of[0]);
    }
    std::printf("%-12.*s batch %5lld: packs %9.3f ms, keeps %9.3f ms, times as fast %.2f, kept %.1f MB%s\n",
                static_cast<int>(name.size()), name.data(), static_cast<long long>(x.shape()[0].value),
                1e3 * median(times[1]), 1e3 * median(times[0]), median(ratios),
                1e-6 * static_cast<double>(tg::kept_memory_bytes() - before), same ? "" : ", OTHER BITS");
    std::fflush(stdout);
}

tg::tensor<float> noise(const tg::shape& dims) { return tg::random::normal<float>(dims, {.seed = 2}); }
tg::tensor<std::int32_t> words(std::int64_t batch, std::int64_t time, std::int32_t vocabulary) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(batch * time));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i * 7919) % vocabulary;
    return {all, {batch, time}};
}

} // namespace

int main(int count, char** arguments) {
    if (count > 1) threads = std::atoi(arguments[1]);
    if (count > 2) only = arguments[2];
    tg::set_thread_count(threads);
    for (const std::int64_t n : {1, 2, 8, 32, 128, 1024})
        race("mlp", models::mlp{}, tg::spec<float, tg::dyn, 784>{}, noise({n, 784}));
    for (const std::int64_t n : {1, 32}) {
        race("encoder", models::encoder{}, tg::spec<std::int32_t, tg::dyn, 128>{}, words(n, 128, 8192));
        race("resnet18", models::resnet18{}, tg::spec<float, tg::dyn, 32, 32, 3>{}, noise({n, 32, 32, 3}));
        race("mobilenet_v2", models::mobilenet_v2{}, tg::spec<float, tg::dyn, 32, 32, 3>{}, noise({n, 32, 32, 3}));
        race("lstm", two_lstms{}, tg::spec<float, tg::dyn, 64, 128>{}, noise({n, 64, 128}));
    }
    race("gpt", models::gpt_of<65>{}, tg::spec<std::int32_t, tg::dyn, 256>{}, words(1, 256, 65));
    return 0;
}
