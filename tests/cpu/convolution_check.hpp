#pragma once

#include <tapegraph/ops/convolution/cpu.hpp>

#include <support/poisoned.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

/// A convolution and its gradients straight from the definition, and the kernels compared with it.

namespace convolution_test {

using support::poisoned;

namespace cpu = tapegraph::cpu;
using geometry = cpu::convolution_geometry;
using cpu::convolution_pass;

// Small integers: every sum is exact in float, whatever its order, so results compare exactly.
template <class T>
std::vector<T> integers(std::int64_t n, unsigned seed) {
    std::vector<T> values(static_cast<std::size_t>(n));
    for (auto& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<T>(static_cast<int>(seed >> 28) - 8);
    }
    return values;
}

/// Calls f(index in x, index in w, index in y) for every product of the convolution, straight from the definition.
template <class F>
void for_products(const geometry& g, const F& f) {
    for (std::int64_t b = 0; b < g.batch; ++b)
        for (std::int64_t i = 0; i < g.out_height; ++i)
            for (std::int64_t j = 0; j < g.out_width; ++j)
                for (std::int64_t u = 0; u < g.kernel_height; ++u)
                    for (std::int64_t v = 0; v < g.kernel_width; ++v) {
                        const std::int64_t row = i * g.stride_height - g.pad_top + u * g.dilation_height;
                        const std::int64_t column = j * g.stride_width - g.pad_left + v * g.dilation_width;
                        if (row < 0 || row >= g.in_height || column < 0 || column >= g.in_width) continue;
                        for (std::int64_t c = 0; c < g.group_in(); ++c)
                            for (std::int64_t o = 0; o < g.out_channels; ++o) {
                                const std::int64_t channel = o / g.group_out() * g.group_in() + c;
                                f(((b * g.in_height + row) * g.in_width + column) * g.in_channels + channel,
                                  ((u * g.kernel_width + v) * g.group_in() + c) * g.out_channels + o,
                                  ((b * g.out_height + i) * g.out_width + j) * g.out_channels + o);
                            }
                    }
}

template <class T>
struct expectation {
    geometry g;
    std::vector<T> x, w, dy, bias;
    std::vector<double> y, dx, dw;

    explicit expectation(const geometry& shape) : g(shape) {
        x = integers<T>(g.batch * g.in_height * g.in_width * g.in_channels, 1);
        w = integers<T>(g.kernel_height * g.kernel_width * g.group_in() * g.out_channels, 2);
        dy = integers<T>(g.batch * g.out_height * g.out_width * g.out_channels, 3);
        bias = integers<T>(g.out_channels, 4);
        y.resize(dy.size());
        dx.resize(x.size());
        dw.resize(w.size());
        for_products(g, [&](std::int64_t in_x, std::int64_t in_w, std::int64_t in_y) {
            const auto i = static_cast<std::size_t>(in_x), j = static_cast<std::size_t>(in_w);
            const auto k = static_cast<std::size_t>(in_y);
            y[k] += static_cast<double>(x[i]) * static_cast<double>(w[j]);
            dx[i] += static_cast<double>(dy[k]) * static_cast<double>(w[j]);
            dw[j] += static_cast<double>(dy[k]) * static_cast<double>(x[i]);
        });
    }

    static std::int64_t differences(const std::vector<T>& got, const std::vector<double>& wanted) {
        std::int64_t count = 0;
        for (std::size_t i = 0; i < got.size(); ++i) count += !(static_cast<double>(got[i]) == wanted[i]);
        return count;
    }

    void check() const {
        const int threads = tapegraph::thread_count();
        const T nan = std::numeric_limits<T>::quiet_NaN();
        std::vector<T> got_y(y.size(), nan), got_dx(dx.size(), nan), got_dw(dw.size(), nan), activated(y.size(), nan),
            at_once(y.size(), nan);
        const auto bytes = [&](convolution_pass pass) { return cpu::convolution_workspace_bytes<T>(g, pass, threads); };
        {
            poisoned workspace(bytes(convolution_pass::forward)), packed(cpu::packed_filter_bytes<T>(g));
            cpu::convolution_forward(g, x.data(), w.data(), got_y.data(), workspace.get());
            cpu::convolution_forward(g, x.data(), w.data(), at_once.data(), workspace.get(), {bias.data(), true});
            cpu::pack_filters(g, w.data(), static_cast<T*>(packed.get()));
            cpu::convolution_forward_packed(g, x.data(), static_cast<const T*>(packed.get()), activated.data(),
                                            workspace.get(), {bias.data(), true});
        }
        {
            poisoned workspace(bytes(convolution_pass::input_gradient));
            cpu::convolution_input_gradient(g, dy.data(), w.data(), got_dx.data(), workspace.get());
        }
        {
            poisoned workspace(bytes(convolution_pass::filter_gradient));
            cpu::convolution_filter_gradient(g, x.data(), dy.data(), got_dw.data(), workspace.get());
        }
        std::vector<double> wanted = y;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            wanted[i] += static_cast<double>(bias[i % bias.size()]);
            wanted[i] = wanted[i] < 0 ? 0 : wanted[i];
        }
        INFO("batch " << g.batch << " image " << g.in_height << "x" << g.in_width << "x" << g.in_channels << " kernel "
                      << g.kernel_height << "x" << g.kernel_width << " out " << g.out_height << "x" << g.out_width
                      << "x" << g.out_channels << " stride " << g.stride_height << "," << g.stride_width << " pad "
                      << g.pad_top << "," << g.pad_left << " dilation " << g.dilation_height << "," << g.dilation_width
                      << " groups " << g.groups << " set " << static_cast<int>(cpu::active_instruction_set())
                      << " threads " << threads);
        CHECK(differences(got_y, y) == 0);
        CHECK(differences(activated, wanted) == 0);
        CHECK(differences(at_once, wanted) == 0);
        CHECK(differences(got_dx, dx) == 0);
        CHECK(differences(got_dw, dw) == 0);
    }
};

/// Checks one shape under every instruction set the processor has, on one and two threads.
template <class T>
void check_everywhere(const geometry& g) {
    const expectation<T> expected(g);
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        for (const int threads : {1, 2}) {
            tapegraph::set_thread_count(threads);
            expected.check();
        }
    }
    tapegraph::set_thread_count(0);
    cpu::set_instruction_set(cpu::supported_instruction_set());
}

} // namespace convolution_test
