#pragma once

#include <tapegraph/io/onnx_import/rules_normalization.hpp>
#include <tapegraph/io/onnx_import/weighted_elements.hpp>
#include <tapegraph/io/onnx_import/window.hpp>

#include <cmath>

/// Blocks and regions of images: Col2Im, DeformConv, RoiAlign, AffineGrid, MaxUnpool; determinants.

namespace tapegraph::io::onnx_import {

namespace rules {

/// The coordinates of element `at` in a box of these extents, in row-major order.
inline std::vector<std::int64_t> coordinates(std::int64_t at, const std::vector<std::int64_t>& extents) {
    std::vector<std::int64_t> place(extents.size());
    for (std::size_t k = extents.size(); k-- > 0; at /= extents[k]) place[k] = at % extents[k];
    return place;
}
inline std::int64_t product_of(const std::vector<std::int64_t>& items) {
    std::int64_t product = 1;
    for (const std::int64_t i : items) product *= i;
    return product;
}
/// Sums values [records, count] at positions [count] of records of `size` elements.
inline node summed_at(const node& values, const node& at, const extent& records, std::int64_t size, call& c) {
    const dtype type = values.type(), wide = type == dtype::u8 ? dtype::i32 : type;
    if (type == dtype::boolean) refuse("of bool");
    const node y = in_float(converted(values, type, wide), [&](const node& v) {
        return scatter_add(v, at, shape_of_items(c, {records.value, size}), 1);
    });
    return converted(y, wide, type);
}

inline void col_to_image(call& c) {
    const std::vector<std::int64_t> image = c.integers(1, "extents of images"),
                                    block = c.integers(2, "extents of blocks");
    const auto n = static_cast<int>(image.size());
    const window w = window_of(c, n, block);
    const shape s = c.dims(0);
    if (n < 1 || block.size() != image.size() || s.rank() != 3) refuse("blocks of other axes than the image");
    std::vector<std::int64_t> padded_extents, counts;
    for (std::size_t k = 0; k < image.size(); ++k) {
        const std::int64_t whole = image[k] + w.before[k] + w.after[k], span = (w.taps[k] - 1) * w.dilations[k] + 1;
        if (image[k] < 1 || w.before[k] < 0 || w.after[k] < 0 || span > whole) refuse("blocks larger than the image");
        padded_extents.push_back(whole);
        counts.push_back((whole - span) / w.strides[k] + 1);
    }
    const std::int64_t taps = product_of(block), blocks = product_of(counts);
    const std::int64_t columns = known_extent(s[1], "columns");
    if (columns % taps != 0 || (s[2].known() && s[2].value != blocks))
        refuse("columns [" + std::to_string(columns) + ", " + std::to_string(s[2].value) + "] for " +
               std::to_string(blocks) + " blocks of " + std::to_string(taps));
    std::vector<std::int64_t> places;
    for (std::int64_t tap = 0; tap < taps; ++tap)
        for (std::int64_t b = 0; b < blocks; ++b) {
            const auto in_block = coordinates(tap, block), of_block = coordinates(b, counts);
            std::int64_t at = 0;
            for (std::size_t k = 0; k < image.size(); ++k)
                at = at * padded_extents[k] + of_block[k] * w.strides[k] + in_block[k] * w.dilations[k];
            places.push_back(at);
        }
    const std::int64_t channels = columns / taps;
    const extent records = s[0] * channels;
    const node values = reshape(c.plain(0), shape_of_items(c, {records.value, taps * blocks}));
    node y = summed_at(values, c.on.constant(array::integers(places)), records, product_of(padded_extents), c);
    std::vector<std::int64_t> dims{s[0].value, channels};
    dims.insert(dims.end(), padded_extents.begin(), padded_extents.end());
    y = reshape(y, shape_of_items(c, dims));
    for (int k = 0; k < n; ++k)
        y = part(y, k + 2, w.before[static_cast<std::size_t>(k)], image[static_cast<std::size_t>(k)]);
    c.give(0, y, c.type(0));
}

inline void deform_conv(call& c) {
    const int n = c.rank(0) - 2;
    const dtype type = c.type(0), inner = type == dtype::f64 ? type : dtype::f32;
    if (n < 1 || n > 3 || c.rank(1) != n + 2 || c.rank(2) != n + 2 || !is_floating(type))
        refuse(std::string("of ") + name_of(type) + " of rank " + std::to_string(n + 2));
    const shape s = c.dims(0), filter = c.dims(1), offsets = c.dims(2);
    const std::int64_t groups = c.integer("group", 1), parts = c.integer("offset_group", 1);
    std::vector<std::int64_t> own_taps, sizes_out;
    for (int i = 0; i < n; ++i) own_taps.push_back(known_extent(filter[i + 2], "a kernel"));
    const window w = window_of(c, n, own_taps);
    const std::int64_t channels = known_extent(s[1], "channels"), filters = known_extent(filter[0], "filters"),
                       taps = product_of(w.taps);
    if (groups < 1 || parts < 1 || channels % groups != 0 || filters % groups != 0 || channels % parts != 0 ||
        w.taps != own_taps || known_extent(filter[1], "filters") != channels / groups)
        refuse("groups or a kernel_shape that do not fit the operands");
    std::vector<double> sizes;
    for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        const std::int64_t size = known_extent(s[i + 2], "deformable convolution");
        sizes.push_back(static_cast<double>(size));
        sizes_out.push_back(outputs_of(w, k, size).value);
        if (sizes_out.back() < 1 || offsets[i + 2].value != sizes_out.back())
            refuse("offsets of " + std::to_string(offsets[i + 2].value) + " places along axis " +
                   std::to_string(i + 2) + ", the output has " + std::to_string(sizes_out.back()));
    }
    if (offsets[1].value != parts * taps * n) refuse("offsets of " + std::to_string(offsets[1].value) + " channels");
    const std::int64_t count = product_of(sizes_out);
    const extent records = s[0] * parts;
    const node moved =
        reshape(converted(c.plain(2), c.type(2), inner), shape_of_items(c, {records.value, taps, n, count}));
    std::vector<std::vector<choice>> choices;
    for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        std::vector<double> base;
        for (std::int64_t tap = 0; tap < taps; ++tap)
            for (std::int64_t o = 0; o < count; ++o)
                base.push_back(static_cast<double>(coordinates(o, sizes_out)[k] * w.strides[k] - w.before[k] +
                                                   coordinates(tap, w.taps)[k] * w.dilations[k]));
        const node at = eval(take(moved, i, 2) + constant_of(c, base, {taps, count}, inner));
        choices.push_back(neighbours(reshape(at, shape_of_items(c, {records.value, taps * count}))));
    }
    const std::int64_t own = channels / parts;
    const node image = c.on.transposed(
        reshape(converted(c.plain(0), type, inner), shape_of_items(c, {records.value, own, s.size(2, n + 2).value})),
        {0, 2, 1});
    node sampled = weighted_elements(image, sizes, choices); // [records, taps count, own]
    if (c.has(4))
        sampled = eval(sampled * with_axis(reshape(converted(c.plain(4), c.type(4), inner),
                                                   shape_of_items(c, {records.value, taps * count})),
                                           2));
    // [batch, parts, taps, count, own] to [groups, batch count, channels of a group x taps]
    sampled =
        c.on.transposed(reshape(sampled, shape_of_items(c, {s[0].value, parts, taps, count, own})), {0, 3, 1, 4, 2});
    const extent rows = s[0] * count;
    const std::int64_t width = channels / groups * taps, each = filters / groups;
    sampled = c.on.transposed(reshape(sampled, shape_of_items(c, {rows.value, groups, width})), {1, 0, 2});
    const node kernel = reshape(converted(c.plain(1), c.type(1), inner), shape_of_items(c, {groups, each, width}));
    node y = matmul(sampled, kernel, {.transpose_b = true}); // [groups, batch count, each]
    y = c.on.transposed(reshape(y, shape_of_items(c, {groups, s[0].value, count, each})), {1, 0, 3, 2});
    y = reshape(y, shape_of_items(c, {s[0].value, filters, count}));
    if (c.has(3)) y = eval(y + with_axis(converted(c.plain(3), c.type(3), inner), 1));
    std::vector<std::int64_t> dims{s[0].value, filters};
    dims.insert(dims.end(), sizes_out.begin(), sizes_out.end());
    c.give(0, converted(reshape(y, shape_of_items(c, dims)), inner, type), type);
}

