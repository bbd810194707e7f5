#include "layouts.hpp"

#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

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

namespace {

template <class T>
using swizzled_tile = decltype(cute::tile_to_shape(cute::SM90::GMMA::Layout_K_SW128_Atom<T>{},
                                                   cute::Shape<cute::_128, cute::Int<128 / sizeof(T)>>{}));

template <class T>
std::vector<int> places_of_tile() {
    const auto layout = cute::as_position_independent_swizzle_layout(swizzled_tile<T>{});
    std::vector<int> all;
    for (int row = 0; row < 128; ++row)
        for (int k = 0; k < 128 / static_cast<int>(sizeof(T)); ++k)
            all.push_back(static_cast<int>(layout(row, k)) * static_cast<int>(sizeof(T)));
    return all;
}
template <int Columns>
std::vector<int> sums_of() {
    const typename cute::SM90::GMMA::CLayout_64xN<Columns> layout{};
    std::vector<int> all;
    for (int thread = 0; thread < 128; ++thread)
        for (int i = 0; i < Columns / 2; ++i) all.push_back(static_cast<int>(layout(thread, i)));
    return all;
}
template <class T>
std::uint64_t descriptor_in(int first, int part) {
    alignas(1024) static T memory[128 * 128 / sizeof(T)];
    const auto tile = cute::make_tensor(cute::make_smem_ptr(memory), swizzled_tile<T>{});
    const auto piece =
        cute::local_tile(tile, cute::Shape<cute::_64, cute::Int<32 / sizeof(T)>>{}, cute::make_coord(first / 64, part));
    const auto way = reinterpret_cast<const unsigned char*>(cute::raw_pointer_cast(piece.data())) -
                     reinterpret_cast<const unsigned char*>(memory);
    // On the CPU shared addresses are none, which CuTe says on stdout; the descriptor's is where the piece begins.
    cute::GmmaDescriptor descriptor = cute::SM90::GMMA::make_gmma_desc<cute::SM90::GMMA::Major::K>(piece);
    descriptor.bitfield.start_address_ = static_cast<std::uint16_t>(way / 16);
    return descriptor.desc_;
}

} // namespace

std::vector<int> of_warpgroup_sums(int columns) { return columns == 64 ? sums_of<64>() : sums_of<208>(); }
std::vector<int> of_swizzled_tile(int element_bytes) {
    return element_bytes == 4 ? places_of_tile<cute::tfloat32_t>() : places_of_tile<cute::bfloat16_t>();
}
std::uint64_t descriptor_of(int element_bytes, int first, int part) {
    return element_bytes == 4 ? descriptor_in<cute::tfloat32_t>(first, part)
                              : descriptor_in<cute::bfloat16_t>(first, part);
}

} // namespace cute_layouts
