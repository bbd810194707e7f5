#include "recurrent.hpp"

namespace mode_study {

measurement run_recurrent_eager(const cell& c, const options& o, const series& data) {
    return run_recurrent<tapegraph::eager>(c, o, data);
}

} // namespace mode_study
