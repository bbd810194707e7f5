#include "series.hpp"

#include <tapegraph/cpu/parallel.hpp>
#include <tapegraph/data/counter_random.hpp>

#include <cmath>
#include <cstddef>
#include <numbers>

namespace mode_study {

series make_series(std::int64_t count, std::int64_t length, std::int64_t channels, std::uint64_t seed) {
    series s{count, length, channels, {}, {}};
    s.values.resize(static_cast<std::size_t>(count * length * channels));
    for (std::int64_t i = 0; i < count; ++i) s.labels.push_back(static_cast<float>(i % 2));
    tapegraph::cpu::parallel_for(count, true, [&](std::int64_t i) {
        tapegraph::data::counter_random random(seed, static_cast<std::uint64_t>(i));
        const double turn = 2 * std::numbers::pi, pace = turn / random.uniform(6, 12), phase = random.uniform(0, turn);
        float* to = s.values.data() + i * length * channels;
        for (std::int64_t t = 0; t < length; ++t) {
            const double wave = i % 2 == 0 ? 0 : std::sin(pace * static_cast<double>(t) + phase);
            for (std::int64_t c = 0; c < channels; ++c)
                *to++ = static_cast<float>(random.uniform(-1, 1) + (c % 3 == 0 ? wave : 0));
        }
    });
    return s;
}

std::span<const float> series::values_of(std::int64_t first, std::int64_t records) const {
    return std::span<const float>(values).subspan(static_cast<std::size_t>(first * length * channels),
                                                  static_cast<std::size_t>(records * length * channels));
}
std::span<const float> series::labels_of(std::int64_t first, std::int64_t records) const {
    return std::span<const float>(labels).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(records));
}

tapegraph::data::dataset series::as_dataset(std::int64_t records) const {
    tapegraph::data::dataset once;
    once.add_view("series", std::span<const float>(values), {length, channels});
    once.add_view("label", std::span<const float>(labels), {1});
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < records; ++i) numbers.push_back(i % count);
    return once.subset(numbers);
}

} // namespace mode_study
