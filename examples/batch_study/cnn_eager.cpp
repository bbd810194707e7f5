#include "cnn.hpp"

namespace batch_study {

run_result run_cnn_eager(const options& o, std::int64_t batch_size, const training_sets& sets) {
    return run(make_cnn<tapegraph::eager>(o), o, batch_size, sets);
}

std::string cnn_layers() { return make_cnn<tapegraph::eager>({}).summary(); }

} // namespace batch_study
