#include <tapegraph/core/element_types.hpp>
#include <tapegraph/cuda/context.hpp>
#include <tapegraph/cuda/ops/convolution/filter_gradient_by_warpgroups.cuh>

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

template <class T, class... Tile>
struct run_in_tiles { // those of warpgroup_tiles
    using filter_gradient = filter_gradient_by_warpgroups<T, Tile...>;

    static std::size_t scratch_bytes(const convolution_geometry& g, convolution_pass pass) {
        if (pass == convolution_pass::filter_gradient) return filter_gradient::scratch_bytes(g, multiprocessors());
        return warpgroup_scratch(im2col_convolution(g, pass), sizeof(T)).bytes();
    }
    static void run(const char* operation, driver::stream stream, const convolution_geometry& g, convolution_pass pass,
                    const library_convolution_operands& o, void* scratch) {
        if (pass == convolution_pass::filter_gradient)
            return filter_gradient(operation, stream, g, o, scratch, multiprocessors()).run();
        const im2col_convolution c(g, pass);
        convolution_by_warpgroups<T>(operation, stream, c, o, scratch).template run<Tile...>(multiprocessors());
    }

private:
    static int multiprocessors() { return context::current().properties().multiprocessors; }
};
template <class T>
using tiled =
    run_in_tiles<T, kernels::warpgroup_tile<2, 160>, kernels::warpgroup_tile<2, 128>, kernels::warpgroup_tile<2, 64>,
                 kernels::warpgroup_tile<1, 208>, kernels::warpgroup_tile<1, 64>>;

std::size_t scratch_bytes(const convolution_geometry& g, convolution_pass pass, dtype element) {
    std::size_t bytes = 0;
    const auto ask = [&]<class T>(std::type_identity<T>) { bytes = tiled<T>::scratch_bytes(g, pass); };
    if (!storage_types::visit(element, ask)) ask(std::type_identity<float>{});
    return bytes;
}

void run(const char* operation, void* stream, const convolution_geometry& g, convolution_pass pass, dtype element,
         const library_convolution_operands& o, void* scratch) {
    const auto run_in = [&]<class T>(std::type_identity<T>) {
        tiled<T>::run(operation, static_cast<driver::stream>(stream), g, pass, o, scratch);
    };
    if (!storage_types::visit(element, run_in)) run_in(std::type_identity<float>{});
}

[[maybe_unused]] const bool convolutions_are_known = [] {
    convolution_of_library = {&takes, &scratch_bytes, &run};
    return true;
}();

} // namespace
} // namespace tapegraph::cuda
