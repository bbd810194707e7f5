#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/cuda/kernels/swizzled_tile.hpp>

#include <simt/instructions.hpp>
#include <simt/synchronization.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>

/// Twins of the functions in cuda/kernels/warpgroup_instructions.cuh and
/// cuda/ops/convolution/tensor_maps.cuh, written from the PTX manual and cuda.h. Operations
/// complete as late as they may or, with even seeds, at once: tiles arrive when their barrier is
/// waited for, products are computed when they are waited for, from the contents of shared memory
/// at that time. So data that is read too early, or overwritten, shows.

namespace tapegraph::cuda::kernels {

/// Extents and strides from the channels on, which are contiguous.
struct tensor_map {
    bool im2col = false, flat = false; ///< flat: of three dimensions, kept as four with one row
    const unsigned char* at = nullptr;
    std::int64_t element = 0;                         ///< bytes
    std::array<std::int64_t, 4> extents{}, strides{}; ///< for filters the last is 1; bytes
    std::array<int, 2> lower{}, upper{};
    std::array<std::int64_t, 2> steps{1, 1};
    std::int64_t rows = 0;
    unsigned swizzle = 7; ///< address bits from 7 on that are exclusive-ored with those from 4 on
};

} // namespace tapegraph::cuda::kernels

namespace simt {

/// Changes that a test makes to each map that is encoded, and to each fetch of pixels, to show that
/// the mistake is noticed.
struct bends {
    std::function<void(tapegraph::cuda::kernels::tensor_map&)> map;
    std::function<void(int&, int&, int&, int&, int&, int&)> fetch; ///< channel, column, row, image, both offsets
};
inline bends& current_bends() {
    static thread_local bends b;
    return b;
}

} // namespace simt

