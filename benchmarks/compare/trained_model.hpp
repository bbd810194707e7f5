#pragma once

#include "contestant.hpp"

#include <tapegraph/io/weights.hpp>
#include <tapegraph/tapegraph.hpp>

#include <tuple>

/// Makes a model of the studies a contestant, in the mode that the compiler's command line names
/// (-DCOMPARE_MODE=eager).

#ifndef COMPARE_MODE
#define COMPARE_MODE graph
#endif

namespace compare {

/// On one thread processor time is counted, as compare.py does.
inline tg::profile_options profiled(int steps) {
    tg::profile_options options;
    options.steps = steps;
    options.warm_up = std::min(options.warm_up, steps - 1);
    if (tg::thread_count() == 1) options.clock = [] { return clocks().second; };
    return options;
}

/// Labels of two classes [batch, 1], alternating 0 and 1, or of several classes [batch].
inline tg::tensor<float> two_classes(std::int64_t batch) {
    auto y = tg::tensor<float>::uninitialized({batch, 1});
    for (std::int64_t i = 0; i < batch; ++i) y.mutable_data()[i] = static_cast<float>(i % 2);
    return y;
}
inline tg::tensor<std::int32_t> in_turns(std::int64_t batch, std::int64_t classes) {
    auto y = tg::tensor<std::int32_t>::uninitialized({batch});
    for (std::int64_t i = 0; i < batch; ++i) y.mutable_data()[i] = static_cast<std::int32_t>(i % classes);
    return y;
}
/// Characters [batch, time] of a vocabulary, from index `first` on in the same text.
inline tg::tensor<std::int32_t> characters(std::int64_t batch, std::int64_t time, std::int64_t vocabulary,
                                           std::int64_t first = 0) {
    auto x = tg::tensor<std::int32_t>::uninitialized({batch, time});
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.mutable_data()[i] = static_cast<std::int32_t>((i + first) * 7919 % vocabulary);
    return x;
}

template <class... T>
std::tuple<T...> as_tuple(const std::tuple<T...>& inputs) {
    return inputs;
}
template <class T>
std::tuple<T> as_tuple(const T& input) {
    return {input};
}

/// The model, loss and optimizer of a study. Weights come from the seed or from a file.
template <class Network, class Spec, class Loss, class Optimizer>
prepared training_of(const row& r, const std::string& weights, const auto& x, const auto& y, const Loss& loss,
                     const Optimizer& optimizer) {
    using model_type =
        decltype(tg::compile<tg::COMPARE_MODE>(Network{}, Spec{}, loss, optimizer, tg::compile_options{}));
    const auto model = std::make_shared<model_type>(
        tg::compile<tg::COMPARE_MODE>(Network{}, Spec{}, loss, optimizer, tg::compile_options{.seed = 1}));
    if (!weights.empty()) model->load(weights);
    prepared p;
    p.save = [model](const std::string& path) { model->save(path); };
    const auto all = as_tuple(x); // a model of several inputs has a tuple of them
    if (r.kind == "inference") {
        const auto predict = [model, all] {
            return std::apply([&](const auto&... each) { return model->predict(each...); }, all);
        };
        p.step = [predict] { predict(); };
        p.numbers = [predict](std::int64_t) { return digest(predict()); };
        p.profile = [predict](int steps) { return tg::profile(predict, profiled(steps)); };
    } else {
        const auto train = [model, all, y] {
            const auto step = [&](const auto&... each) { return model->train_on_batch(each..., y).loss; };
            return static_cast<double>(std::apply(step, all));
        };
        p.step = [train] { train(); };
        p.numbers = [train](std::int64_t steps) {
            std::vector<double> losses;
            for (; steps > 0; --steps) losses.push_back(train());
            return losses;
        };
        p.profile = [model, all, y](int steps) {
            return std::apply([&](const auto&... each) { return tg::profile(*model, each..., y, profiled(steps)); },
                              all);
        };
    }
    return p;
}

/// The model without dropout, for checks. `Network<true>` drops.
template <template <bool> class Network, class Spec>
prepared study(const row& r, bool for_check, const std::string& weights, const auto& x, const auto& y, const auto& loss,
               const auto& optimizer) {
    return for_check ? training_of<Network<false>, Spec>(r, weights, x, y, loss, optimizer)
                     : training_of<Network<true>, Spec>(r, weights, x, y, loss, optimizer);
}

} // namespace compare
