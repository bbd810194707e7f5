#include "contestant.hpp"

#include <tapegraph/cpu/gemm.hpp>
#include <tapegraph/runtime/memory.hpp>
#include <tapegraph/tapegraph.hpp>

#include <cstddef>
#include <memory>
#include <sstream>
#include <string>

/// Products of matrices alone, as models ask for them, for product_limits.py: rows
/// product_BATCH_M_N_K_LAYOUT/forward/1, where the layout is nn, or tn and nt with a transposed factor, or np
/// with a second factor that is packed once, as predictions keep their weights.

namespace {

using namespace compare;

struct product {
    std::int64_t batch = 1;
    tg::cpu::gemm_arguments<float> first{};
    tg::tensor<float> a, b, c, packed, workspace;

    void run() {
        tg::cpu::gemm_batched(first, batch, first.m * first.k, first.k * first.n, first.m * first.n,
                              workspace.mutable_data());
    }
};

tg::tensor<float> room(std::size_t bytes) {
    return tg::tensor<float>::uninitialized({static_cast<std::int64_t>(bytes / sizeof(float)) + 1});
}

prepared product_of(const row& r) {
    std::istringstream in(r.work);
    std::string part;
    std::int64_t sizes[4]{};
    std::getline(in, part, '_');
    for (std::int64_t& size : sizes) std::getline(in, part, '_'), size = std::atoll(part.c_str());
    std::string layout;
    std::getline(in, layout);
    const auto [batch, m, n, k] = sizes;
    if (batch < 1 || m < 1 || n < 1 || k < 1 || layout.size() != 2)
        throw tg::argument_error("products: product_BATCH_M_N_K_LAYOUT, not '" + r.work + "'");
    const auto p = std::make_shared<product>();
    const bool left = layout[0] == 't', right = layout[1] == 't';
    p->batch = batch;
    p->a = noise(left ? tg::shape{batch, k, m} : tg::shape{batch, m, k}, 1);
    p->b = noise(right ? tg::shape{batch, n, k} : tg::shape{batch, k, n}, 0.1f);
    p->c = tg::zeros<float>({batch, m, n});
    auto& g = p->first;
    g.m = m, g.n = n, g.k = k;
    g.a = p->a.data(), g.lda = left ? m : k, g.transpose_a = left;
    g.b = p->b.data(), g.ldb = right ? k : n, g.transpose_b = right;
    g.c = p->c.mutable_data(), g.ldc = n;
    if (layout[1] == 'p' && m > 1 && n > 1) {
        p->packed = room(tg::cpu::gemm_packed_bytes<float>(n, k));
        tg::cpu::gemm_pack_b(g, p->packed.mutable_data());
        g.packed_b = p->packed.data();
    }
    p->workspace = room(tg::cpu::gemm_batched_workspace_bytes(g, batch, tg::thread_count()));
    prepared made;
    made.step = [p] { p->run(); };
    made.numbers = [p](std::int64_t) { return p->run(), digest(p->c); };
    return made;
}

} // namespace

int main(int argc, char** argv) {
    return serve(argc, argv, [](const row& r, bool, const std::string&) { return product_of(r); });
}
