#pragma once

#include <cuda/device_array.hpp>

#include <cuda/call.hpp>

#include <tapegraph/cuda/reduction.cuh>
#include <tapegraph/ops/ops.hpp>

#include <string>

/// Shapes and values for tests of reductions on a device.

namespace cuda_test {

using namespace tapegraph;

struct reduction_case {
    extents domain;
    std::uint32_t axes;
    std::string text() const {
        std::string t = "axes " + std::to_string(axes) + " of";
        for (std::int64_t e : domain) t += " " + std::to_string(e);
        return t;
    }
    extents kept() const {
        extents e;
        for (std::size_t a = 0; a < domain.size(); ++a)
            if ((axes >> a & 1) == 0) e.push_back(domain[a]);
        return e;
    }
};
inline const reduction_case reduction_cases[]{
    // Nothing is folded; one row: within a thread, a warp, a block, in parts.
    {{}, 0},
    {{1}, 1},
    {{5, 7}, 0},
    {{4, 1, 3}, 2},
    {{3}, 1},
    {{113}, 1},
    {{1031}, 1},
    {{5003}, 1},
    {{16387}, 1},
    // Rows whose lengths are multiples of vectors or not; rows in parts; more rows than a block
    // has.
    {{301, 3}, 2},
    {{67, 4}, 2},
    {{37, 10}, 2},
    {{19, 128}, 2},
    {{5, 401}, 2},
    {{3, 1200}, 2},
    {{2, 1201}, 2},
    {{2, 16385}, 2},
    // Columns: fewer and more than a warp, multiples of vectors or not; few rows, many rows, in
    // parts; a narrow column.
    {{5, 3}, 1},
    {{2, 257}, 1},
    {{3, 152}, 1},
    {{700, 7}, 1},
    {{301, 8}, 1},
    {{9000, 4}, 1},
    {{6001, 3}, 1},
    {{7, 1}, 1},
    {{1000, 2}, 1},
    {{3, 5, 150}, 3},
    {{4, 4, 3}, 3},
    // Rows that end within a vector, so that several form a line: 2 of 150, 4 of 9; but not of 75,
    // since their number is no multiple of 4.
    {{20, 15, 150}, 3},
    {{4096, 9}, 1},
    {{301, 75}, 1},
    {{2, 400, 66}, 2},
    {{40, 1100}, 1},
    {{4, 6, 5}, 2},
    {{70, 3, 4}, 2},
    {{3, 19, 40}, 2},
    // Axes in between.
    {{4, 5, 6}, 5},
    {{3, 4, 5, 6}, 10},
    {{3, 4, 5, 6}, 5},
    {{3, 40, 2, 30}, 9},
    {{2, 3, 2, 3, 2, 3, 2, 3}, 0xAA},
    {{2, 3, 2, 3, 2, 3, 2, 3}, 0x55},
    {{1, 5, 1, 4, 1}, 26},
};

/// Fills a call's operands and results; `run` receives it with its workspace.
template <class Device, class Prepare>
void run_device(device_call& c, const Prepare& prepare, std::int64_t blocks) {
    prepare(c);
    c.workspace(Device::workspace(c.call));
    c.on_device([&](const kernel_call& call) { Device::run(call, blocks); });
}
template <class T>
using in_memory = region<slots<dtype_of<T>>, results<0>>;

inline unsigned scrambled(unsigned i) {
    i = (i ^ 61) ^ (i >> 16);
    i *= 9;
    i = (i ^ i >> 4) * 0x27d4eb2du;
    return i ^ i >> 15;
}
inline int whole(unsigned i) { return static_cast<int>(scrambled(i) % 7) - 3; }

} // namespace cuda_test
