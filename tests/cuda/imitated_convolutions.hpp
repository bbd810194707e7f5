#pragma once

#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#ifdef TG_SIMT
#include <tapegraph/cuda/ops/convolution/filter_gradient_by_warpgroups.cuh>
#endif

#include <doctest/doctest.h>

#include <cstdint>

/// Imitates library/convolution_sm90.cu, which a program has only where it is linked: computes the
/// same on the executor, in the smallest tile. On a GPU the linked functions are used.

namespace tapegraph::testing {

/// Registers the convolutions while it lives.
class imitated_convolutions {
public:
    static inline int runs = 0; ///< on the executor

    imitated_convolutions() : before_(cuda::convolution_of_library) {
#ifdef TG_SIMT
        cuda::convolution_of_library = {&takes, &scratch_bytes, &run};
#endif
        runs = 0;
    }
    imitated_convolutions(const imitated_convolutions&) = delete;
    imitated_convolutions& operator=(const imitated_convolutions&) = delete;
    ~imitated_convolutions() { cuda::convolution_of_library = before_; }

private:
#ifdef TG_SIMT
    using tile = cuda::kernels::warpgroup_tile<1, 64>;
    template <class T>
    using filter_gradient = cuda::filter_gradient_by_warpgroups<T, tile>;
    static constexpr int multiprocessors = 4;

    static bool takes(const convolution_geometry& g, cuda::convolution_pass pass, dtype element) {
        return (element == dtype::f32 || element == dtype::bf16 || element == dtype::f16) &&
               cuda::im2col_convolution::has(g, pass);
    }
    static std::size_t scratch_bytes(const convolution_geometry& g, cuda::convolution_pass pass, dtype element) {
        if (pass != cuda::convolution_pass::filter_gradient)
            return cuda::warpgroup_scratch(cuda::im2col_convolution(g, pass), size_of(element)).bytes();
        return element == dtype::f32 ? filter_gradient<float>::scratch_bytes(g, multiprocessors)
                                     : filter_gradient<half>::scratch_bytes(g, multiprocessors);
    }
    static void run(const char* operation, void* stream, const convolution_geometry& g, cuda::convolution_pass pass,
                    dtype element, const cuda::library_convolution_operands& o, void* scratch) {
        REQUIRE(takes(g, pass, element));
        REQUIRE(reinterpret_cast<std::uintptr_t>(scratch) % cuda::library_convolution::scratch_alignment == 0);
        ++runs;
        const auto on = static_cast<cuda::driver::stream>(stream);
        const auto run_of = [&]<class T>() {
            if (pass == cuda::convolution_pass::filter_gradient)
                return filter_gradient<T>(operation, on, g, o, scratch, multiprocessors).run();
            const cuda::im2col_convolution c(g, pass);
            cuda::convolution_by_warpgroups<T>(operation, on, c, o, scratch).template run<tile>(multiprocessors);
        };
        if (element == dtype::f32) return run_of.template operator()<float>();
        element == dtype::bf16 ? run_of.template operator()<bfloat16>() : run_of.template operator()<half>();
    }
#endif
    cuda::library_convolution before_;
};

} // namespace tapegraph::testing
