#include "rnn.hpp"

namespace batch_study {

run_result run_rnn_eager(const options& o, std::int64_t batch_size, const training_sets& sets) {
    return run(make_rnn<tapegraph::eager>(o), o, batch_size, sets);
}

std::string rnn_layers() { return make_rnn<tapegraph::eager>({}).summary(); }

} // namespace batch_study
