#pragma once

#include <tapegraph/train/objective.hpp>

#include <array>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

/// Objectives with metrics.

namespace tapegraph {

/// An objective with metrics, which tg::compile creates from a loss and `metrics{...}`.
template <class Loss, class... Metrics>
struct measured {
    Loss loss;
    tapegraph::metrics<Metrics...> metrics;
};

namespace detail {

/// Lists of metrics. tg::compile deduces such a list as a whole, because a pack of metrics would be
/// deduced as empty from options in braces, and its overload evaluated with them.
template <class T>
inline constexpr bool is_metrics = false;
template <class... Metrics>
inline constexpr bool is_metrics<metrics<Metrics...>> = true;
template <class T>
concept metrics_like = is_metrics<T>;

/// A loss with the metrics of a list.
template <class Loss, metrics_like List>
struct measured_by;
template <class Loss, class... Metrics>
struct measured_by<Loss, metrics<Metrics...>> {
    using type = measured<Loss, Metrics...>;
};

/// A metric of the only output, or of one of several.
template <class Metric>
struct metric_part {
    using type = Metric;
    static constexpr std::string_view name = Metric::name, output{};
    static constexpr const Metric& of(const Metric& m) { return m; }
};
template <fixed_string Name, class Metric>
struct metric_part<part_on<Name, Metric>> {
    using type = Metric;
    struct output_name {
        static constexpr std::string_view name = Name.view();
    };
    static constexpr std::string_view output = Name.view(), name = joined<output_name, underscore, Metric>::name;
    static constexpr const Metric& of(const part_on<Name, Metric>& m) { return m.part; }
};

template <class Loss, class... Metrics>
struct objective<measured<Loss, Metrics...>> : objective<Loss> {
    using inner = objective<Loss>;
    using whole = measured<Loss, Metrics...>;
    static constexpr bool has_results = true;
    static constexpr int count = inner::count + (0 + ... + numbers_in<typename metric_part<Metrics>::type>());

    static void write(const whole& of, double*& to) {
        inner::write(of.loss, to);
        std::apply(
            [&](const auto&... each) {
                (write_numbers(metric_part<std::remove_cvref_t<decltype(each)>>::of(each), to), ...);
            },
            of.metrics.parts);
    }
    template <class State, class Y, class Z, class V, class N>
    static constexpr void measure(const State& state, const Y& y, const Z& z, const V& v, const N& n) {
        inner::measure(state, y, z, v, n);
        [[maybe_unused]] std::size_t first = inner::count;
        (measure_part<Metrics>(state, y, z, n, first), ...);
    }
    template <class F>
    static void results(const whole& of, const F& f) {
        inner::results(of.loss, f);
        std::apply([&](const auto&... each) { (part_result(each, f), ...); }, of.metrics.parts);
    }

private:
    template <class Part, class State, class Y, class Z, class N>
    static constexpr void measure_part(const State& state, const Y& y, const Z& z, const N& n, std::size_t& first) {
        using part = metric_part<Part>;
        using metric = typename part::type;
        const numbers_from<N> own{n, first};
        first += static_cast<std::size_t>(numbers_in<metric>());
        inner::template labelled_output<part>(y, z, [&](const auto& output, const auto& labels, const auto& weights) {
            metric::update(state.of(part::name), output, labels, weights, own);
        });
    }
    template <class Part, class F>
    static void part_result(const Part& part, const F& f) {
        const auto& metric = metric_part<Part>::of(part);
        f(metric_part<Part>::name, [&](const metric_values& v) { return metric.result(v); });
    }
};

} // namespace detail
} // namespace tapegraph