namespace tapegraph::cuda::kernels {

using tile_barrier = std::uint64_t;

namespace simt_detail {

/// As in hardware, a barrier is 64 opaque bits.
struct barrier_state {
    std::int32_t bytes; ///< expected and not yet arrived
    std::uint8_t arrivals, missing;
    std::uint16_t phase;
};
inline barrier_state& state_of_barrier(tile_barrier* b) {
    static_assert(sizeof(barrier_state) == sizeof(tile_barrier));
    return *reinterpret_cast<barrier_state*>(b);
}
inline void settle_barrier(tile_barrier* b) {
    const simt::unwatched scope;
    barrier_state& s = state_of_barrier(b);
    if (s.missing != 0 || s.bytes != 0) return;
    s.missing = s.arrivals;
    ++s.phase;
    simt::executor::active()->give_turns();
}

/// The assumed begin of shared memory, an address at which no tile may begin.
inline constexpr std::uint32_t first_address = 0x410;
inline unsigned char* at_address(std::uint32_t address) {
    return static_cast<unsigned char*>(simt::dynamic_shared()) + (address - first_address);
}
inline std::uint32_t address_of(const void* at) {
    const auto* const base = static_cast<const unsigned char*>(simt::dynamic_shared());
    return first_address + static_cast<std::uint32_t>(static_cast<const unsigned char*>(at) - base);
}

/// Writes 128 bytes of a tile's row: `element(i, to)` writes the i-th element, or zeros.
template <class Element>
void write_row(const tensor_map& map, std::uint32_t tile, std::int64_t row, const Element& element) {
    for (std::int64_t i = 0; i < tile_row_bytes / map.element; ++i) {
        const std::uint32_t address = tile + static_cast<std::uint32_t>(row * tile_row_bytes + i * map.element);
        element(i, at_address(address ^ (address >> 7 & map.swizzle) << 4));
    }
}
/// Copies the element at these coordinates; zeros outside the tensor.
inline void copy_element(const tensor_map& map, const std::array<std::int64_t, 4>& place, unsigned char* to) {
    const unsigned char* from = map.at;
    bool inside = true;
    for (std::size_t axis = 0; axis < 4; ++axis) {
        inside = inside && place[axis] >= 0 && place[axis] < map.extents[axis];
        from += inside ? place[axis] * map.strides[axis] : 0;
    }
    const auto bytes = static_cast<std::size_t>(map.element);
    if (inside)
        std::memcpy(to, from, bytes);
    else
        std::memset(to, 0, bytes);
}

inline void fetch(tile_barrier* counted, const tensor_map& map, void* to,
                  const std::function<void(std::uint32_t)>& write) {
    const std::uint32_t tile = address_of(to);
    if (tile % tile_alignment != 0)
        throw simt::error("a swizzled tile that does not begin at a multiple of 1,024 bytes");
    const auto arrive = [=, bytes = static_cast<std::int32_t>(map.rows * tile_row_bytes)] {
        write(tile);
        state_of_barrier(counted).bytes -= bytes;
        settle_barrier(counted);
    };
    if (simt::current_settings().seed % 2 == 0)
        arrive();
    else
        simt::executor::running()->owner->fetches.push_back({counted, arrive});
}

} // namespace simt_detail

inline void begin_barrier(tile_barrier* b, int threads) {
    simt_detail::state_of_barrier(b) = {0, static_cast<std::uint8_t>(threads), static_cast<std::uint8_t>(threads), 0};
}
inline void show_barriers() {}
inline void arrive_at(tile_barrier* b) {
#ifdef SIMT_TSAN
    __tsan_release(b);
#endif
    simt_detail::barrier_state& s = simt_detail::state_of_barrier(b);
    if (s.missing == 0) throw simt::error("more threads arrive at a barrier than it waits for, or at one not begun");
    --s.missing;
    simt_detail::settle_barrier(b);
}
inline void expect_bytes_of(tile_barrier* b, int bytes) {
    simt_detail::state_of_barrier(b).bytes += bytes;
    arrive_at(b);
}
inline void wait_for_phase(tile_barrier* b, std::uint32_t parity,
                           const std::source_location& where = std::source_location::current()) {
    if (simt::detail::skips(simt_detail::site_of(where))) return;
    const auto waits = [&] { return simt_detail::state_of_barrier(b).phase % 2 == parity; };
    while (waits()) {
        std::vector<simt::block::fetch> arriving;
        std::erase_if(simt::executor::running()->owner->fetches, [&](const simt::block::fetch& f) {
            if (f.counted_by == b) arriving.push_back(f);
            return f.counted_by == b;
        });
        for (const simt::block::fetch& f : arriving) f.arrive();
        if (waits()) simt::executor::active()->wait(simt::waiting::turn, simt_detail::site_of(where));
    }
#ifdef SIMT_TSAN
    __tsan_acquire(b);
#endif
}

namespace simt_detail {
/// Base pixels walk through the box, line by line and image by image, in steps; the copied pixels
/// are `offset` further.
inline void fetch_box(const tensor_map& map, tile_barrier* b, void* to, int channel, int column, int row, int image,
                      int offset_column, int offset_row) {
    if (const auto& bend = simt::current_bends().fetch) bend(channel, column, row, image, offset_column, offset_row);
    const int most = map.flat ? 65535 : 255;
    if (offset_column < 0 || offset_column > most || offset_row < 0 || offset_row > 255)
        throw simt::error("an offset of im2col beyond its bits");
    fetch(b, map, to, [=](std::uint32_t tile) {
        const std::int64_t last_column = map.extents[1] - 1 + map.upper[0],
                           last_row = map.extents[2] - 1 + map.upper[1];
        std::int64_t x = column, y = row, n = image;
        for (std::int64_t pixel = 0; pixel < map.rows; ++pixel) {
            write_row(map, tile, pixel, [&](std::int64_t i, unsigned char* at) {
                copy_element(map, {channel + i, x + offset_column, y + offset_row, n}, at);
            });
            x += map.steps[0];
            if (x <= last_column) continue;
            x = map.lower[0];
            y += map.steps[1];
            if (y <= last_row) continue;
            y = map.lower[1];
            ++n;
        }
    });
}
} // namespace simt_detail

inline void fetch_pixels(const tensor_map& map, tile_barrier* b, void* to, int channel, int column, int row, int image,
                         int offset_column, int offset_row) {
    if (!map.im2col || map.flat) throw simt::error("pixels are fetched by a map that is not of images");
    simt_detail::fetch_box(map, b, to, channel, column, row, image, offset_column, offset_row);
}
inline void fetch_line(const tensor_map& map, tile_barrier* b, void* to, int channel, int column, int image,
                       int offset) {
    if (!map.flat) throw simt::error("a line is fetched by a map of four dimensions");
    simt_detail::fetch_box(map, b, to, channel, column, 0, image, offset, 0);
}
template <bool Kept>
void fetch_filters(const tensor_map& map, tile_barrier* b, void* to, int channel, int row, int tap) {
    if (map.im2col) throw simt::error("filters are fetched by a map of images");
    simt_detail::fetch(b, map, to, [=](std::uint32_t tile) {
        for (std::int64_t r = 0; r < map.rows; ++r)
            simt_detail::write_row(map, tile, r, [&](std::int64_t i, unsigned char* at) {
                simt_detail::copy_element(map, {channel + i, row + r, tap, 0}, at);
            });
    });
}
inline void prefetch(const tensor_map&) {}
inline std::uint32_t shared_address(const void* at) { return simt_detail::address_of(at); }

template <int Registers>
void leave_registers() {}
template <int Registers>
void take_registers() {}

/// These are instructions of whole warps: no lane continues before all have arrived.
inline void begin_products() { simt::detail::meet({"begin_products", 0}, 0xFFFFFFFFu, simt::collective::sync, 0); }
inline void hold(float&) {}
inline void commit_products() { simt::executor::running()->products.push_back({{}, true}); }
template <int Groups>
void wait_products(const std::source_location& where = std::source_location::current()) {
    simt::detail::meet({"wait_products", 0}, 0xFFFFFFFFu, simt::collective::sync, 0);
    if (simt::detail::skips(simt_detail::site_of(where))) return;
    auto& products = simt::executor::running()->products;
    int groups = 0;
    for (const simt::pending_product& p : products) groups += p.ends_group;
    std::size_t done = 0;
    for (; groups > Groups; ++done) {
        groups -= products[done].ends_group;
        if (products[done].make) products[done].make();
    }
    products.erase(products.begin(), products.begin() + static_cast<std::ptrdiff_t>(done));
}

/// This thread's part of the product. Row r of a descriptor's tile is at its address plus r / 8
/// times the distance of eight rows, plus 128 (r % 8) bytes; then pieces of 16 bytes are permuted
/// by the address's bits.
template <class T, int Columns>
struct warpgroup_product {
    static void add(std::uint64_t a, std::uint64_t b, float (&sum)[Columns / 2]) {
        auto& self = *simt::executor::running();
        self.products.push_back({[a, b, to = &sum[0], thread = self.linear % 128] { make(a, b, to, thread); }, false});
    }

private:
    static constexpr int depth = product_bytes / static_cast<int>(sizeof(T));
    using row_values = std::array<float, static_cast<std::size_t>(depth)>;

