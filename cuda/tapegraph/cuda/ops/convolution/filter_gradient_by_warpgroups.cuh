#pragma once

#include <tapegraph/cuda/kernels/filter_slices.cuh>
#include <tapegraph/cuda/ops/convolution/by_warpgroups.cuh>
#include <tapegraph/cuda/ops/convolution/filter_gradient_cut.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Runs a filter gradient by warpgroup_convolution: dw[u, v, c, o] is the sum over i, j and the
/// images of x[image, i + u, j + v, c] dy[image, i, j, o] (with strides and so on). That is a
/// convolution whose images are the channels c, whose channels are the images, and whose filter's
/// taps are dy's pixels. x and dy are copied with the images innermost, because wgmma reads 32-bit
/// operands along k only.

namespace tapegraph::cuda {

template <class T, class... Tile>
class filter_gradient_by_warpgroups {
    static constexpr tile_extents tiles[sizeof...(Tile)]{{Tile::Rows, Tile::Columns}...};

public:
    /// Scratch memory in bytes, for the same multiprocessors and limit.
    static std::size_t scratch_bytes(const convolution_geometry& g, int multiprocessors,
                                     std::size_t limit = filter_gradient_cut::usual_limit) {
        return static_cast<std::size_t>(filter_gradient_cut(g, sizeof(T), multiprocessors, tiles, limit).bytes());
    }
    /// `o` has x, dy and dw.
    filter_gradient_by_warpgroups(const char* operation, driver::stream stream, const convolution_geometry& g,
                                  const library_convolution_operands& o, void* scratch, int multiprocessors,
                                  std::size_t limit = filter_gradient_cut::usual_limit)
        : operation_(operation),
          stream_(stream),
          g_(g),
          o_(o),
          cut_(g, sizeof(T), multiprocessors, tiles, limit),
          x_(static_cast<unsigned char*>(scratch)),
          dy_(x_ + cut_.bytes_of_x(cut_.images)),
          slices_(reinterpret_cast<float*>(dy_ + cut_.bytes_of_dy(cut_.images))) {}

    void run() const {
        for (std::int64_t image = 0; image < g_.batch; image += cut_.images) {
            convolution_geometry chunk = g_;
            chunk.batch = std::min(cut_.images, g_.batch - image);
            turn(o_.pixels, x_, chunk.batch, image, g_.in_height * g_.in_width, g_.in_channels, true);
            turn(o_.filters, dy_, chunk.batch, image, g_.out_height * g_.out_width, g_.out_channels, false);
            int index = 0;
            static_cast<void>(((index++ == cut_.tile && (multiply<Tile>(chunk, image > 0), true)) || ...));
        }
        const std::int64_t taps = g_.kernel_height * g_.kernel_width, count = taps * g_.in_channels * g_.out_channels;
        driver::launch(stream_, operation_, {pieces(count, 256), 256u}, kernels::add_slices<T>,
                       static_cast<const float*>(slices_), static_cast<T*>(o_.results),
                       static_cast<std::uint32_t>(count), static_cast<int>(cut_.parts),
                       kernels::divisor(static_cast<std::uint32_t>(g_.out_channels)),
                       kernels::divisor(static_cast<std::uint32_t>(g_.in_channels)), static_cast<int>(taps));
    }

private:
    static unsigned pieces(std::int64_t whole, std::int64_t piece) {
        return static_cast<unsigned>((whole + piece - 1) / piece);
    }
    /// Copies `count` images from `first` on to [channels, pixels, images] or [pixels, channels, images].
    void turn(const void* from, unsigned char* to, std::int64_t count, std::int64_t first, std::int64_t pixels,
              std::int64_t channels, bool channels_first) const {
        const unsigned across = pieces(channels, 32);
        driver::launch(stream_, operation_, {{static_cast<unsigned>(pixels) * across, pieces(count, 32)}, {32, 8}},
                       kernels::turn_images<T>, static_cast<const T*>(from) + first * pixels * channels,
                       reinterpret_cast<T*>(to), static_cast<int>(count), static_cast<int>(pixels),
                       static_cast<int>(channels), kernels::divisor(across),
                       channels_first ? std::int64_t{1} : channels, channels_first ? pixels : std::int64_t{1},
                       static_cast<int>(cut_.pitch(count)));
    }
    template <class Chosen>
    void multiply(const convolution_geometry& chunk, bool continued) const {
        const im2col_convolution c(chunk, convolution_pass::filter_gradient);
        const im2col_walk walk(c, kernels::tile_row_bytes / static_cast<int>(sizeof(T)));
        const std::int64_t part = cut_.steps_of_part(chunk.batch);
        const kernels::warpgroup_slices<T> p{walk,    c.pixels(), c.results, chain_of(c, walk), static_cast<int>(part),
                                             slices_, continued,  c.flat,    c.results % 2 == 0};
        const auto row_bytes = static_cast<std::uint64_t>(cut_.pitch(chunk.batch)) * sizeof(T);
        driver::launch(stream_, operation_,
                       {{pieces(p.m, Chosen::Rows), pieces(p.n, Chosen::Columns), pieces(walk.steps(), part)},
                        static_cast<unsigned>(Chosen::threads),
                        static_cast<std::size_t>(Chosen::shared_bytes)},
                       kernels::warpgroup_convolution<T, Chosen, kernels::warpgroup_slices<T>>,
                       encoded(images_of(c, x_, sizeof(T), row_bytes, Chosen::Rows), operation_),
                       encoded(filters_of(c, dy_, sizeof(T), row_bytes, Chosen::Columns), operation_), p);
    }

    const char* operation_;
    driver::stream stream_;
    const convolution_geometry& g_;
    const library_convolution_operands& o_;
    filter_gradient_cut cut_;
    unsigned char *x_, *dy_;
    float* slices_;
};

} // namespace tapegraph::cuda
