#include <tapegraph/tapegraph.hpp>

#include <cstdio>
#include <vector>

/// A compiled model as users write it: checks that nvcc's front end accepts the library, and that
/// the resulting program trains, on a GPU if there is one, else on the CPU.

namespace tg = tapegraph;

struct classifier {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::dense(scope / "hidden", x, {.units = 8});
        return tg::dense(scope / "score", tanh(h), {.units = 1});
    }
};

int main() {
    auto model = tg::compile<tg::graph>(classifier{}, tg::spec<float, tg::dyn, 2>{}, tg::sigmoid_cross_entropy{},
                                        tg::momentum{.learning_rate = 0.5},
                                        {.device = tg::available_or_cpu(tg::device::cuda(0))});
    const auto x = tg::from_range<float>(std::vector<float>{0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
    const auto either = tg::from_range<float>(std::vector<float>{0, 1, 1, 0}, {4, 1});
    double first = 0, last = 0;
    for (int step = 0; step < 200; ++step) {
        last = model.train_on_batch(x, either).loss;
        if (step == 0) first = last;
    }
    std::printf("loss %.4f, then %.4f: %s\n", first, last, last < 0.05 ? "learned" : "not learned");
    return last < 0.05 ? 0 : 1;
}
