#include "operation.hpp"

#include <tapegraph/ops/attention/attention.hpp>

#include <cstdint>
#include <string_view>

/// What layers consist of, as single operations; operations.py has their operands in Python.

namespace {

using namespace compare;

/// A convolution of square images whose side a stride of 1 keeps.
template <int Side, int From, int Taps, int To, int Stride = 1, int Dilation = 1, int Groups = 1>
prepared convolution(const row& r) {
    constexpr auto f = [](const auto& x, const auto& w) {
        constexpr std::int64_t edge = Dilation * (Taps - 1) / 2;
        return conv2d(x, w,
                      {.stride = Stride,
                       .padding = tg::padding::amounts(edge, edge, edge, edge),
                       .dilation = Dilation,
                       .groups = Groups});
    };
    using images = tg::spec<float, dyn, Side, Side, From>;
    using filters = tg::spec<float, Taps, Taps, From / Groups, To>;
    const auto x = noise({r.size, Side, Side, From}, 1), w = noise({Taps, Taps, From / Groups, To}, 0.1f);
    return r.kind == "gradient" ? gradient<images, filters>(f, x, w) : forward<images, filters>(f, x, w);
}

/// 2 by 2 pixels for each, as U-Nets enlarge images.
prepared transposed_convolution(const row& r) {
    constexpr auto f = [](const auto& x, const auto& w) { return conv2d_transpose(x, w, {.stride = 2}); };
    using images = tg::spec<float, dyn, 28, 28, 128>;
    using filters = tg::spec<float, 2, 2, 64, 128>;
    const auto x = noise({r.size, 28, 28, 128}, 1), w = noise({2, 2, 64, 128}, 0.1f);
    return r.kind == "gradient" ? gradient<images, filters>(f, x, w) : forward<images, filters>(f, x, w);
}

/// A function of `size` numbers in images of 32 by 32 with 64 channels, and of factors and offsets of the channels.
prepared normalization(auto f, const row& r) {
    using images = tg::spec<float, dyn, 32, 32, 64>;
    using channels = tg::spec<float, 64>;
    const auto x = noise({r.size / (32 * 32 * 64), 32, 32, 64}, 1), gamma = noise({64}, 1), beta = noise({64}, 0.1f);
    return r.kind == "gradient" ? gradient<images, channels, channels>(f, x, gamma, beta)
                                : forward<images, channels, channels>(f, x, gamma, beta);
}

prepared convolutions(const row& r) {
    const std::string_view kind = std::string_view(r.work).substr(5);
    if (kind == "1x1") return convolution<56, 64, 1, 256>(r);
    if (kind == "3x3") return convolution<56, 64, 3, 64>(r);
    if (kind == "5x5") return convolution<28, 64, 5, 64>(r);
    if (kind == "colours") return convolution<112, 3, 3, 64>(r);
    if (kind == "grouped") return convolution<28, 128, 3, 128, 1, 1, 4>(r);
    if (kind == "strided") return convolution<56, 64, 3, 128, 2>(r);
    if (kind == "dilated") return convolution<28, 128, 3, 128, 1, 2>(r);
    if (kind == "depthwise") return convolution<56, 64, 3, 64, 1, 1, 64>(r);
    if (kind == "transposed") return transposed_convolution(r);
    throw tg::argument_error("no operation '" + r.work + "'");
}

prepared operation(const row& r, bool for_check) {
    if (r.work.starts_with("conv_")) return convolutions(r);
    if (r.work == "group_normalization")
        return normalization(
            [](const auto& x, const auto& gamma, const auto& beta) {
                return tg::detail::normalized(x, {.first = 1, .last = 3, .groups = 8, .epsilon = 1e-3}, true, gamma,
                                              true, beta, std::source_location::current());
            },
            r);
    if (r.work == "batch_normalization")
        return normalization(
            [](const auto& x, const auto& gamma, const auto& beta) {
                const auto average = tg::eval(mean(x, {0, 1, 2}));
                const auto spread = tg::eval(mean(square(x - average), {0, 1, 2}));
                return tg::eval((x - average) * (rsqrt(spread + 1e-3) * gamma) + beta);
            },
            r);
    if (r.work == "maximum_of_rows") return of_matrix([](const auto& x) { return max(x, {1}); }, r);
    if (r.work == "maximum_of_columns") return of_matrix([](const auto& x) { return max(x, {0}); }, r);
    if (r.work == "argmax") return of_matrix([](const auto& x) { return tg::cast<float>(argmax(x, 1)); }, r);
    if (r.work == "transpose") return of_matrix([](const auto& x) { return transpose(x); }, r);
    if (r.work == "dropout") // random numbers differ between libraries
        return for_check ? of_matrix([](const auto& x) { return tg::dropout(x, 0.0); }, r)
                         : of_matrix([](const auto& x) { return tg::dropout(x, 0.5); }, r);
    if (r.work == "embedding") {
        auto words = tg::tensor<std::int32_t>::uninitialized({r.size});
        for (std::int64_t i = 0; i < r.size; ++i)
            words.mutable_data()[i] = static_cast<std::int32_t>(i * 7919 % 50'000);
        return forward<tg::spec<float, 50'000, 128>, tg::spec<std::int32_t, dyn>>(
            [](const auto& table, const auto& rows) { return gather(table, rows, 0); }, noise({50'000, 128}, 1), words);
    }
    if (r.work == "batched_products") {
        constexpr auto f = [](const auto& x, const auto& w) { return matmul(x, w); };
        using factors = tg::spec<float, dyn, dyn, dyn>;
        const auto x = noise({r.size, 128, 64}, 1), w = noise({r.size, 64, 128}, 0.1f);
        return r.kind == "gradient" ? gradient<factors, factors>(f, x, w) : forward<factors, factors>(f, x, w);
    }
    if (r.work == "attention") {
        constexpr auto f = [](const auto& q, const auto& k, const auto& v) { return tg::attention(q, k, v); };
        using heads = tg::spec<float, 1, dyn, 8, 64>;
        const auto q = noise({1, r.size, 8, 64}, 1), k = noise({1, r.size, 8, 64}, 0.5f),
                   v = noise({1, r.size, 8, 64}, 2);
        return r.kind == "gradient" ? gradient<heads, heads, heads>(f, q, k, v)
                                    : forward<heads, heads, heads>(f, q, k, v);
    }
    throw tg::argument_error("no operation '" + r.work + "'");
}

} // namespace

int main(int argc, char** argv) {
    return serve(argc, argv, [](const row& r, bool for_check, const std::string&) { return operation(r, for_check); });
}
