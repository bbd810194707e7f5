#pragma once

#include <tapegraph/cuda/ops/convolution/filter_gradient_cut.hpp>
#include <tapegraph/cuda/ops/convolution/im2col_box.hpp>
#include <tapegraph/cuda/ops/convolution/library_convolution.hpp>
#include <tapegraph/cuda/ops/convolution/plan.hpp>
#include <tapegraph/cuda/ops/convolution/winograd_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

/// Chooses how a pass of a convolution is computed: lists the candidates and predicts the fastest.
/// Both depend only on the shape and on a few properties of the device, so scratch memory can be
/// planned without addresses.

namespace tapegraph::cuda {

namespace detail {

/// A pass as a tiled product by our kernels, with the cost of each tile.
class tiled_products {
public:
    struct choice {
        int tile = 0;
        std::int64_t splits = 0; ///< 0: nothing is chosen
        double cost = 0;
    };

    tiled_products(const convolution_geometry& g, convolution_pass pass, std::size_t element, math_mode mode,
                   const convolution_device& device, std::size_t limit)
        : g_(g), pass_(pass), element_(element), device_(device), limit_(limit), extents_(g, pass) {
        const bool tensor = element == 4 && mode != math_mode::fp32 && device.tensor_cores;
        plan_.algorithm = tensor ? convolution_algorithm::tensor_cores : convolution_algorithm::multiply_adds;
        plan_.exact = tensor && mode == math_mode::tf32x3;
        // Contiguous elements where an operand is read: channels of x and of y; dy and w are read
        // along y's.
        const std::int64_t together =
            pass == convolution_pass::input_gradient ? g.group_out() : g.group_in() | g.group_out();
        plan_.vector = together % 4 == 0 && element == 4 ? 4 : together % 2 == 0 ? 2 : 1;
        useful_ = pass == convolution_pass::filter_gradient ? 1 : useful_part(g, pass);
        plan_.batch_innermost = g.batch >= 8 && useful_ < 0.97;
    }

    bool on_tensor_cores() const { return plan_.algorithm == convolution_algorithm::tensor_cores; }
    bool is_exact() const { return plan_.exact; }
    std::span<const product_tile> tiles() const {
        if (on_tensor_cores()) return tensor_tiles;
        return multiply_add_tiles;
    }
    /// Whether a tile has a kernel for these operands.
    bool takes(int tile) const {
        const product_tile& t = tiles()[static_cast<std::size_t>(tile)];
        return plan_.vector >= t.vector && (element_ == 4 || tile == 0) && (!plan_.exact || t.exact);
    }
    std::int64_t most_splits_of(int tile) const {
        return most_splits(bytes(), extents_.k / (4 * tiles()[static_cast<std::size_t>(tile)].depth), g_.groups,
                           limit_);
    }
    /// The cheapest number of splits of a tile.
    choice best(int tile) const {
        choice least;
        const product_tile& t = tiles()[static_cast<std::size_t>(tile)];
        const product_extents reached = walked(t);
        const std::int64_t most = most_splits_of(tile);
        for (std::int64_t splits = 1; splits <= most; splits += 1 + splits / 8) {
            const double cost =
                product_cost(t, reached, g_.groups, splits, element_, on_tensor_cores(), device_.multiprocessors);
            if (least.splits == 0 || cost < least.cost) least = {tile, splits, cost};
        }
        return least;
    }
    /// The cheapest of all tiles.
    choice best() const {
        choice least;
        for (int t = 0; t < static_cast<int>(tiles().size()); ++t)
            if (const choice c = takes(t) ? best(t) : choice{};
                c.splits > 0 && (least.splits == 0 || c.cost < least.cost))
                least = c;
        return least;
    }
    convolution_plan plan_of(const choice& c) const {
        convolution_plan plan = plan_;
        plan.tile = c.tile, plan.splits = static_cast<int>(c.splits);
        plan.workspace = c.splits > 1 ? static_cast<std::size_t>(c.splits * bytes()) : 0;
        return plan;
    }

private:
    std::int64_t bytes() const { return extents_.m * extents_.n * g_.groups * static_cast<std::int64_t>(element_); }
    // k as the kernel walks it: the channels of a tap are padded to whole steps.
    product_extents walked(const product_tile& tile) const {
        product_extents reached = extents_;
        if (pass_ == convolution_pass::filter_gradient) return reached;
        const std::int64_t taps = g_.kernel_height * g_.kernel_width, channels = taps > 0 ? extents_.k / taps : 0;
        reached.k = taps * ((channels + tile.depth - 1) / tile.depth * tile.depth);
        if (plan_.batch_innermost) reached.k = static_cast<std::int64_t>(static_cast<double>(reached.k) * useful_) + 1;
        return reached;
    }

