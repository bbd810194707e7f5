#include <models/conv1d_small.hpp>
#include <models/recurrent_medium.hpp>

#include <nn/models.hpp>

#include <tapegraph/traced.hpp>

namespace words_test {

/// A graph made at run time is the compiler's, word for word: nodes, extents, schedule, code of fused kernels.

using namespace nn_test;

namespace {

template <class T>
std::string difference_of(const char* name, const tg::ir::constant_span<T>& a, const tg::ir::constant_span<T>& b) {
    if (a.size() != b.size())
        return std::string(name) + ": " + std::to_string(a.size()) + " and " + std::to_string(b.size());
    for (int i = 0; i < a.size(); ++i)
        if (!(a[i] == b[i])) return std::string(name) + " at " + std::to_string(i);
    return {};
}

std::string difference_of_nodes(const tg::ir::program_view& a, const tg::ir::program_view& b) {
    if (a.nodes.size() != b.nodes.size())
        return "nodes: " + std::to_string(a.nodes.size()) + " and " + std::to_string(b.nodes.size());
    for (int i = 0; i < a.nodes.size(); ++i) {
        const tg::ir::entry &x = a.nodes[i], &y = b.nodes[i];
        if (x.op != y.op)
            return "node " + std::to_string(i) + ": " + std::string(x.op->name) + " and " + std::string(y.op->name);
        if (x.first_argument != y.first_argument || x.arguments != y.arguments || x.dims != y.dims ||
            x.rank != y.rank || x.words != y.words || x.group != y.group || x.scope != y.scope || x.type != y.type ||
            x.sealed != y.sealed || a.lines[x.line].line != b.lines[y.line].line)
            return "node " + std::to_string(i) + ", " + std::string(x.op->name) + " of " +
                   std::string(a.nodes[i - 1].op->name);
    }
    return {};
}

std::string difference_of_steps(const tg::ir::program_view& a, const tg::ir::program_view& b) {
    if (a.steps.size() != b.steps.size() || a.kernels.size() != b.kernels.size()) return "steps or kernels";
    for (int i = 0; i < a.steps.size(); ++i) {
        const tg::ir::step_entry &x = a.steps[i], &y = b.steps[i];
        if (x.kernel != y.kernel || x.node != y.node || x.domain != y.domain || x.first_value != y.first_value ||
            x.inputs != y.inputs || x.outputs != y.outputs)
            return "step " + std::to_string(i);
    }
    for (int i = 0; i < a.kernels.size(); ++i) {
        const tg::ir::kernel_entry &x = a.kernels[i], &y = b.kernels[i];
        if (x.kind != y.kind || x.op != y.op || x.type != y.type || x.first_word != y.first_word || x.words != y.words)
            return "kernel " + std::to_string(i);
    }
    return {};
}

/// What differs first between two programs, or nothing.
std::string difference(const tg::ir::program_view& a, const tg::ir::program_view& b) {
    for (const std::string& found :
         {difference_of_nodes(a, b), difference_of("arguments", a.arguments, b.arguments),
          difference_of("pool", a.pool, b.pool), difference_of("words", a.words, b.words),
          difference_of("ops", a.ops, b.ops), difference_of_steps(a, b),
          difference_of("kernel words", a.kernel_words, b.kernel_words), difference_of("values", a.values, b.values),
          difference_of("alias", a.alias, b.alias)})
        if (!found.empty()) return found;
    return {};
}

/// Both modes' training programs, and what they make of a few batches.
template <class Spec, class Model, class Loss, class Optimizer, class Batch>
void check(const Model& model, const Loss& loss, const Optimizer& optimizer, const Batch& batch) {
    auto compiled = tg::compile<tg::graph>(model, Spec{}, loss, optimizer, {.seed = 3});
    auto traced = tg::compile<tg::traced>(model, Spec{}, loss, optimizer, {.seed = 3});
    CHECK(difference(compiled.training_view(), traced.training_view()) == "");
    CHECK(compiled.summary() == traced.summary());
    REQUIRE(first_difference(compiled, traced) == "");
    train_alike(compiled, traced, {3, 1, 4}, batch);
    CHECK(compiled.arena_bytes() == traced.arena_bytes());
}

} // namespace

TEST_CASE("run-time graphs: a convolutional network, word for word and bit for bit") {
    check<cnn_spec<float>>(
        small_cnn{}, tg::sigmoid_cross_entropy{}, tg::momentum{.learning_rate = 0.05},
        [](std::int64_t size, std::uint64_t seed) {
            return std::pair(noise<float>({size, 26, 26, 3}, seed), coin_flips<float>(size, seed + 1));
        });
}

TEST_CASE("run-time graphs: an MLP of doubles with dropout and Adam, word for word and bit for bit") {
    check<mlp_spec<double>>(small_mlp{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                            [](std::int64_t size, std::uint64_t seed) {
                                return std::pair(noise<double>({size, 6}, seed), classes(size, 3, seed));
                            });
}

TEST_CASE("run-time graphs: the studies' Conv1D and LSTM, word for word and bit for bit") {
    const auto batch = [](std::int64_t size, std::uint64_t seed) {
        return std::pair(noise<float>({size, 40, 16}, seed), coin_flips<float>(size, seed + 1));
    };
    SUBCASE("convolutions") {
        check<tg::spec<float, tg::dyn, 40, 16>>(models::conv1d_small<>{}, tg::sigmoid_cross_entropy{}, tg::adam{},
                                                batch);
    }
    SUBCASE("recurrence") {
        check<tg::spec<float, tg::dyn, 40, 16>>(models::recurrent_medium<3>{}, tg::sigmoid_cross_entropy{}, tg::adam{},
                                                batch);
    }
}

} // namespace words_test
