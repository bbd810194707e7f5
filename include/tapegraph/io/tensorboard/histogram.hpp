#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/any_tensor.hpp>
#include <tapegraph/io/tensorboard/wire.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Histograms in the form of TensorBoard's plugin.

namespace tapegraph::io {

/// A bucket of a histogram: values in [left, right); the last one includes `right`.
struct histogram_bucket {
    double left = 0, right = 0, count = 0;
};

namespace detail {

/// Calls f(data, count) with a pointer of the elements' type.
template <class F>
void visit_elements(const any_tensor& t, const F& f) {
    const void* const data = t.read();
    visit_type(t.type(), [&]<class T>(std::type_identity<T>) {
        f(static_cast<const T*>(data), static_cast<std::size_t>(t.size()));
    });
}

} // namespace detail

/// `count` buckets of equal width from the smallest to the largest value, like those of
/// TensorBoard's own writer: if all values are equal, only the last bucket counts; without values,
/// all are zero. Values that are not finite are in no bucket. Throws argument_error for count < 1.
template <class T>
std::vector<histogram_bucket> histogram_buckets(std::span<const T> values, int count = 30) {
    if (count < 1) throw argument_error("histogram: " + std::to_string(count) + " buckets");
    std::vector<histogram_bucket> buckets(static_cast<std::size_t>(count));
    double low = HUGE_VAL, high = -HUGE_VAL, finite = 0;
    for (const T each : values) {
        const auto x = static_cast<double>(each);
        if (!std::isfinite(x)) continue;
        low = x < low ? x : low;
        high = x > high ? x : high;
        finite += 1;
    }
    if (finite == 0) return buckets;
    if (low == high) {
        for (histogram_bucket& b : buckets) b.left = b.right = low;
        buckets.back().count = finite;
        return buckets;
    }
    // The difference of two doubles may overflow; that of their halves never does.
    const double width = high / count - low / count;
    for (int i = 0; i < count; ++i) {
        buckets[static_cast<std::size_t>(i)].left = low + width * i;
        buckets[static_cast<std::size_t>(i)].right = i + 1 == count ? high : low + width * (i + 1);
    }
    for (const T each : values) {
        const auto x = static_cast<double>(each);
        if (!std::isfinite(x)) continue;
        const double place = std::floor(x / width - low / width);
        buckets[static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(count - 1)))].count += 1;
    }
    return buckets;
}
inline std::vector<histogram_bucket> histogram_buckets(const any_tensor& values, int count = 30) {
    std::vector<histogram_bucket> buckets;
    detail::visit_elements(values, [&]<class T>(const T* data, std::size_t n) {
        buckets = histogram_buckets(std::span<const T>(data, n), count);
    });
    return buckets;
}

namespace detail::wire {

inline void histogram_event(std::string& buffer, double wall_time, std::int64_t step, std::string_view tag,
                            std::span<const histogram_bucket> buckets) {
    summary_event(buffer, wall_time, step, tag, [&](writer& value) {
        {
            writer tensor(value, 8);
            tensor.add_enum(1, dt_double);
            const std::int64_t extents[]{static_cast<std::int64_t>(buckets.size()), 3};
            shape(tensor, 2, extents);
            writer content(tensor, 4);
            for (const histogram_bucket& b : buckets)
                for (const double number : {b.left, b.right, b.count}) {
                    char bytes[8];
                    auto bits = std::bit_cast<std::uint64_t>(number);
                    for (char& c : bytes) c = static_cast<char>(bits & 0xff), bits >>= 8;
                    buffer.append(bytes, sizeof bytes);
                }
        }
        metadata(value, "histograms", class_tensor);
    });
}

} // namespace detail::wire
} // namespace tapegraph::io