    convolution_geometry g_;
    convolution_pass pass_;
    std::size_t element_;
    convolution_device device_;
    std::size_t limit_;
    product_extents extents_;
    convolution_plan plan_;
    double useful_ = 1;
};

/// Batches whose pixels cannot be counted in 32 bits are computed in pieces, by the library only.
inline bool is_countable(const convolution_geometry& g) {
    return g.groups > 1 || g.batch * std::max(g.in_height * g.in_width, g.out_height * g.out_width) <= most_counted;
}

inline convolution_plan plan_in_splits(const product_extents& e, const convolution_geometry& g, std::size_t element,
                                       convolution_algorithm algorithm, std::int64_t splits) {
    convolution_plan p;
    p.algorithm = algorithm;
    p.splits = static_cast<int>(splits);
    if (splits > 1) p.workspace = static_cast<std::size_t>(splits * e.m * e.n * g.groups) * element;
    return p;
}
inline convolution_plan library_plan(const convolution_geometry& g, std::size_t element, std::size_t limit) {
    convolution_plan p;
    p.algorithm = convolution_algorithm::product;
    p.workspace = chunk_bytes(g, element, limit);
    return p;
}
inline convolution_plan warpgroups_plan(const convolution_geometry& g, convolution_pass pass, dtype type = dtype::f32) {
    convolution_plan p;
    p.algorithm = convolution_algorithm::warpgroups;
    p.workspace = library_workspace(g, pass, type);
    return p;
}
inline convolution_plan winograd_plan(const winograd_chunks& chunks) {
    convolution_plan p;
    p.algorithm = convolution_algorithm::winograd;
    p.workspace = chunks.workspace();
    return p;
}
/// Predicted cycles of warpgroups: waves of blocks, each bound by its products or by what it
/// fetches from the L2 cache, as by_warpgroups.cuh counts them to choose a tile; before them rows
/// are copied, in two launches. Taps that see only padding are left out. On an H200 eight passes of
/// floats took 0.95 to 1.25 times the prediction, four filter gradients 0.89 to 1.07.
inline double warpgroups_cycles(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                                int multiprocessors) {
    if (pass == convolution_pass::filter_gradient)
        return filter_gradient_cut(g, element, multiprocessors, warpgroup_tiles).cycles;
    const bool forward = pass == convolution_pass::forward;
    const std::int64_t in = g.batch * g.in_height * g.in_width, out = g.batch * g.out_height * g.out_width;
    const std::int64_t channels = forward ? g.in_channels : g.out_channels, pixels = forward ? out : in;
    const std::int64_t results = forward ? g.out_channels : g.in_channels;
    const auto pieces = [](std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; };
    const std::int64_t steps =
        g.kernel_height * g.kernel_width * pieces(channels, 128 / static_cast<std::int64_t>(element));
    double least = 0;
    for (const tile_extents& t : warpgroup_tiles) {
        const std::int64_t waves = pieces(pieces(pixels, t.rows) * pieces(results, t.columns), multiprocessors);
        const double cycles = static_cast<double>(waves * steps * cycles_of_step(t));
        if (least == 0 || cycles < least) least = cycles;
    }
    const double copied = 2.0 * static_cast<double>(element) * static_cast<double>((forward ? in : out) * channels);
    const im2col_convolution c(g, pass);
    return (c.images_innermost ? c.kept_taps() : 1) * least + 3 * 4000 + copied / (15.0 * multiprocessors);
}
inline convolution_plan direct_plan(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                                    const convolution_device& device, std::size_t limit) {
    const product_extents e(g, pass);
    const std::int64_t results = e.m * e.n * g.groups;
    std::int64_t splits = 1;
    if (pass == convolution_pass::filter_gradient)
        splits =
            std::clamp<std::int64_t>(device.multiprocessors * std::int64_t{1024} / std::max<std::int64_t>(1, results),
                                     1, most_splits(results * static_cast<std::int64_t>(element), e.k / 64, 1, limit));
    return plan_in_splits(e, g, element, convolution_algorithm::direct, splits);
}
inline convolution_plan few_channels_plan(const few_channels_tiling& t, const convolution_geometry& g,
                                          convolution_pass pass, std::size_t element, const convolution_device& device,
                                          std::size_t limit,
                                          convolution_algorithm algorithm = convolution_algorithm::few_channels) {
    const product_extents e(g, pass);
    std::int64_t splits = 1;
    if (pass == convolution_pass::filter_gradient) {
        // Two blocks per multiprocessor, and chains of at most 4,096 products: 8 / warps_across
        // warps share a tile's pixels, on tensor cores two.
        const bool tensor = algorithm == convolution_algorithm::few_channels_tensor_cores;
        const std::int64_t chain = 4096 / (t.pixels / (tensor ? 2 : 8 / t.warps_across));
        splits =
            std::clamp<std::int64_t>(std::max<std::int64_t>(2 * device.multiprocessors, (t.tiles + chain - 1) / chain),
                                     1, most_splits(e.m * e.n * static_cast<std::int64_t>(element), t.tiles, 1, limit));
    }
    return plan_in_splits(e, g, element, algorithm, splits);
}
/// In TF32 on tensor cores; `splits` 0 where they do not take the pass. Both passes are bound by memory
/// there: of conv1 of the CNN at batch 128 177 MB of y or dy take 42 us on an H200.
inline convolution_plan few_channels_tensor_plan(const convolution_geometry& g, convolution_pass pass,
                                                 std::size_t element, math_mode mode, const convolution_device& device,
                                                 std::size_t limit) {
    convolution_plan none;
    none.splits = 0;
    if (element != sizeof(float) || mode != math_mode::tf32 || !device.tensor_cores) return none;
    const few_channels_tiling t = few_channels_tiling::on_tensor_cores(g, pass);
    if (!t.valid) return none;
    return few_channels_plan(t, g, pass, element, device, limit, convolution_algorithm::few_channels_tensor_cores);
}

} // namespace detail

/// The plan that is predicted to be the fastest. `element` is sizeof(T), float or double.
inline convolution_plan choose_convolution(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                                           math_mode mode, const convolution_device& device,
                                           std::size_t limit = convolution_workspace_limit) {
    if (!detail::is_countable(g)) return detail::library_plan(g, element, limit);
    const std::int64_t narrowest = std::min(g.group_in(), g.group_out());
    if (g.groups > 1 && (narrowest < 8 || g.groups > 65535))
        return detail::direct_plan(g, pass, element, device, limit);
    const detail::few_channels_tiling shallow(g, pass, element);
    const convolution_plan shallow_on_cores = detail::few_channels_tensor_plan(g, pass, element, mode, device, limit);
    if (shallow.valid && pass == convolution_pass::forward)
        return shallow_on_cores.splits > 0 ? shallow_on_cores
                                           : detail::few_channels_plan(shallow, g, pass, element, device, limit);

    // This is an ordinary matrix product, and matmul uses the library for those, too.
    const detail::product_extents e(g, pass);
    if (detail::is_pixelwise(g) && e.m * e.n > 0 && e.k > 0) return detail::library_plan(g, element, limit);
    if (shallow_on_cores.splits > 0) return shallow_on_cores;

    const detail::tiled_products tiled(g, pass, element, mode, device, limit);
    const detail::tiled_products::choice best = tiled.best();
    // The library's product of written-out windows is chosen where it is predicted to be faster; in
    // TF32 by a quarter, because those predictions are less certain. It is not considered for
    // passes that take no longer than forty launches. The library has no 3xTF32, so it computes in
    // float then.
    const bool tensor = tiled.on_tensor_cores(), exact = tiled.is_exact(), rounded = tensor && !exact;
    const auto cycles = [&](double cost, bool on_tensor_cores) {
        return cost / detail::machine_balance::of(element, on_tensor_cores).per_cycle;
    };
    const double tiles = cycles(exact ? exact_slowness * best.cost : best.cost, tensor);
    double ours = tiles;
    if (shallow.valid)
        ours = std::min(ours, cycles(detail::few_channels_gradient_cost(e, device.multiprocessors), false));
    const bool by_windows = g.groups == 1 && ours > 40 * 4000 && detail::chunk_bytes(g, element, limit) <= limit;
    const double product =
        by_windows ? cycles(detail::library_cost(g, pass, element, rounded, device.multiprocessors, limit), rounded)
                   : 0;
    if (rounded && library_takes(g, pass) && library_workspace(g, pass) <= limit) {
        const double warpgroups = detail::warpgroups_cycles(g, pass, element, device.multiprocessors);
        if (warpgroups < ours && !(by_windows && product < warpgroups)) return detail::warpgroups_plan(g, pass);
    }
    // Winograd's algorithm, where it is predicted to be faster by a seventh, because few of these
    // predictions have been compared with a device; between as many channels as on the CPU.
    constexpr std::int64_t fewest_channels = 32;
    if (element == sizeof(float) && !rounded && ours > 40 * 4000 && narrowest >= fewest_channels &&
        detail::winograd_may(g))
        if (const detail::winograd_chunks chunks(g, pass, limit); chunks.images > 0) {
            const double cycles_of_winograd = detail::winograd_cycles(g, pass, chunks, device.multiprocessors);
            if (1.15 * cycles_of_winograd < (by_windows ? std::min(ours, product) : ours))
                return detail::winograd_plan(chunks);
        }
    if (by_windows && (rounded ? 1.25 : 1.0) * product < ours) return detail::library_plan(g, element, limit);
    return ours < tiles ? detail::few_channels_plan(shallow, g, pass, element, device, limit) : tiled.plan_of(best);
}

/// As choose_convolution, for 16-bit elements: by warpgroups, or on tensor cores in the tiles of
/// TF32, which then take half the time. Where neither is possible, float kernels between
/// conversions take over.
inline convolution_plan choose_narrow_convolution(const convolution_geometry& g, convolution_pass pass, dtype type,
                                                  const convolution_device& device,
                                                  std::size_t limit = convolution_workspace_limit) {
    const convolution_plan of_floats = choose_convolution(g, pass, sizeof(float), math_mode::tf32, device, limit);
    const bool tiled = is_whole(of_floats.algorithm) || of_floats.algorithm == convolution_algorithm::tensor_cores ||
                       (pass == convolution_pass::filter_gradient &&
                        of_floats.algorithm == convolution_algorithm::few_channels_tensor_cores);
    if (!tiled || !device.tensor_cores || !detail::is_countable(g)) return of_floats;
    const detail::tiled_products tiles(g, pass, sizeof(float), math_mode::tf32, device, limit);
    const detail::tiled_products::choice best = tiles.best();
    const double cycles = best.cost / detail::machine_balance::of(sizeof(float), true).per_cycle / 2;
    if (library_takes(g, pass, type) && library_workspace(g, pass, type) <= limit &&
        detail::warpgroups_cycles(g, pass, 2, device.multiprocessors) < cycles)
        return detail::warpgroups_plan(g, pass, type);
    return tiles.plan_of(best);
}

/// The name by which a plan is remembered: algorithm, tile and splits, which distinguish the plans
/// of one shape.
inline std::string name_of(const convolution_plan& p) {
    constexpr const char* names[]{
        "multiply_adds", "tensor_cores", "few_channels", "direct", "product", "warpgroups", "few_channels_tensor_cores",
        "winograd"};
    std::string name = names[static_cast<int>(p.algorithm)];
    const auto in = [&](const product_tile& t) {
        name += " " + std::to_string(t.rows) + "x" + std::to_string(t.columns) + "x" + std::to_string(t.depth);
    };
    if (p.algorithm == convolution_algorithm::multiply_adds) in(multiply_add_tiles[p.tile]);
    if (p.algorithm == convolution_algorithm::tensor_cores) in(tensor_tiles[p.tile]);
    if (p.splits > 1) name += " in " + std::to_string(p.splits);
    return name;
}

/// All plans that are worth a trial, each once, with the predicted one first. A new kernel joins by
/// adding its line here.
inline std::vector<convolution_plan> convolution_candidates(const convolution_geometry& g, convolution_pass pass,
                                                            std::size_t element, math_mode mode,
                                                            const convolution_device& device,
                                                            std::size_t limit = convolution_workspace_limit) {
    std::vector<convolution_plan> all{choose_convolution(g, pass, element, mode, device, limit)};
    const auto add = [&](const convolution_plan& p) {
        for (const convolution_plan& each : all)
            if (name_of(each) == name_of(p)) return;
        all.push_back(p);
    };
    // Tries a tile with the predicted number of splits, with one, and with half and twice as many.
    const auto add_tiles = [&](const detail::tiled_products& tiled) {
        for (int t = 0; t < static_cast<int>(tiled.tiles().size()); ++t) {
            if (!tiled.takes(t)) continue;
            const detail::tiled_products::choice best = tiled.best(t);
            for (const std::int64_t splits : {best.splits, std::int64_t{1}, best.splits / 2, 2 * best.splits})
                if (splits >= 1 && splits <= tiled.most_splits_of(t)) add(tiled.plan_of({t, splits}));
        }
    };
    const detail::product_extents e(g, pass);
    if (!detail::is_countable(g) || g.groups > 65535 || e.m * e.n * g.groups == 0 || e.k == 0) return all;
    const detail::tiled_products rounded(g, pass, element, mode, device, limit),
        in_float(g, pass, element, math_mode::fp32, device, limit);
    add_tiles(rounded);
    add(in_float.plan_of(in_float.best()));
    if (g.groups > 1) add(detail::direct_plan(g, pass, element, device, limit));
    if (const detail::few_channels_tiling t(g, pass, element); t.valid)
        add(detail::few_channels_plan(t, g, pass, element, device, limit));
    if (const convolution_plan p = detail::few_channels_tensor_plan(g, pass, element, mode, device, limit);
        p.splits > 0)
        add(p);
    if (g.groups == 1 && detail::chunk_bytes(g, element, limit) <= limit) add(detail::library_plan(g, element, limit));
    if (rounded.on_tensor_cores() && !rounded.is_exact() && library_takes(g, pass) &&
        library_workspace(g, pass) <= limit)
        add(detail::warpgroups_plan(g, pass));
    if (element == sizeof(float) && (!rounded.on_tensor_cores() || rounded.is_exact()) && detail::winograd_may(g))
        if (const detail::winograd_chunks chunks(g, pass, limit); chunks.images > 0) add(detail::winograd_plan(chunks));
    return all;
}

} // namespace tapegraph::cuda
