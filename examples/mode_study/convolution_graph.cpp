#include "convolution.hpp"

namespace mode_study {

measurement run_convolution_graph(const cell& c, const options& o, const series& data) {
    return run_convolution<tapegraph::graph>(c, o, data);
}

} // namespace mode_study
