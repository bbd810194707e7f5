#include <tapegraph/data/loader.hpp>
#include <tapegraph/data/series/windows.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

/// Expected windows are those of keras.utils.timeseries_dataset_from_array, Keras 3.15.

namespace series_windows_test {

using namespace tapegraph;
using ints = std::vector<std::int32_t>;

namespace {

ints counted(std::int32_t from, std::size_t size) {
    ints values(size);
    std::iota(values.begin(), values.end(), from);
    return values;
}
/// All values of a column, record by record.
ints all_of(const data::dataset& set, const std::string& column) {
    data::loader batches(set.batch(set.size()));
    batches.begin_epoch(0);
    const auto values = batches.next()->values<std::int32_t>(column);
    return {values.begin(), values.end()};
}

} // namespace

TEST_CASE("windows, their stride, sampling rate, start and end") {
    const auto set = data::timeseries_dataset_from_array(counted(0, 12), 0, {.sequence_length = 3});
    CHECK(set.size() == 10);
    CHECK(set.columns()[0].shape == std::vector<std::int64_t>{3});
    CHECK(all_of(data::timeseries_dataset_from_array(counted(0, 12), 0,
                                                     {.sequence_length = 3, .sequence_stride = 2, .sampling_rate = 2}),
                 "sequence") == ints{0, 2, 4, 2, 4, 6, 4, 6, 8, 6, 8, 10});
    const data::series_window_options part{.sequence_length = 3, .start_index = 2, .end_index = 9};
    CHECK(all_of(data::timeseries_dataset_from_array(counted(0, 12), 0, part), "sequence") ==
          ints{2, 3, 4, 3, 4, 5, 4, 5, 6, 5, 6, 7, 6, 7, 8});
    const auto targeted = data::timeseries_dataset_from_array(counted(0, 12), 0, counted(100, 12), 0, part);
    CHECK(all_of(targeted, "target") == ints{102, 103, 104, 105, 106});
    CHECK(targeted.columns()[1].shape.empty());
    CHECK(all_of(data::timeseries_dataset_from_array(counted(0, 12), 0, counted(100, 12), 0,
                                                     {.sequence_length = 4, .sampling_rate = 3}),
                 "target") == ints{100, 101, 102});
}

TEST_CASE("several features; the next step as target; fewer targets than windows") {
    // Steps of two features: (0, 1), (2, 3), ...
    const auto set = data::timeseries_dataset_from_array(counted(0, 10), 2, counted(0, 10), 2,
                                                         {.sequence_length = 2, .target_offset = 2});
    CHECK(set.columns()[0].shape == std::vector<std::int64_t>{2, 2});
    CHECK(all_of(set, "sequence") == ints{0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7}); // the last window has no next step
    CHECK(all_of(set, "target") == ints{4, 5, 6, 7, 8, 9});
    CHECK(data::timeseries_dataset_from_array(counted(0, 10), 0, counted(0, 4), 0,
                                              {.sequence_length = 2, .sequence_stride = 3})
              .size() == 2);
    CHECK(data::timeseries_dataset_from_array(counted(0, 3), 0, {.sequence_length = 3}).size() == 1);
    CHECK(data::timeseries_dataset_from_array(counted(0, 1), 1, {.sequence_length = 1}).columns()[0].shape ==
          std::vector<std::int64_t>{1, 1});
}

TEST_CASE("windows that cannot be") {
    const auto refusal = [](const data::series_window_options& options) {
        return support::message_of<argument_error>(
            [&] { data::timeseries_dataset_from_array(counted(0, 12), 0, options); });
    };
    CHECK(refusal({}) ==
          "timeseries_dataset_from_array: sequence_length 0, sequence_stride 1, sampling_rate 1: each is at "
          "least 1; the series has 12 steps");
    CHECK(refusal({.sequence_length = 5, .sampling_rate = 3}) ==
          "timeseries_dataset_from_array: no window of 5 steps, 3 apart, lies in [0, 12); the series has 12 steps");
    CHECK_FALSE(refusal({.sequence_length = 2, .sequence_stride = 0}).empty());
    CHECK_FALSE(refusal({.sequence_length = 2, .start_index = -1}).empty());
    CHECK_FALSE(refusal({.sequence_length = 2, .start_index = 5, .end_index = 5}).empty());
    CHECK_FALSE(refusal({.sequence_length = 2, .end_index = 13}).empty());
    CHECK_FALSE(refusal({.sequence_length = INT64_MAX, .sampling_rate = INT64_MAX}).empty());
    CHECK(support::message_of<shape_error>([] {
              data::timeseries_dataset_from_array(counted(0, 5), 2, {.sequence_length = 1});
          }) == "timeseries_dataset_from_array: 5 values of the series are not steps of 2 features");
    CHECK(support::message_of<argument_error>([] {
              data::timeseries_dataset_from_array(counted(0, 5), 0, counted(0, 3), 0,
                                                  {.sequence_length = 1, .target_offset = 3});
          }) == "timeseries_dataset_from_array: 3 targets, the first window's is that of step 3");
}

TEST_CASE("the last records are for validation") {
    const auto set = data::timeseries_dataset_from_array(counted(0, 12), 0, {.sequence_length = 3}); // 10 windows
    const auto parts = data::split_in_time(set, 0.3, 2);
    CHECK(all_of(parts.train, "sequence").back() == 6);       // the window 4, 5, 6
    CHECK(all_of(parts.validation, "sequence").front() == 7); // no step in both
    CHECK(parts.train.size() == 5);
    CHECK(parts.validation.size() == 3);
    CHECK(data::split_in_time(set, 0.01).validation.size() == 1);
    CHECK(data::split_in_time(set, 0.99).train.size() == 1);
    CHECK(support::message_of<argument_error>([&] { data::split_in_time(set, 0.5, 5); }) ==
          "split_in_time: of 10 records 5 are for validation and 5 between, none is left");
    CHECK_THROWS_AS(data::split_in_time(set, 0), argument_error);
    CHECK_THROWS_AS(data::split_in_time(set, 0.5, -1), argument_error);
}

} // namespace series_windows_test