/// RoiAlign with as many points in a bin as pixels, which depends on the regions: computed from numbers. Where they depend
/// on inputs, stages.hpp cuts the graph here.
inline void adaptive_roi_align(call& c, bool largest, bool half_pixel, double scale, std::int64_t height,
                               std::int64_t width) {
    for (const int i : {0, 1, 2})
        if (c.operand(i); c.known(i) == nullptr || c.known(i)->symbolic())
            refuse_symbols("sampling_ratio = 0 of regions that are not known before");
    const array &image = *c.known(0), &regions = *c.known(1), &of_image = *c.known(2);
    if (height < 1 || width < 1 || image.rank() != 4 || regions.rank() != 2 || regions.dims()[1] != 4 ||
        of_image.size() != regions.dims()[0])
        refuse("of an image of rank " + std::to_string(image.rank()) + " with regions of shape " +
               to_string(regions.shape()) + " in " + std::to_string(of_image.size()) + " images");
    const std::int64_t images = image.dims()[0], channels = image.dims()[1], rows = image.dims()[2],
                       columns = image.dims()[3], count = regions.dims()[0];
    if (rows < 1 || columns < 1) refuse("of an image without pixels");
    std::vector<double> pixels(static_cast<std::size_t>(image.size()));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = image.number(static_cast<std::int64_t>(i));
    array result(dtype::f64, {count, channels, height, width});
    auto* const to = static_cast<double*>(result.data());
    struct point {
        std::size_t at[4];
        double weight[4];
    };
    std::vector<point> points;
    for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t n = of_image.integer(r);
        if (n < 0 || n >= images) refuse("a region of image " + std::to_string(n) + " of " + std::to_string(images));
        double begin[2], bin[2];
        std::int64_t grid[2];
        const std::int64_t bins[2] = {height, width}, sizes[2] = {rows, columns};
        for (const int k : {0, 1}) {
            begin[k] = regions.number(4 * r + 1 - k) * scale - (half_pixel ? 0.5 : 0.0);
            double length = regions.number(4 * r + 3 - k) * scale - (half_pixel ? 0.5 : 0.0) - begin[k];
            if (!half_pixel) length = std::max(length, 1.0);
            bin[k] = length / static_cast<double>(bins[k]);
            constexpr double most = 1 << 12; // of points along an axis of a bin
            if (!(bin[k] <= most)) refuse("region " + std::to_string(r) + ", whose bins have too many points");
            grid[k] = static_cast<std::int64_t>(std::max(std::ceil(bin[k]), 0.0));
        }
        const auto total = static_cast<double>(std::max<std::int64_t>(grid[0] * grid[1], 1));
        for (std::int64_t b = 0; b < height * width; ++b) {
            points.clear();
            for (std::int64_t p = 0; p < grid[0] * grid[1]; ++p) {
                const std::int64_t of_bin[2] = {b / width, b % width}, of_grid[2] = {p / grid[1], p % grid[1]};
                std::int64_t low[2], high[2];
                double part_of_high[2];
                bool inside = true;
                for (const int k : {0, 1}) {
                    double x = begin[k] + static_cast<double>(of_bin[k]) * bin[k] +
                               (static_cast<double>(of_grid[k]) + 0.5) * bin[k] / static_cast<double>(grid[k]);
                    inside = inside && x >= -1 && x <= static_cast<double>(sizes[k]);
                    x = std::clamp(x, 0.0, static_cast<double>(sizes[k] - 1));
                    low[k] = static_cast<std::int64_t>(x), high[k] = std::min(low[k] + 1, sizes[k] - 1);
                    part_of_high[k] = x - static_cast<double>(low[k]);
                }
                point q{};
                for (const int k : {0, 1, 2, 3}) {
                    const std::int64_t y = k < 2 ? low[0] : high[0], x = k % 2 == 0 ? low[1] : high[1];
                    q.at[k] = static_cast<std::size_t>(y * columns + x);
                    q.weight[k] = inside ? (k < 2 ? 1 - part_of_high[0] : part_of_high[0]) *
                                               (k % 2 == 0 ? 1 - part_of_high[1] : part_of_high[1])
                                         : 0;
                }
                points.push_back(q);
            }
            for (std::int64_t channel = 0; channel < channels; ++channel) {
                const double* const from = pixels.data() + (n * channels + channel) * rows * columns;
                double sum = 0, most = points.empty() ? 0 : -std::numeric_limits<double>::infinity();
                for (const point& q : points)
                    for (const int k : {0, 1, 2, 3}) {
                        const double v = q.weight[k] * from[q.at[k]];
                        sum += v, most = std::max(most, v);
                    }
                to[(r * channels + channel) * height * width + b] = largest ? most : sum / total;
            }
        }
    }
    c.give(0, converted(c.on.constant(result), dtype::f64, c.type(0)), c.type(0));
}

