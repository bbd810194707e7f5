#include "layouts.hpp"

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>

namespace cute_layouts {

namespace {

constexpr int lanes = 32;

template <class Layout>
std::vector<int> numbers_of(const Layout& layout, int step = 1) {
    std::vector<int> all;
    const int values = static_cast<int>(cute::size<1>(layout));
    for (int lane = 0; lane < lanes; ++lane)
        for (int v = 0; v < values; v += step) all.push_back(static_cast<int>(layout(lane, v)) / step);
    return all;
}
template <class Atom>
multiplication of(int depth) {
    using traits = cute::MMA_Traits<Atom>;
    return {depth, numbers_of(typename traits::ALayout{}), numbers_of(typename traits::BLayout{}),
            numbers_of(typename traits::CLayout{})};
}
template <class Atom>
std::vector<int> loaded() {
    return numbers_of(typename cute::Copy_Traits<Atom>::DstLayout{}, 16); // in bits
}

} // namespace

multiplication of_tf32() { return of<cute::SM80_16x8x8_F32TF32TF32F32_TN>(8); }
multiplication of_bfloat16() { return of<cute::SM80_16x8x16_F32BF16BF16F32_TN>(16); }
multiplication of_half() { return of<cute::SM80_16x8x16_F32F16F16F32_TN>(16); }

std::vector<int> of_loading(int matrices, bool transposed) {
    if (transposed) return matrices == 4 ? loaded<cute::SM75_U16x8_LDSM_T>() : loaded<cute::SM75_U16x4_LDSM_T>();
    return matrices == 4 ? loaded<cute::SM75_U32x4_LDSM_N>() : loaded<cute::SM75_U32x2_LDSM_N>();
}

} // namespace cute_layouts
