#include "train.hpp"

namespace text_classification {

tapegraph::history train_graph(const options& o, const text_sets& sets) { return train<tapegraph::graph>(o, sets); }

} // namespace text_classification