inline void roi_align(call& c) {
    const std::string mode = c.text("mode", "avg"),
                      pixels =
                          c.text("coordinate_transformation_mode", c.opset() < 16 ? "output_half_pixel" : "half_pixel");
    const std::int64_t height = c.integer("output_height", 1), width = c.integer("output_width", 1),
                       points = c.integer("sampling_ratio", 0);
    const double scale = c.number("spatial_scale", 1);
    const dtype type = c.type(0), inner = type == dtype::f64 ? type : dtype::f32;
    if (mode != "avg" && mode != "max") refuse("mode = '" + mode + "'");
    if (pixels != "half_pixel" && pixels != "output_half_pixel")
        refuse("coordinate_transformation_mode = '" + pixels + "'");
    if (points < 1) return adaptive_roi_align(c, mode == "max", pixels == "half_pixel", scale, height, width);
    if (height < 1 || width < 1 || c.rank(0) != 4 || c.rank(1) != 2) refuse("of rank " + std::to_string(c.rank(0)));
    const shape s = c.dims(0);
    const extent regions = c.dims(1)[0];
    const std::vector<double> sizes{static_cast<double>(known_extent(s[2], "regions")),
                                    static_cast<double>(known_extent(s[3], "regions"))};
    const node boxes = eval(converted(c.plain(1), c.type(1), inner) * scale - (pixels == "half_pixel" ? 0.5 : 0.0));
    const std::int64_t rows = height * points, columns = width * points;
    // The positions of all points along an axis [regions, points], and whether they are near enough.
    std::vector<std::vector<choice>> choices;
    const std::vector<std::int64_t> grid{rows, columns};
    node inside;
    for (const int k : {0, 1}) {
        const auto axis = static_cast<std::size_t>(k);
        const node low = part(boxes, 1, 1 - k, 1), high = part(boxes, 1, 3 - k, 1);
        node length = eval(high - low);
        if (pixels != "half_pixel") length = eval(maximum(length, 1));
        std::vector<double> steps; // in lengths of the region
        for (std::int64_t p = 0; p < rows * columns; ++p)
            steps.push_back((static_cast<double>(coordinates(p, grid)[axis]) + 0.5) / static_cast<double>(grid[axis]));
        const node x = eval(low + length * constant_of(c, steps, {rows * columns}, inner));
        const node near = eval(logical_and(x >= -1, x <= sizes[axis]));
        inside = k == 0 ? near : node(eval(logical_and(inside, near)));
        choices.push_back(neighbours(eval(minimum(maximum(x, 0), sizes[axis] - 1))));
    }
    const node image = reshape(converted(c.arranged(0, {0, 2, 3, 1}), type, inner),
                               shape_of_items(c, {s[0].value, (s[2] * s[3]).value, s[1].value}));
    const node of_regions = gather(image, converted(c.plain(2), c.type(2), dtype::i64), 0);
    const node counted = with_axis(eval(where(inside, ones_like(choices[0][0].at), 0)), 2);
    node sampled; // [regions, points, channels]
    bool any = false;
    each_element(sizes, choices, [&](const node& at, const node& weight) {
        const node one = eval(gather(of_regions, at, 1, 1) * with_axis(weight, 2) * counted);
        // "max" is the largest of the weighted neighbours, by the operator's definition.
        sampled = !any ? one : mode == "max" ? node(eval(maximum(sampled, one))) : node(eval(sampled + one));
        any = true;
    });
    const node bins = reshape(sampled, shape_of_items(c, {regions.value, height, points, width, points, s[1].value}));
    const node y = mode == "max" ? max(bins, axes_of({2, 4})) : mean(bins, axes_of({2, 4}));
    c.give_laid(0, converted(y, inner, type), type, {0, 2, 3, 1});
}