    static row_values row_of(std::uint64_t descriptor, int row) {
        if (descriptor >> 62 != 1) throw simt::error("a descriptor that is not of the 128-byte swizzle");
        const auto begin = static_cast<std::uint32_t>(descriptor & 0x3FFF) << 4,
                   eight = static_cast<std::uint32_t>(descriptor >> 32 & 0x3FFF) << 4;
        row_values values;
        for (int k = 0; k < depth; ++k) {
            const std::uint32_t address = begin + static_cast<std::uint32_t>(row) / 8 * eight +
                                          static_cast<std::uint32_t>(row) % 8 * 128 +
                                          static_cast<std::uint32_t>(k * static_cast<int>(sizeof(T)));
            const unsigned char* const at = simt_detail::at_address(address ^ (address >> 7 & 7) << 4);
            if constexpr (sizeof(T) == sizeof(float)) {
                std::uint32_t bits;
                std::memcpy(&bits, at, sizeof bits);
                values[static_cast<std::size_t>(k)] = std::bit_cast<float>(bits & tf32_bits);
            } else {
                T element;
                std::memcpy(&element, at, sizeof element);
                values[static_cast<std::size_t>(k)] = static_cast<float>(element);
            }
        }
        return values;
    }
    static void make(std::uint64_t a, std::uint64_t b, float* sum, int thread) {
        const int g = thread % 32 / 4, t = thread % 4;
        const row_values upper = row_of(a, thread / 32 * 16 + g), lower = row_of(a, thread / 32 * 16 + g + 8);
        for (int column = 0; column < Columns / 4; ++column) {
            const row_values of_b = row_of(b, column / 2 * 8 + 2 * t + column % 2);
            float* const to = sum + column / 2 * 4 + column % 2;
            for (std::size_t k = 0; k < of_b.size(); ++k) to[0] += upper[k] * of_b[k], to[2] += lower[k] * of_b[k];
        }
    }
};

} // namespace tapegraph::cuda::kernels

