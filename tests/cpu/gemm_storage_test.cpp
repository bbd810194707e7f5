#include <tapegraph/cpu/gemm_storage.hpp>
#include <tapegraph/ops/product/kernel_16bit.hpp>

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

TEST_CASE("products of 16-bit elements keep their second factor from the second run on, while it is unchanged") {
    constexpr std::int64_t m = 5, n = 33, k = 37;
    const auto a = noise<half>(m * k, 1);
    auto b = noise<half>(k * n, 2);
    std::vector<half> c(m * n);
    const auto view = [](auto& of, std::int64_t rows, std::int64_t columns) {
        buffer_view x;
        x.data = const_cast<half*>(of.data());
        x.type = dtype::f16;
        x.rank = 2;
        x.extents[0] = rows, x.extents[1] = columns;
        return x;
    };
    const buffer_view in[2] = {view(a, m, k), view(b, k, n)}, out = view(c, m, n);
    const std::int64_t attributes[2] = {0, 0};
    runtime::content_mark mark, *const marks = &mark;
    runtime::kept_memory kept;
    kept.watch(1, &in[1], &marks);
    kernel_call call;
    call.in = in, call.inputs = 2, call.out = &out, call.outputs = 1, call.attributes = attributes, call.kept = &kept;
    using product = runtime::kernel<matmul_op, half>;
    const auto workspace = memory(product::workspace(call));
    call.workspace = workspace.get();
    const std::size_t before = runtime::kept_blocks::instance().bytes(), panels = cpu::gemm_packed_bytes<float>(n, k);
    CHECK(kept.announced() == panels);

    const bool checked = runtime::content_mark::checked.exchange(false); // otherwise everything is kept at once
    const auto bytes = [&] { return runtime::kept_blocks::instance().bytes() - before; };
    const auto right = [&] {
        std::vector<half> wanted(c.size());
        cpu::gemm_arguments<half> g{m, n, k, a.data(), k, false, b.data(), n, false, wanted.data(), n};
        const auto own = memory(cpu::gemm_storage_workspace_bytes(g, thread_count()));
        cpu::gemm_storage<half>(g, own.get());
        product::run(call);
        return std::memcmp(c.data(), wanted.data(), c.size() * sizeof(half)) == 0;
    };
    CHECK(right());
    CHECK(bytes() == 0);
    CHECK(right());
    CHECK(bytes() >= panels);
    CHECK(right());
    b[7] = half(3.0f);
    mark.change();
    CHECK(right());
    CHECK(bytes() == 0);
    CHECK(right());
    CHECK(bytes() >= panels);
    mark.escape();
    b[8] = half(2.0f);
    CHECK(right());
    runtime::content_mark::checked = checked;
}

} // namespace gemm_storage_test
