#include <tapegraph/core/element_types.hpp>
#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/ops/convolution/by_warpgroups.cuh>

/// Convolutions by warpgroups (kernels/warpgroup_convolution.cuh) for sm_90a only, compiled once
/// per build where CuTe's headers are found.

namespace tapegraph::cuda {
namespace {

bool takes(const convolution_geometry& g, convolution_pass pass, dtype element) {
    const bool known = element == dtype::f32 || is_storage_type(element);
    if (!known || !im2col_convolution::has(g, pass)) return false;
    const driver::device_properties& device = context::current().properties();
    return device.major == 9 && device.minor == 0 && can_encode();
}

std::size_t scratch_bytes(const convolution_geometry& g, convolution_pass pass, dtype element) {
    return warpgroup_scratch(im2col_convolution(g, pass), size_of(element)).bytes();
}

template <class T>
void run_of(const char* operation, void* stream, const im2col_convolution& c, const library_convolution_operands& o,
            void* scratch) {
    using kernels::warpgroup_tile;
    convolution_by_warpgroups<T>(operation, static_cast<driver::stream>(stream), c, o, scratch)
        .template run<warpgroup_tile<2, 160>, warpgroup_tile<2, 128>, warpgroup_tile<1, 208>, warpgroup_tile<1, 64>>(
            context::current().properties().multiprocessors);
}

void run(const char* operation, void* stream, const convolution_geometry& g, convolution_pass pass, dtype element,
         const library_convolution_operands& o, void* scratch) {
    const im2col_convolution c(g, pass);
    const auto run_in = [&]<class T>(std::type_identity<T>) { run_of<T>(operation, stream, c, o, scratch); };
    if (!storage_types::visit(element, run_in)) run_in(std::type_identity<float>{});
}

[[maybe_unused]] const bool convolutions_are_known = [] {
    convolution_of_library = {&takes, &scratch_bytes, &run};
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
