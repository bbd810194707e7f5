#pragma once

#include <support/finite_differences.hpp>
#include <support/run_time_graph.hpp>

#include <tapegraph/compile/function.hpp>

#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

/// One function in both modes: as a graph, and run eagerly; the results must be the same bits.

namespace tapegraph::testing {

namespace graph_runner_detail {
template <class T>
void flatten_into(std::vector<any_tensor>& all, const tensor<T>& t) {
    all.push_back(t);
}
template <class R>
    requires requires(const R& r) { r.parts(); }
void flatten_into(std::vector<any_tensor>& all, const R& r);
template <class... R>
void flatten_into(std::vector<any_tensor>& all, const std::tuple<R...>& results) {
    std::apply([&](const auto&... r) { (flatten_into(all, r), ...); }, results);
}
template <class R>
    requires requires(const R& r) { r.parts(); }
void flatten_into(std::vector<any_tensor>& all, const R& r) { flatten_into(all, r.parts()); }
} // namespace graph_runner_detail

/// Every tensor in a result, in order.
template <class R>
std::vector<any_tensor> flattened(const R& result) {
    std::vector<any_tensor> all;
    graph_runner_detail::flatten_into(all, result);
    return all;
}

/// Where two results differ first, in words; empty when every bit is the same.
inline std::string difference(const std::vector<any_tensor>& graph, const std::vector<any_tensor>& eager) {
    if (graph.size() != eager.size()) return "numbers of results differ";
    for (std::size_t k = 0; k < graph.size(); ++k) {
        const any_tensor &a = graph[k], &b = eager[k];
        const std::string name = "result " + std::to_string(k) + " of shape " + to_string(b.shape());
        if (a.type() != b.type()) return name + ": graph has " + name_of(a.type()) + ", eager " + name_of(b.type());
        if (!(a.shape() == b.shape())) return name + ": in graph mode " + to_string(a.shape());
        const std::size_t size = size_of(a.type());
        for (std::int64_t i = 0; i < a.size(); ++i) {
            const auto at = static_cast<std::size_t>(i) * size;
            const auto *p = static_cast<const char*>(a.read()) + at, *q = static_cast<const char*>(b.read()) + at;
            if (std::memcmp(p, q, size) == 0) continue;
            std::string text = name + ": element " + std::to_string(i);
            const auto values = [&]<class T>(T x, T y) {
                std::memcpy(&x, p, sizeof(T));
                std::memcpy(&y, q, sizeof(T));
                char buffer[160];
                std::snprintf(buffer, sizeof buffer, " is %.17g in graph mode, %.17g in eager mode", double(x),
                              double(y));
                return std::string(buffer);
            };
            if (a.type() == dtype::f64) text += values(0.0, 0.0);
            if (a.type() == dtype::f32) text += values(0.0f, 0.0f);
            return text;
        }
    }
    return {};
}

/// The largest difference relative to 1 + |value|, for what is not computed in one order in both modes.
inline double distance_between(const std::vector<any_tensor>& graph, const std::vector<any_tensor>& eager) {
    double largest = graph.size() == eager.size() ? 0 : INFINITY;
    for (std::size_t k = 0; k < graph.size() && k < eager.size(); ++k) {
        const tensor<double> a(graph[k]), b(eager[k]);
        if (!(a.shape() == b.shape())) return INFINITY;
        for (std::int64_t i = 0; i < a.size(); ++i) {
            const double apart = std::abs(a.data()[i] - b.data()[i]) / (1 + std::abs(b.data()[i]));
            if (!(apart <= largest)) largest = apart;
        }
    }
    return largest;
}

/// A generic function as a graph that is made at run time, compared with itself run eagerly. That such a graph is the compiler's word
/// for word, and its fused kernels give the compiled ones' bits, is proved once (tests/traced, tests/fuzz), so nothing is compiled
/// here but f on nodes and f on tensors.
template <class F, class... Specs>
class both_modes {
public:
    explicit both_modes(const F& f, Specs...) : f_(f), graph_([this](ir::trace& t) { trace(t); }) {}

    /// Runs both on the same arguments and says what differs.
    std::string compare(const tensor<typename Specs::element_type>&... x) {
        const std::vector<any_tensor> eager = run(x...);
        return difference(results_, eager);
    }
    double distance(const tensor<typename Specs::element_type>&... x) {
        const std::vector<any_tensor> eager = run(x...);
        return distance_between(results_, eager);
    }
    const std::vector<any_tensor>& results() const { return results_; }
    const ir::program_view& view() const { return graph_.view(); }

private:
    void trace(ir::trace& t) const {
        const std::tuple nodes{tapegraph::detail::function_trace<F, Specs...>::template input<Specs>(t)...};
        const auto results = std::apply([&](const auto&... x) { return f_(x...); }, nodes);
        tapegraph::detail::returned<std::remove_cvref_t<decltype(results)>>::record(t, results);
    }
    std::vector<any_tensor> run(const tensor<typename Specs::element_type>&... x) {
        const random_state random = random_.next();
        results_ = graph_.run({x...}, random);
        tapegraph::detail::random_stream stream{random, 0};
        const tapegraph::detail::random_scope draws(stream);
        return flattened(tapegraph::detail::map_results([](const auto& each) { return eval(each); }, f_(x...)));
    }

    F f_;
    run_time_graph graph_;
    tapegraph::detail::call_counter random_;
    std::vector<any_tensor> results_;
};

/// Numbers of [low, high) for a shape.
template <class T>
tensor<T> drawn(const shape& dims, std::uint64_t seed, double low = -1.5, double high = 1.5) {
    sequence random(seed);
    auto t = tensor<T>::uninitialized(dims);
    for (std::int64_t i = 0; i < t.size(); ++i) t.mutable_data()[i] = static_cast<T>(random.between(low, high));
    return t;
}

} // namespace tapegraph::testing
