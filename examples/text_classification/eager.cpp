#include "train.hpp"

namespace text_classification {

tapegraph::history train_eager(const options& o, const text_sets& sets) { return train<tapegraph::eager>(o, sets); }

std::string layer_table() {
    namespace tg = tapegraph;
    return tg::summarize(models::text_classifier<model_vocabulary>{}, tg::spec<float, tg::dyn, tg::dyn>{}).text();
}

} // namespace text_classification
