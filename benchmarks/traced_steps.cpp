// Training steps of graphs that are made at run time beside the compiler's: the studies' CNN and LSTM, steps of both in turns
// (graph, traced, traced, graph), so that whatever else the machine does slows both. Prints medians and the median of the ratios.
//
//   bench_traced_steps

#include <tapegraph/traced.hpp>

#include "../examples/models/cats_and_dogs.hpp"
#include "../examples/models/text_classifier.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace tg = tapegraph;

namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

template <class Graph, class Traced, class X, class Y>
void compare(const char* name, std::int64_t batch, int rounds, Graph& graph, Traced& traced, const X& x, const Y& y) {
    const auto milliseconds = [&](auto& model) {
        const auto start = std::chrono::steady_clock::now();
        model.train_on_batch(x, y);
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    };
    milliseconds(graph), milliseconds(traced);
    std::vector<double> of_graph, of_traced, ratios;
    for (int i = 0; i < rounds; ++i) {
        const double first = milliseconds(graph), second = milliseconds(traced), third = milliseconds(traced),
                     fourth = milliseconds(graph);
        of_graph.insert(of_graph.end(), {first, fourth});
        of_traced.insert(of_traced.end(), {second, third});
        ratios.push_back((second + third) / (first + fourth));
    }
    std::printf("%-5s batch %3lld, %d threads: graph %8.3f ms, traced %8.3f ms, ratio %.3f\n", name,
                static_cast<long long>(batch), tg::thread_count(), median(of_graph), median(of_traced), median(ratios));
}

template <class Mode>
auto cnn() {
    return tg::compile<Mode>(models::cats_and_dogs{}, tg::spec<float, tg::dyn, 50, 50, 3>{},
                             tg::sigmoid_cross_entropy{}, tg::adam{.learning_rate = 1e-4}, {.seed = 1});
}
template <class Mode>
auto lstm() {
    return tg::compile<Mode>(models::text_classifier<>{}, tg::spec<float, tg::dyn, tg::dyn>{},
                             tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 1e-4}, {.seed = 1});
}

} // namespace

int main() {
    for (const int threads : {1, 2}) {
        tg::set_thread_count(threads);
        auto graph_cnn = cnn<tg::graph>();
        auto traced_cnn = cnn<tg::traced>();
        auto graph_lstm = lstm<tg::graph>();
        auto traced_lstm = lstm<tg::traced>();
        for (const std::int64_t batch : {2, 32}) {
            const int rounds = batch == 2 ? 60 : 15;
            compare("CNN", batch, rounds, graph_cnn, traced_cnn,
                    tg::random::uniform<float>({batch, 50, 50, 3}, {.seed = 1}),
                    tg::eval(tg::cast<float>(tg::random::uniform<float>({batch, 1}, {.seed = 2}) > 0.5F)));
            compare("LSTM", batch, 2 * rounds, graph_lstm, traced_lstm,
                    tg::eval(tg::floor(tg::random::uniform<float>({batch, 40}, {.seed = 1}) * 40000.0F) + 1),
                    tg::eval(tg::cast<std::int32_t>(tg::random::uniform<float>({batch}, {.seed = 2}) * 2.99F)));
        }
    }
}
