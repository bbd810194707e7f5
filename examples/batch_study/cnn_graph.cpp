#include "cnn.hpp"

namespace batch_study {

run_result run_cnn_graph(const options& o, std::int64_t batch_size, const training_sets& sets) {
    return run(make_cnn<tapegraph::graph>(o), o, batch_size, sets);
}

} // namespace batch_study
