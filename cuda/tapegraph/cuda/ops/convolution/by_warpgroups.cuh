#pragma once

#ifdef TG_SIMT
#include <simt/driver.hpp>
#else
#include <tapegraph/cuda/driver.cuh>
#endif
#include <tapegraph/cuda/kernels/operand.cuh>
#include <tapegraph/cuda/kernels/pack_operand.cuh>
#include <tapegraph/cuda/kernels/warpgroup_convolution.cuh>
#include <tapegraph/cuda/ops/convolution/filter_gradient_cut.hpp>
#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#include <tapegraph/cuda/ops/convolution/tensor_maps.cuh>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Runs a pass of a convolution by warpgroup_convolution: its scratch memory, the copies before it,
/// the choice of a tile.
///
/// Rows of channels whose length is a multiple of 16 bytes are fetched in place. Other rows, and
/// all floats, are fetched from a copy in scratch memory, with rows padded to 16 bytes and floats
/// rounded to TF32. Filters of a forward pass are copied with the channels of k last, because wgmma
/// reads 32-bit operands along k only.

namespace tapegraph::cuda {

/// Steps of k whose sums are added up in registers at once.
inline int chain_of(const im2col_convolution& c, const im2col_walk& walk) {
    return c.channels <= kernels::longest_chain ? kernels::longest_chain / c.channels * walk.steps_of_tap
                                                : kernels::longest_chain / walk.depth;
}

/// TMA's views of both operands, whose rows of channels are `row_bytes` apart.
inline map_of_images images_of(const im2col_convolution& c, const void* at, std::size_t element,
                               std::uint64_t row_bytes, int rows) {
    const auto number = [](int count) { return static_cast<std::uint64_t>(count); };
    if (c.images_innermost)
        return {at,
                element,
                number(c.channels),
                number(c.images),
                number(c.columns.in),
                number(c.rows.in),
                row_bytes,
                {0, c.columns.lower},
                {0, c.columns.upper},
                {1, static_cast<std::uint32_t>(c.columns.stride)},
                static_cast<std::uint32_t>(rows)};
    return {at,
            element,
            number(c.channels),
            number(c.columns.in),
            number(c.rows.in),
            number(c.images),
            row_bytes,
            {c.columns.lower, c.rows.lower},
            {c.columns.upper, c.rows.upper},
            {static_cast<std::uint32_t>(c.columns.stride), static_cast<std::uint32_t>(c.rows.stride)},
            static_cast<std::uint32_t>(rows),
            c.flat};
}
inline map_of_filters filters_of(const im2col_convolution& c, const void* at, std::size_t element,
                                 std::uint64_t row_bytes, int rows) {
    const auto number = [](int count) { return static_cast<std::uint64_t>(count); };
    return {at,
            element,
            number(c.channels),
            number(c.results),
            number(c.taps()),
            row_bytes,
            static_cast<std::uint32_t>(rows)};
}

/// The parts of a call's scratch memory, one after the other. Images whose copies do not fit are
/// computed in chunks.
struct warpgroup_scratch {
    static constexpr std::size_t usual_limit = filter_gradient_cut::usual_limit;

    int images;                            ///< of a chunk, at most
    std::int64_t pitch;                    ///< elements from one packed row to the next
    std::int64_t pixels, filters, partial; ///< bytes
    int chain;                             ///< steps of k whose sums are added up in registers at once

    warpgroup_scratch(const im2col_convolution& c, std::size_t element, std::size_t limit = usual_limit) {
        const auto bytes = static_cast<std::int64_t>(element);
        const auto up_to = [](std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; };
        const im2col_walk walk(c, kernels::tile_row_bytes / static_cast<int>(element));
        pitch = up_to(c.channels, 16 / bytes);
        filters = up_to(std::int64_t{c.taps()} * c.results * pitch * bytes, 256);
        chain = chain_of(c, walk);
        const im2col_convolution one = c.of_images(1);
        const std::int64_t packed = one.sources() * pitch * bytes,
                           summed =
                               element == 4 || chain >= walk.steps() ? 0 : std::int64_t{one.pixels()} * c.results * 4;
        const std::int64_t room = static_cast<std::int64_t>(limit) - filters - 256;
        images = static_cast<int>(std::clamp<std::int64_t>(room / (packed + summed), 1, c.images));
        pixels = up_to(images * packed, 256);
        partial = images * summed;
    }
    std::size_t bytes() const { return static_cast<std::size_t>(pixels + filters + partial); }
};

template <class T>
class convolution_by_warpgroups {
public:
    convolution_by_warpgroups(const char* operation, driver::stream stream, const im2col_convolution& c,
                              const library_convolution_operands& o, void* scratch,
                              std::size_t limit = warpgroup_scratch::usual_limit)
        : operation_(operation),
          stream_(stream),
          c_(c),
          o_(o),
          parts_(c, sizeof(T), limit),
          scratch_(static_cast<unsigned char*>(scratch)) {}

