#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/core/shown_errors.hpp>
#include <tapegraph/data/dataset.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// Windows of a series of numbers, and splits of a series by time.

namespace tapegraph::data {

/// Names and defaults are those of Keras.
struct series_window_options {
    std::int64_t sequence_length = 0; ///< steps per window
    std::int64_t sequence_stride = 1; ///< between the starts of two windows
    std::int64_t sampling_rate = 1;   ///< between two steps of a window
    std::int64_t start_index = 0;     ///< earlier steps are omitted
    std::int64_t end_index = 0;       ///< steps from it on are omitted; 0: none
    std::int64_t target_offset =
        0; ///< the target of the window that starts at step i is that of step i + target_offset
};

namespace detail {

/// The number of windows at a stride of one step.
std::int64_t count_of_windows(std::int64_t steps, const series_window_options& options);

std::int64_t steps_of(std::size_t values, std::int64_t features, const char* what);

} // namespace detail
// clang-format off
template <class = void> no_such_option_in<series_window_options> timeseries_dataset_from_array(any_argument, any_argument, ...) TG_MISTAKE;
template <class = void> no_such_option_in<series_window_options> timeseries_dataset_from_array(any_argument, any_argument, any_argument, any_argument, ...) TG_MISTAKE;
// clang-format on

/// Windows of a series [steps, features], like Keras's timeseries_dataset_from_array: record k has
/// the column "sequence" (T, [sequence_length, features], or [sequence_length] if `features` is 0),
/// the steps start_index + k sequence_stride + j sampling_rate. Batches and shuffling are the data
/// set's. The series is stored once, whatever the windows share. Throws shape_error if the values
/// are not a whole number of steps, argument_error for invalid options and if no window fits.
template <class T>
dataset timeseries_dataset_from_array(std::vector<T> values, std::int64_t features,
                                      const series_window_options& options) {
    const std::int64_t windows = detail::count_of_windows(detail::steps_of(values.size(), features, "series"), options);
    const std::int64_t width = std::max<std::int64_t>(features, 1), length = options.sequence_length;
    std::vector<std::int64_t> shape{length};
    if (features > 0) shape.push_back(features);
    const auto series = std::make_shared<const std::vector<T>>(std::move(values));
    const auto fill = [=](std::int64_t record, const record_writer& out) {
        const auto to = out.values<T>(0);
        const std::int64_t first = options.start_index + record * options.sequence_stride;
        for (std::int64_t j = 0; j < length; ++j)
            std::copy_n(series->begin() + (first + j * options.sampling_rate) * width, width, to.begin() + j * width);
    };
    return dataset::from_generator((windows - 1) / options.sequence_stride + 1,
                                   {{"sequence", dtype_of<T>, std::move(shape)}}, fill);
}

/// The same with a target for each window: the column "target" (U, [target_features], or [] for 0),
/// that of step start_index + k sequence_stride + target_offset. With the series itself as targets
/// and an offset of sequence_length x sampling_rate a model predicts the next step. Windows whose
/// target is beyond the targets are omitted.
template <class T, class U>
dataset timeseries_dataset_from_array(std::vector<T> values, std::int64_t features, std::vector<U> targets,
                                      std::int64_t target_features, const series_window_options& options) {
    const std::int64_t steps = detail::steps_of(values.size(), features, "series");
    const std::int64_t known = detail::steps_of(targets.size(), target_features, "targets");
    const std::int64_t first_target = options.start_index + options.target_offset;
    const std::int64_t windows = std::min(detail::count_of_windows(steps, options), known - first_target);
    if (windows < 1)
        throw argument_error("timeseries_dataset_from_array: " + std::to_string(known) +
                             " targets, the first window's is that of step " + std::to_string(first_target));
    const auto inputs = timeseries_dataset_from_array(std::move(values), features, options);
    const std::int64_t width = std::max<std::int64_t>(target_features, 1);
    std::vector<column_spec> columns = inputs.columns();
    columns.push_back({"target", dtype_of<U>, {}});
    if (target_features > 0) columns.back().shape.push_back(target_features);
    const auto all = std::make_shared<const std::vector<U>>(std::move(targets));
    const auto fill = [=](std::int64_t record, const record_writer& out) {
        std::byte* const place = reinterpret_cast<std::byte*>(out.values<T>(0).data());
        inputs.records().fill(record, std::span<std::byte* const>(&place, 1));
        const std::int64_t step = first_target + record * options.sequence_stride;
        std::copy_n(all->begin() + step * width, width, out.values<U>(1).begin());
    };
    return dataset::from_generator((windows - 1) / options.sequence_stride + 1, std::move(columns), fill);
}

/// Splits records by time: the last round(fraction * size) of them, but at least one on either
/// side, are for validation. With random records (train_validation_split) training would include
/// the time between the validation records. `gap` records before the validation records are
/// omitted: if windows overlap, use sequence_length x sampling_rate / sequence_stride, so that the
/// two parts share no step. Throws argument_error for a fraction outside (0, 1), a negative gap and
/// if no training record is left.
split_datasets split_in_time(const dataset& all, double fraction, std::int64_t gap = 0);

#if TG_DEFINES(data)

namespace detail {

TG_DEFINITION std::int64_t count_of_windows(std::int64_t steps, const series_window_options& options) {
    const std::int64_t end = options.end_index == 0 ? steps : options.end_index;
    const auto refuse = [&](const std::string& why) {
        throw argument_error("timeseries_dataset_from_array: " + why + "; the series has " + std::to_string(steps) +
                             " steps");
    };
    if (options.sequence_length < 1 || options.sequence_stride < 1 || options.sampling_rate < 1)
        refuse("sequence_length " + std::to_string(options.sequence_length) + ", sequence_stride " +
               std::to_string(options.sequence_stride) + ", sampling_rate " + std::to_string(options.sampling_rate) +
               ": each is at least 1");
    if (options.start_index < 0 || end > steps || options.start_index >= end || options.target_offset < 0)
        refuse("start_index " + std::to_string(options.start_index) + ", end_index " + std::to_string(end) +
               ", target_offset " + std::to_string(options.target_offset));
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(options.sequence_length - 1, options.sampling_rate, &reach) ||
        reach >= end - options.start_index)
        refuse("no window of " + std::to_string(options.sequence_length) + " steps, " +
               std::to_string(options.sampling_rate) + " apart, lies in [" + std::to_string(options.start_index) +
               ", " + std::to_string(end) + ")");
    return end - options.start_index - reach;
}

TG_DEFINITION std::int64_t steps_of(std::size_t values, std::int64_t features, const char* what) {
    const auto each = static_cast<std::size_t>(std::max<std::int64_t>(features, 1));
    if (features < 0 || values % each != 0)
        throw shape_error("timeseries_dataset_from_array: " + std::to_string(values) + " values of the " + what +
                          " are not steps of " + std::to_string(features) + " features");
    return static_cast<std::int64_t>(values / each);
}

} // namespace detail

TG_DEFINITION split_datasets split_in_time(const dataset& all, double fraction, std::int64_t gap) {
    if (!(fraction > 0 && fraction < 1) || gap < 0)
        throw argument_error("split_in_time: fraction " + number_text(fraction) + ", gap " + std::to_string(gap));
    auto held = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(all.size())));
    held = std::max<std::int64_t>(1, std::min(held, all.size() - 1));
    const std::int64_t kept = all.size() - held - gap;
    if (kept < 1)
        throw argument_error("split_in_time: of " + std::to_string(all.size()) + " records " + std::to_string(held) +
                             " are for validation and " + std::to_string(gap) + " between, none is left");
    std::vector<std::int64_t> last;
    for (std::int64_t i = all.size() - held; i < all.size(); ++i) last.push_back(i);
    return {all.take(kept), all.subset(last)};
}

#endif

} // namespace tapegraph::data
