#pragma once

#include <functional>

/// The twin of what cuda/kernels/dependent.cuh waits for.

namespace simt {

/// What the running kernel, launched early, may not see before it waits.
struct predecessors {
    std::function<void()> finish;
    bool waited = false;

    /// Of this thread's kernel; null where it was launched when all before was done.
    static predecessors*& of_running() {
        static thread_local predecessors* p = nullptr;
        return p;
    }
};

} // namespace simt

namespace tapegraph::cuda::kernels {

inline void wait_for_predecessors() {
    simt::predecessors* const before = simt::predecessors::of_running();
    if (before == nullptr || before->waited) return;
    before->waited = true;
    if (before->finish) before->finish();
}

} // namespace tapegraph::cuda::kernels
