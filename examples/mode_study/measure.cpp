#include "measure.hpp"

#include <algorithm>

namespace mode_study {

measurement measure(const std::function<double(std::int64_t)>& train, const options& o) {
    measurement m;
    const double first = train(1);
    const double left = o.seconds - first;
    if (left < first) {
        m.seconds = first;
        m.iterations = 1;
        return m;
    }
    const auto affordable = static_cast<std::int64_t>(std::min(left / first, 1e9));
    const std::int64_t more = std::min(o.warm_up - 1, affordable / 4);
    if (more > 0) train(more);
    m.warm_up = 1 + more;
    m.iterations = std::clamp<std::int64_t>(affordable - more, 1, o.iterations);
    m.seconds = train(m.iterations) / static_cast<double>(m.iterations);
    return m;
}

} // namespace mode_study
