#pragma once

#include <tapegraph/ops/gather/cpu_rows.hpp>
#include <tapegraph/ops/gather/kernel.hpp>
#include <tapegraph/ops/gather/rows.hpp>

/// The kernels of ops/gather/rows.hpp.

namespace tapegraph::runtime {

template <class T>
struct kernel<sum_of_equal_rows_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        const std::int64_t count = c.in[1].elements();
        return c.in[1].type == dtype::i32 ? cpu::equal_rows_workspace_bytes<std::int32_t>(count)
                                          : cpu::equal_rows_workspace_bytes<std::int64_t>(count);
    }
    static void run(const kernel_call& c) {
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::sum_equal_rows(c.in[1].elements(), detail::span(c.in[0], c.in[1].rank, c.in[0].rank), indices,
                                c.in[0].as<const T>(), c.out[0].as<T>(), c.workspace);
        });
    }
};

template <class T>
struct kernel<assign_rows_op, T> {
    static void run(const kernel_call& c) {
        const buffer_view& table = c.out[0];
        if (table.data != c.in[0].data) cpu::copy(c.in[0].bytes(), c.in[0].data, table.data);
        detail::with_indices(c.in[1], [&](const auto* indices) {
            cpu::assign_rows(table.extents[0], detail::span(table, 1, table.rank), sizeof(T), c.in[1].elements(),
                             indices, c.in[2].data, table.data);
        });
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
