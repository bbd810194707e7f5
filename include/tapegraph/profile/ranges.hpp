#pragma once

#include <tapegraph/core/config.hpp>

#if defined(TG_CUDA) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define TG_HAS_NVTX 1
#else
#define TG_HAS_NVTX 0
#endif

/// Named ranges, for tools that observe the whole process.

namespace tapegraph::profiling {

/// Called around every step and every call of a profile, with "step" and "layer: operation"; null:
/// none. Programs for GPUs that find NVTX's headers (which CUDA includes) open its ranges, which
/// Nsight Systems shows; NVTX loads nothing unless a tool runs.
struct range_hooks {
    void (*push)(const char* name) = nullptr;
    void (*pop)() = nullptr;
};
/// What opens and closes ranges: NVTX where its header is there, or a program's own.
inline range_hooks& ranges() {
#if TG_HAS_NVTX
    static range_hooks hooks{[](const char* name) { (void)nvtxRangePushA(name); }, [] { (void)nvtxRangePop(); }};
#else
    static range_hooks hooks;
#endif
    return hooks;
}
/// Opens a range of that name.
inline void push_range(const char* name) {
    if (ranges().push != nullptr) ranges().push(name);
}
/// Closes the range opened last.
inline void pop_range() {
    if (ranges().pop != nullptr) ranges().pop();
}

} // namespace tapegraph::profiling