inline void affine_grid(call& c) {
    const bool aligned = c.integer("align_corners", 0) != 0;
    const std::vector<std::int64_t> given = c.integers(1, "extents of grids");
    const auto n = static_cast<int>(given.size()) - 2;
    const dtype type = c.type(0), inner = type == dtype::f64 ? type : dtype::f32;
    if (n < 1 || n > 3 || c.rank(0) != 3) refuse("a grid of rank " + std::to_string(given.size()));
    const std::vector<std::int64_t> extents(given.begin() + 2, given.end());
    const std::int64_t count = product_of(extents);
    if (count < 1) refuse("a grid without points");
    std::vector<double> base; // x first, and one
    for (std::int64_t p = 0; p < count; ++p) {
        const auto at = coordinates(p, extents);
        for (int k = n - 1; k >= 0; --k) {
            const auto size = static_cast<double>(extents[static_cast<std::size_t>(k)]),
                       i = static_cast<double>(at[static_cast<std::size_t>(k)]);
            base.push_back(!aligned ? (2 * i + 1) / size - 1 : size > 1 ? 2 * i / (size - 1) - 1 : 0);
        }
        base.push_back(1);
    }
    const node theta = converted(c.plain(0), type, inner);
    const node y = matmul(constant_of(c, base, {count, n + 1}, inner), theta, {.transpose_b = true});
    std::vector<std::int64_t> dims{c.dims(0)[0].value};
    dims.insert(dims.end(), extents.begin(), extents.end());
    dims.push_back(n);
    c.give(0, converted(reshape(y, shape_of_items(c, dims)), inner, type), type);
}

