#include "training.hpp"

namespace batch_study {

run_result run_graph(const options& o, std::int64_t batch_size, const image_sets& images) {
    return run<tapegraph::graph>("graph", o, batch_size, images);
}

} // namespace batch_study
