#include "train.hpp"

namespace character_model {

result train_graph(const options& o, const window_sets& sets, const tapegraph::data::vocabulary& characters,
                   const std::vector<std::int32_t>& prompt) {
    return train<tapegraph::graph>(o, sets, characters, prompt);
}

} // namespace character_model