inline void max_unpool(call& c) {
    const int n = c.rank(0) - 2;
    if (n < 1 || c.rank(1) != c.rank(0) || !is_floating(c.type(0)))
        refuse(std::string("of ") + name_of(c.type(0)) + " of rank " + std::to_string(n + 2));
    const window w = window_of(c, n, {});
    const shape s = c.dims(0);
    std::vector<std::int64_t> dims{known_extent(s[0], "places"), known_extent(s[1], "places")};
    for (int i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        dims.push_back((known_extent(s[i + 2], "places") - 1) * w.strides[k] - w.before[k] - w.after[k] + w.taps[k]);
        if (dims.back() < 1) refuse("an output without elements");
    }
    const std::int64_t count = product_of(dims), given = s.size(0, n + 2).value;
    const node at = reshape(converted(c.plain(1), c.type(1), dtype::i64), shape{given});
    // Windows that overlap may name a place more than once, with the same element.
    const auto placed_at = [&](const node& v) { return summed_at(reshape(v, shape{1, given}), at, 1, count, c); };
    const node x = c.plain(0), hits = placed_at(ones_like(x));
    node y = reshape(eval(placed_at(x) / maximum(hits, 1)), shape_of_items(c, dims));
    if (c.has(2)) { // zeros after the places that the window gives
        const std::vector<std::int64_t> wanted = c.integers(2, "an output_shape");
        if (wanted.size() != dims.size()) refuse("an output_shape of rank " + std::to_string(wanted.size()));
        std::vector<std::int64_t> none(dims.size()), after = none;
        for (std::size_t k = 0; k < dims.size(); ++k) {
            after[k] = wanted[k] - dims[k];
            if (after[k] < 0) refuse("an output_shape that is smaller than the places need");
        }
        y = padded(c, y, none, after, "constant", 0);
    }
    c.give(0, y, c.type(0));
}

/// Gaussian elimination with a row exchange a column.
inline void determinant(call& c) {
    const dtype type = c.type(0);
    const shape s = c.dims(0);
    const int rank = s.rank();
    if (!is_floating(type) || rank < 2) refuse(std::string("of ") + name_of(type) + " of rank " + std::to_string(rank));
    const std::int64_t n = known_extent(s[rank - 1], "a determinant");
    if (s[rank - 2].value != n) refuse("of a matrix that is not square");
    if (n < 1 || n > 64) refuse("of " + std::to_string(n) + " rows; 1 to 64 are supported");
    node a = reshape(wide_of(c, 0), shape_of_items(c, {s.size(0, rank - 2).value, n, n})), result;
    for (std::int64_t left = n;; --left) {
        const node column = take(a, 0, 2); // [matrices, left]
        const node best = argmax(abs(column), 1);
        const node at = with_axis(eval(cast<std::int64_t>(best)), 1), row = arange<std::int64_t>(a, left);
        const node order = eval(where(row == at, 0, where(row == 0, at, row)));
        const node swapped = gather(a, order, 1, 1);
        const node pivot = take(take(swapped, 0, 1), 0, 1);
        const node factor = eval(where(best == 0, pivot, -pivot));
        result = left == n ? factor : node(eval(result * factor));
        if (left == 1) break;
        const node top = part(part(swapped, 1, 0, 1), 2, 1, left - 1), below = part(swapped, 1, 1, left - 1);
        const node divisor = with_axis(with_axis(eval(where(pivot == 0, 1, pivot)), 1), 2);
        a = eval(part(below, 2, 1, left - 1) - part(below, 2, 0, 1) / divisor * top);
    }
    std::vector<std::int64_t> dims;
    for (int i = 0; i < rank - 2; ++i) dims.push_back(s[i].value);
    c.give(0, converted(reshape(result, shape_of_items(c, dims)), result.type(), type), type);
}

inline std::span<const operator_rule> geometries() {
    static constexpr auto table = std::to_array<operator_rule>({
        {"Col2Im", &col_to_image},
        {"DeformConv", &deform_conv},
        {"RoiAlign", &roi_align},
        {"AffineGrid", &affine_grid},
        {"MaxUnpool", &max_unpool},
        {"Det", &determinant},
    });
    return table;
}

} // namespace rules

} // namespace tapegraph::io::onnx_import
