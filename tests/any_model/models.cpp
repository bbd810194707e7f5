#include <any_model/models.hpp>

#include <tapegraph/any_model/hidden_model.hpp>
#include <tapegraph/traced.hpp>

#include <sstream>
#include <vector>

/// The one source that knows what models are.

namespace any_model_test {

namespace tg = tapegraph;

namespace {

struct read_mlp {
    std::vector<int> units;

    auto operator()(auto scope, auto x) const {
        auto h = eval(x * 1);
        for (std::size_t i = 0; i < units.size(); ++i)
            h = tanh(tg::dense(scope / ("layer_" + std::to_string(i + 1)), h, {.units = units[i]}));
        return tg::dense(scope / "out", h, {.units = 3});
    }
};
struct linear {
    constexpr auto operator()(auto scope, auto x) const { return tg::dense(scope / "out", x, {.units = 3}); }
};

using spec = tg::spec<float, tg::dyn, 6>;

template <class Mode, class Model>
tg::any_model compiled(const Model& model, std::uint64_t seed) {
    return tg::compile<Mode>(model, spec{}, tg::sparse_softmax_cross_entropy{}, tg::adam{.learning_rate = 0.01},
                             {.seed = seed});
}

} // namespace

tg::any_model made(const std::string& line, std::uint64_t seed) {
    std::istringstream words(line);
    std::string mode;
    words >> mode;
    if (mode == "graph") return compiled<tg::graph>(linear{}, seed);
    if (mode == "eager") return compiled<tg::eager>(linear{}, seed);
    if (mode != "traced") throw tg::argument_error("model '" + line + "' begins with graph, eager or traced");
    read_mlp model;
    for (int units = 0; words >> units;) model.units.push_back(units);
    return compiled<tg::traced>(model, seed);
}

} // namespace any_model_test
