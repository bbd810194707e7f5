#include "recurrent.hpp"

namespace mode_study {

measurement run_recurrent_graph(const cell& c, const options& o, const series& data) {
    return run_recurrent<tapegraph::graph>(c, o, data);
}

} // namespace mode_study
