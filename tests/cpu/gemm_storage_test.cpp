#include <tapegraph/cpu/gemm_storage.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace gemm_storage_test {

using namespace tapegraph;

namespace {

struct freed {
    void operator()(void* p) const { std::free(p); }
};
std::unique_ptr<void, freed> memory(std::size_t bytes) {
    return std::unique_ptr<void, freed>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
}

template <class T>
std::vector<T> noise(std::int64_t count, std::uint32_t seed) {
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = T(static_cast<float>(static_cast<std::int32_t>(seed)) * 0x1p-31f);
    }
    return values;
}

/// The product with b packed before, and as it is: the same bits, on one thread and on three.
template <class T>
bool same_bits(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed, bool biased) {
    const auto a = noise<T>(m * k, 1), b = noise<T>(k * n, 2), bias = noise<T>(n, 3);
    std::vector<T> found[3];
    for (int way = 0; way < 3; ++way) {
        set_thread_count(way == 2 ? 3 : 1);
        std::vector<T>& c = found[way];
        c.assign(static_cast<std::size_t>(m * n), T(7.0f));
        cpu::gemm_arguments<T> g{m, n, k, a.data(), k, false, b.data(), transposed ? k : n, transposed, c.data(), n};
        if (biased) g.bias = bias.data();
        const auto panels = memory(cpu::gemm_packed_bytes<float>(n, k));
        auto* const packed = static_cast<float*>(panels.get());
        cpu::gemm_storage_pack_b(g, packed);
        const auto workspace = memory(cpu::gemm_storage_workspace_bytes(g, 3));
        const float* const given = way == 0 ? nullptr : packed;
        if (biased)
            cpu::gemm_storage<T, cpu::detail::narrow_rows_biased<T, true>>(g, workspace.get(), given);
        else
            cpu::gemm_storage<T>(g, workspace.get(), given);
    }
    set_thread_count(0);
    const std::size_t bytes = found[0].size() * sizeof(T);
    return std::memcmp(found[0].data(), found[1].data(), bytes) == 0 &&
           std::memcmp(found[0].data(), found[2].data(), bytes) == 0;
}

} // namespace

TEST_CASE("products of 16-bit elements: a second factor that was packed before gives the same bits") {
    const auto before = cpu::active_instruction_set();
    for (const auto set : {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
        cpu::set_instruction_set(set);
        if (cpu::active_instruction_set() != set) continue;
        for (const std::int64_t m : {1, 2, 13, 96, 97})
            for (const std::int64_t n : {2, 16, 33, 1031})
                for (const std::int64_t k : {1, 37, 521})
                    for (const bool transposed : {false, true}) {
                        INFO(m << " " << n << " " << k << " " << transposed);
                        CHECK(same_bits<bfloat16>(m, n, k, transposed, false));
                        CHECK(same_bits<half>(m, n, k, transposed, true));
                    }
        CHECK(same_bits<half>(1037, 35, 11, false, false)); // several blocks of rows
    }
    cpu::set_instruction_set(before);
}

} // namespace gemm_storage_test
