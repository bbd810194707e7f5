#include "training.hpp"

namespace batch_study {

run_result run_eager(const options& o, std::int64_t batch_size, const image_sets& images) {
    return run<tapegraph::eager>("eager", o, batch_size, images);
}

std::string layer_table() { return make_model<tapegraph::eager>({}).summary(); }

} // namespace batch_study
