#pragma once

#include <tapegraph/cuda/kernels/rows.cuh>
#include <tapegraph/cuda/ops/gather/scatter.cuh>
#include <tapegraph/ops/gather/rows_kernel.hpp>

/// Kernels of sum_of_equal_rows and assign_rows. An index outside the table becomes the call's
/// fault; its row is not written.

namespace tapegraph::cuda {

namespace detail {

template <class T, class Index>
struct equal_rows {
    using source = kernels::number_source<Index>;
    using key = typename source::key;
    static std::int64_t count(const kernel_call& c) { return c.in[1].elements(); }
    static std::size_t workspace(const kernel_call& c) { return sort_of(c).workspace(); }
    static void run(const kernel_call& c) {
        constexpr const char* name = "sum_of_equal_rows";
        if (count(c) > std::numeric_limits<std::int32_t>::max())
            throw argument_error(std::string(name) + ": " + std::to_string(count(c)) + " rows, more than 2^31 - 1");
        const std::int64_t width = runtime::detail::span(c.in[0], c.in[1].rank, c.in[0].rank);
        const auto* const sorted =
            sort_of(c).run(c, name, source{c.in[1].as<const Index>(), count(c), false}, 1, nullptr, c.workspace);
        kernels::scattering s{1, 0, count(c), width, false};
        s.leave_long = count(c) > kernels::long_run;
        s.to_first = true;
        const std::int64_t counts[]{count(c), width};
        const T* const rows = c.in[0].as<const T>();
        T* const out = c.out[0].as<T>();
        for_boxes(2, counts, [&](const std::int64_t* first, const std::int64_t* extents, std::int64_t elements) {
            launch(c, name, over(elements), kernels::sum_runs<T, key>, kernels::box<2>(first, extents, elements), s,
                   sorted, rows, out);
        });
        if (s.leave_long) scatter_long_runs(c, name, 1, s, sorted, rows, out);
        for_boxes(2, counts, [&](const std::int64_t* first, const std::int64_t* extents, std::int64_t elements) {
            launch(c, name, over(elements), kernels::spread_sums<T, key>, kernels::box<2>(first, extents, elements), s,
                   sorted, out);
        });
    }

private:
    static row_sort<key> sort_of(const kernel_call& c) { return {c, 1, count(c), count(c), source::bits(), true}; }
};

} // namespace detail

template <class T>
struct kernel<sum_of_equal_rows_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        return c.in[1].type == dtype::i32 ? detail::equal_rows<T, std::int32_t>::workspace(c)
                                          : detail::equal_rows<T, std::int64_t>::workspace(c);
    }
    static void run(const kernel_call& c) {
        c.in[1].type == dtype::i32 ? detail::equal_rows<T, std::int32_t>::run(c)
                                   : detail::equal_rows<T, std::int64_t>::run(c);
    }
};

template <class T>
struct kernel<assign_rows_op, T> {
    static void run(const kernel_call& c) {
        const buffer_view& table = c.out[0];
        if (table.data != c.in[0].data)
            driver::copy(table.data, c.in[0].data, c.in[0].bytes(), static_cast<driver::stream>(c.stream));
        const void* const rows = c.in[2].data;
        const auto address = reinterpret_cast<std::uintptr_t>(table.data) | reinterpret_cast<std::uintptr_t>(rows);
        std::int64_t width = runtime::detail::span(table, 1, table.rank);
        std::size_t size = sizeof(T);
        while (size < sizeof(kernels::wide_word) && width % 2 == 0 && address % (2 * size) == 0) size *= 2, width /= 2;
        const std::int64_t counts[]{c.in[1].elements(), width};
        detail::with_word(size, [&](auto word) {
            using element = decltype(word);
            detail::for_boxes(2, counts,
                              [&](const std::int64_t* first, const std::int64_t* count, std::int64_t elements) {
                                  launch(c, "assign_rows", detail::over(elements), kernels::assign_rows<element>,
                                         kernels::box<2>(first, count, elements), table.extents[0], width,
                                         detail::indices_of(c.in[1]), static_cast<const element*>(rows),
                                         static_cast<element*>(table.data), report_indices(c, "assign_rows"));
                              });
        });
    }
};

} // namespace tapegraph::cuda