namespace tapegraph::cuda {

struct map_of_images;
struct map_of_filters;
inline bool can_encode() { return true; }

namespace simt_detail {
inline void refuse_unless(bool taken, const char* what) {
    if (!taken) throw device_error(std::string("cuTensorMapEncode: ") + what);
}
inline kernels::tensor_map checked(kernels::tensor_map map) {
    refuse_unless(reinterpret_cast<std::uintptr_t>(map.at) % 16 == 0, "an address that is not aligned to 16 bytes");
    for (std::size_t axis = 0; axis < 4; ++axis)
        refuse_unless(map.extents[axis] >= 1 && map.extents[axis] <= std::int64_t{1} << 32, "an extent");
    for (std::size_t axis = 1; axis < 4; ++axis)
        refuse_unless(map.strides[axis] % 16 == 0 && map.strides[axis] < std::int64_t{1} << 40, "a stride");
    refuse_unless(map.rows >= 1 && map.rows <= (map.im2col ? 1024 : 256), "rows of a tile");
    for (std::size_t axis = 0; map.im2col && axis < 2; ++axis) {
        const int lower = map.lower[axis], upper = map.upper[axis], most = map.flat ? 32767 : 127;
        refuse_unless(lower >= -most - 1 && lower <= most && upper >= -most - 1 && upper <= most, "a corner");
        refuse_unless(map.extents[axis + 1] - 1 + upper >= lower, "an empty box");
        refuse_unless(map.steps[axis] >= 1 && map.steps[axis] <= 8, "a step");
    }
    if (const auto& bend = simt::current_bends().map) bend(map);
    return map;
}
} // namespace simt_detail

template <class Map>
kernels::tensor_map encoded(const Map& m, const char*) {
    kernels::tensor_map map;
    map.at = static_cast<const unsigned char*>(m.at);
    const auto number = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    map.element = number(m.element);
    map.rows = number(m.rows);
    if constexpr (std::is_same_v<Map, map_of_images>) {
        map.im2col = true, map.flat = m.flat;
        simt_detail::refuse_unless(!m.flat || (m.height == 1 && m.lower[1] == 0 && m.upper[1] == 0),
                                   "a line of several rows");
        map.extents = {number(m.channels), number(m.width), number(m.height), number(m.images)};
        map.strides = {map.element, number(m.pixel_bytes), number(m.pixel_bytes * m.width),
                       number(m.pixel_bytes * m.width * m.height)};
        map.lower = {m.lower[0], m.lower[1]}, map.upper = {m.upper[0], m.upper[1]};
        map.steps = {m.steps[0], m.steps[1]};
    } else {
        map.extents = {number(m.channels), number(m.results), number(m.taps), 1};
        map.strides = {map.element, number(m.row_bytes), number(m.row_bytes * m.results), 0};
    }
    return simt_detail::checked(map);
}

} // namespace tapegraph::cuda
