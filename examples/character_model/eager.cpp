#include "train.hpp"

namespace character_model {

result train_eager(const options& o, const window_sets& sets, const tapegraph::data::vocabulary& characters,
                   const std::vector<std::int32_t>& prompt) {
    return train<tapegraph::eager>(o, sets, characters, prompt);
}

std::string layer_table() {
    namespace tg = tapegraph;
    return tg::summarize(models::character_model<model_vocabulary>{}, tg::spec<float, tg::dyn, tg::dyn>{}).text();
}

} // namespace character_model