    /// Launches in the tile and the chunks with the fewest predicted cycles: waves of blocks.
    template <class... Tile>
    void run(std::int64_t multiprocessors) const {
        const std::int64_t steps = im2col_walk(c_, kernels::tile_row_bytes / static_cast<int>(sizeof(T))).steps();
        const auto cost = [&](const tile_extents& t, int images) {
            const auto waves = [&](int of) {
                const std::int64_t pixels = std::int64_t{of} * c_.rows.out * c_.columns.out;
                const std::int64_t blocks = std::int64_t{pieces(pixels, t.rows)} * pieces(c_.results, t.columns);
                return (blocks + multiprocessors - 1) / multiprocessors;
            };
            const int whole = c_.images / images, rest = c_.images % images;
            return (whole * waves(images) + waves(rest)) * steps * cycles_of_step(t) + (whole + (rest > 0)) * 8000;
        };
        // Chunks of images innermost must be whole tiles of a line.
        const int wanted = c_.images_innermost ? c_.fewest_innermost() : 1;
        const int unit = wanted <= parts_.images ? wanted : 1;
        int chunk = parts_.images / unit * unit;
        std::int64_t least = std::min({cost({Tile::Rows, Tile::Columns}, chunk)...});
        const int apart = std::max(1, chunk / 128 / unit) * unit;
        for (int images = chunk - apart; chunk < c_.images && images > parts_.images / 2; images -= apart) {
            const std::int64_t cycles = std::min({cost({Tile::Rows, Tile::Columns}, images)...});
            if (cycles < least) least = cycles, chunk = images;
        }
        const auto is_least = [&](const tile_extents& t) { return cost(t, chunk) == least; };
        static_cast<void>(((is_least({Tile::Rows, Tile::Columns}) && (run_in<Tile>(chunk), true)) || ...));
    }

private:
    template <class Tile>
    void run_in(int images) const {
        const T* const filters = packed_filters();
        for (int image = 0; image < c_.images; image += images) {
            const im2col_convolution c = c_.of_images(std::min(images, c_.images - image));
            c.images_innermost ? run_chunk<Tile, true>(c, image, filters) : run_chunk<Tile, false>(c, image, filters);
        }
    }
    template <class Tile, bool Innermost>
    void run_chunk(const im2col_convolution& c, std::int64_t image, const T* filters) const {
        const im2col_convolution one = c.of_images(1);
        const T* const pixels = packed(static_cast<const T*>(o_.pixels) + image * one.sources() * c.channels,
                                       c.sources(), scratch_, Innermost ? c.images : 1);
        const std::uint64_t row_bytes = static_cast<std::uint64_t>(parts_.pitch) * sizeof(T);
        using problem = kernels::warpgroup_problem<T, Innermost>;
        problem p{im2col_walk(c, kernels::tile_row_bytes / static_cast<int>(sizeof(T))),
                  c.pixels(),
                  c.results,
                  parts_.chain,
                  reinterpret_cast<float*>(scratch_ + parts_.pixels + parts_.filters),
                  static_cast<T*>(o_.results) + image * one.pixels() * c.results,
                  static_cast<const T*>(o_.bias),
                  o_.relu,
                  c.results % 2 == 0 && is_aligned(o_.results, 2 * sizeof(T))};
        if constexpr (sizeof(T) == sizeof(float)) p.partial = p.out;
        driver::launch(stream_, operation_,
                       {{pieces(p.m, Tile::Rows), pieces(p.n, Tile::Columns)},
                        static_cast<unsigned>(Tile::threads),
                        static_cast<std::size_t>(Tile::shared_bytes)},
                       kernels::warpgroup_convolution<T, Tile, problem>,
                       encoded(images_of(c, pixels, sizeof(T), row_bytes, Tile::Rows), operation_),
                       encoded(filters_of(c, filters, sizeof(T), row_bytes, Tile::Columns), operation_), p);
    }

    static bool is_aligned(const void* at, std::uintptr_t to) { return reinterpret_cast<std::uintptr_t>(at) % to == 0; }
    static unsigned pieces(std::int64_t whole, std::int64_t piece) {
        return static_cast<unsigned>((whole + piece - 1) / piece);
    }
    /// `rows` rows of channels in the form that TMA reads: in place, or copied, with the rows of this
    /// many images side by side.
    const T* packed(const T* from, std::int64_t rows, unsigned char* to, int images = 1) const {
        if (sizeof(T) != sizeof(float) && parts_.pitch == c_.channels && is_aligned(from, 16) && images == 1)
            return from;
        const std::int64_t count = rows * c_.channels;
        driver::launch(stream_, operation_, {std::min(pieces(count, 4 * 256), 1056u), 256u}, kernels::pack_rows<T>,
                       from, reinterpret_cast<T*>(to), static_cast<std::uint32_t>(count),
                       kernels::divisor(static_cast<std::uint32_t>(c_.channels)),
                       kernels::divisor(static_cast<std::uint32_t>(rows / images)), static_cast<std::uint32_t>(images),
                       static_cast<std::uint32_t>(parts_.pitch));
        return reinterpret_cast<const T*>(to);
    }
    const T* packed_filters() const {
        unsigned char* const to = scratch_ + parts_.pixels;
        const auto* const from = static_cast<const T*>(o_.filters);
        if (c_.turned) return packed(from, std::int64_t{c_.taps()} * c_.results, to); // contiguous along k
        driver::launch(stream_, operation_,
                       {{pieces(c_.channels, 32), pieces(c_.results, 32), static_cast<unsigned>(c_.taps())}, {32, 8}},
                       kernels::turn_filters<T>, from, reinterpret_cast<T*>(to), c_.channels, c_.results,
                       static_cast<int>(parts_.pitch));
        return reinterpret_cast<const T*>(to);
    }

    const char* operation_;
    driver::stream stream_;
    const im2col_convolution& c_;
    const library_convolution_operands& o_;
    warpgroup_scratch parts_;
    unsigned char* scratch_;
};

} // namespace tapegraph::cuda
