#pragma once

#include <functional>

/// The twin of the wait in cuda/kernels/dependent.cuh.

namespace simt {

/// The work that the running kernel, launched early, may not see before it waits.
struct predecessors {
    std::function<void()> finish;
    bool waited = false;

    /// That of this thread's kernel; null where all preceding work was done at its launch.
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
