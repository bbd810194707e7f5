#pragma once

#include <tapegraph/ops/ordering/cpu.hpp>
#include <tapegraph/ops/ordering/cpu_arg_reduce.hpp>
#include <tapegraph/ops/ordering/cpu_places.hpp>
#include <tapegraph/ops/ordering/ordering.hpp>
#include <tapegraph/ops/ordering/places.hpp>
#include <tapegraph/runtime/kernel.hpp>

/// Kernels of sorting, of the positions of extremes, and of places.

namespace tapegraph::runtime {

template <class T>
struct kernel<argsort_op, T> {
    static std::size_t workspace(const kernel_call& c) {
        return cpu::sort_workspace_bytes<element>(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]));
    }
    static void run(const kernel_call& c) {
        cpu::argsort_last(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]),
                          attributes_of<argsort_op>(c).descending != 0, c.in[0].as<const element>(),
                          c.out[0].as<std::int32_t>(), c.workspace, detail::last_extent(c.out[0]));
    }
    using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
};
template <class T>
struct kernel<arg_reduce_op, T> {
    static void run(const kernel_call& c) {
        const auto a = attributes_of<arg_reduce_op>(c);
        using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        const auto reduce = a.maximum != 0 ? &cpu::arg_reduce<true, element, std::int32_t>
                                           : &cpu::arg_reduce<false, element, std::int32_t>;
        reduce(c.in[0].rank, c.in[0].extents, static_cast<int>(a.axis), c.in[0].as<const element>(),
               c.out[0].as<std::int32_t>());
    }
};
template <class T>
struct kernel<searchsorted_op, T> {
    static void run(const kernel_call& c) {
        using element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
        const auto search = attributes_of<searchsorted_op>(c).right != 0 ? &cpu::search_rows<true, element>
                                                                         : &cpu::search_rows<false, element>;
        search(detail::leading_extent(c.in[1]), detail::last_extent(c.in[0]), detail::last_extent(c.in[1]),
               c.in[0].as<const element>(), c.in[1].as<const element>(), c.out[0].as<std::int32_t>());
    }
};
template <class T>
    requires std::is_same_v<T, bool>
struct kernel<marked_places_op, T> {
    static void run(const kernel_call& c) {
        cpu::marked_places(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]), detail::last_extent(c.out[0]),
                           c.in[0].as<const std::uint8_t>(), c.out[0].as<std::int32_t>());
    }
};
template <class T>
    requires std::is_same_v<T, std::int32_t>
struct kernel<count_places_op, T> {
    static void run(const kernel_call& c) {
        cpu::count_places(detail::leading_extent(c.in[0]), detail::last_extent(c.in[0]), detail::last_extent(c.out[0]),
                          c.in[0].as<const std::int32_t>(), c.out[0].as<std::int32_t>());
    }
};

} // namespace tapegraph::runtime

#include <tapegraph/ops/compiled_kernels.hpp>
