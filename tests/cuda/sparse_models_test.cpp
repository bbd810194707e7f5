#define TG_SIMT
#define TG_CUDA
#include <simt/instructions.hpp>

#include <tapegraph/nn/layers/embedding.hpp>
#include <tapegraph/tapegraph.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace sparse_models_test {

/// A sparse embedding on the imitated device: a captured step of graph mode, and eager mode.

namespace tg = tapegraph;

namespace {

struct network {
    constexpr auto operator()(auto scope, auto x) const {
        auto h = tg::embedding(scope / "words", x, {.input_dim = 60, .output_dim = 8, .sparse = true});
        return tg::dense(scope / "score", tg::flatten(tanh(h)), {.units = 1});
    }
};

template <class Mode>
auto trained(tg::device where, std::vector<double>& losses) {
    auto model = tg::compile<Mode>(network{}, tg::spec<std::int32_t, tg::dyn, 6>{}, tg::sigmoid_cross_entropy{},
                                   tg::adam{.learning_rate = 0.05}, {.seed = 5, .device = where});
    const auto y = tg::from_range<float>(std::vector<float>{0, 1, 1, 0}, {4, 1});
    for (int s = 0; s < 6; ++s) {
        auto x = tg::tensor<std::int32_t>::uninitialized({4, 6});
        for (int i = 0; i < x.size(); ++i) x.mutable_data()[i] = (i * 7 + s % 2) % 40;
        losses.push_back(model.train_on_batch(x, y).loss);
    }
    return model.variables()["words/embeddings"].template value<float>();
}

template <class Mode>
void check() {
    std::vector<double> there, here, again;
    const auto there_table = trained<Mode>(tg::device::cuda(0), there),
               here_table = trained<Mode>(tg::device::cpu(), here);
    const auto again_table = trained<Mode>(tg::device::cuda(0), again);
    for (std::size_t i = 0; i < here.size(); ++i) CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-4));
    for (std::int64_t i = 0; i < here_table.size(); ++i)
        CHECK(there_table.data()[i] == doctest::Approx(here_table.data()[i]).epsilon(1e-3));
    CHECK(there == again);
    CHECK(there_table.to_vector() == again_table.to_vector());
    CHECK(here.back() < here.front()); // it learns
}

} // namespace

TEST_CASE("a sparse embedding trains on a device as on the CPU, in both modes") {
    check<tg::graph>();
    check<tg::eager>();
}

TEST_CASE("its operations have kernels there: a step is captured whole") {
    constexpr bool assigns = tg::runtime::kernel_for<tg::assign_rows_op, float>().on_device.run != nullptr;
    constexpr bool sums = tg::runtime::kernel_for<tg::sum_of_equal_rows_op, float>().on_device.run != nullptr;
    CHECK(assigns);
    CHECK(sums);
}

} // namespace sparse_models_test
