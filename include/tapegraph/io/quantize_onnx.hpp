#pragma once

#include <tapegraph/core/element_types.hpp>
#include <tapegraph/core/number_text.hpp>
#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/io/onnx.hpp>
#include <tapegraph/io/onnx/quantized_layers.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

/// Quantisation after training: a model is run on some data, and written as an ONNX file whose convolutions and matrix
/// products work on integers of 8 bits: `tg::io::export_quantized_onnx(model, "m.onnx", batches)`. Needs protozero, as
/// io/onnx.hpp does.

namespace tapegraph::io {

/// How the range of a value between layers follows from the numbers that it takes on the data.
enum class calibration : std::uint8_t {
    minmax,     ///< from the lowest to the highest
    percentile, ///< without the furthest ones on both sides
    entropy     ///< up to the absolute value from which the least information is lost
};

/// Options of export_quantized_onnx.
struct quantization_options {
    calibration ranges = calibration::minmax;
    /// Of calibration::percentile: the share of numbers within the range, in percent.
    double percentile = 99.99;
    /// Layers that stay in f32: scopes of the model, or names of nodes in the file.
    std::vector<std::string> leave{};
    /// 7: weights from -63 to 63, for processors without VNNI, whose sums of products of 8 bits saturate.
    int weight_bits = 8;
    /// Of the file; its int8_weights has no effect.
    onnx_options file{};
};

/// What export_quantized_onnx did.
struct quantization_report {
    /// A layer that computes on integers.
    struct layer {
        std::string name, type; ///< of its node in the file
        double low, high;       ///< of its input on the data, as far as they are represented
    };
    /// An output of the quantised file beside that of the model, on the data.
    struct output {
        std::string name;
        double largest = 0; ///< difference
        double mean = 0;    ///< absolute difference
        /// In decibels: the squares of the model's output to those of the differences; infinite if they are equal.
        double signal_to_noise = std::numeric_limits<double>::infinity();
        /// The share of rows along the last axis whose largest element is the same.
        double same_top = 1;
    };
    std::vector<layer> layers;
    std::vector<std::string> left; ///< layers that stay in f32, and why
    std::vector<output> outputs;
    std::uint64_t float_bytes = 0, bytes = 0; ///< of the weights of a file without and with integers

    /// A line for each layer and output.
    std::string text() const {
        std::string all =
            "weights: " + std::to_string(float_bytes) + " bytes in f32, " + std::to_string(bytes) + " quantised\n";
        for (const layer& l : layers)
            all += l.type + " " + l.name + ": input from " + number_text(l.low) + " to " + number_text(l.high) + "\n";
        for (const std::string& each : left) all += "in f32: " + each + "\n";
        for (const output& o : outputs) {
            char line[160];
            std::snprintf(line, sizeof line,
                          ": off by up to %.3g, on average %.3g; %.1f dB; %.2f %% of rows have the same top\n",
                          o.largest, o.mean, o.signal_to_noise, 100 * o.same_top);
            all += o.name + line;
        }
        return all;
    }
};

namespace detail {

/// The numbers of a tensor, whatever its element type.
inline std::vector<double> numbers_of_tensor(const any_tensor& t) {
    std::vector<double> items(static_cast<std::size_t>(t.size()));
    const auto read = [&]<class T>(std::type_identity<T>) {
        const auto* const from = static_cast<const T*>(t.read());
        for (std::size_t i = 0; i < items.size(); ++i) items[i] = static_cast<double>(from[i]);
    };
    if (!items.empty()) visit_type(t.type(), read);
    return items;
}

/// Sums for quantization_report::output.
class output_comparison {
public:
    void add(const any_tensor& exact, const any_tensor& quantised) {
        const std::vector<double> a = numbers_of_tensor(exact), b = numbers_of_tensor(quantised);
        if (a.empty()) return;
        for (std::size_t i = 0; i < a.size(); ++i) {
            const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
            const double gap = std::fabs(a[i] - b[i]);
            const double d = same ? 0 : std::isfinite(gap) ? gap : std::numeric_limits<double>::infinity();
            largest_ = std::max(largest_, d), sum_ += d, noise_ += d * d;
            if (std::isfinite(a[i])) signal_ += a[i] * a[i];
        }
        count_ += static_cast<double>(a.size());
        const std::size_t width =
            exact.rank() > 0 ? static_cast<std::size_t>(exact.shape()[exact.rank() - 1].value) : 1;
        const auto top = [&](const std::vector<double>& x, std::size_t row) {
            const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * width);
            return std::max_element(begin, begin + static_cast<std::ptrdiff_t>(width)) - begin;
        };
        for (std::size_t r = 0; r < a.size() / width; ++r) ++rows_, same_ += top(a, r) == top(b, r) ? 1 : 0;
    }
    quantization_report::output result(const std::string& name) const {
        quantization_report::output o{name};
        if (count_ == 0) return o;
        o.largest = largest_, o.mean = sum_ / count_, o.same_top = same_ / rows_;
        if (noise_ > 0) o.signal_to_noise = 10 * std::log10(signal_ / noise_);
        return o;
    }

private:
    double largest_ = 0, sum_ = 0, noise_ = 0, signal_ = 0, count_ = 0, rows_ = 0, same_ = 0;
};

template <class G>
std::uint64_t bytes_of_weights(const G& g) {
    std::uint64_t total = 0;
    for (const onnx::weight& w : g.weights) total += w.bytes();
    return total;
}

inline const float* floats_of(const any_tensor& t, const std::string& name) {
    if (t.type() != dtype::f32)
        throw argument_error("quantization: '" + name + "' is of " + name_of(t.type()) + ", only f32 can be quantised");
    return t.size() > 0 ? static_cast<const float*>(t.read()) : nullptr;
}

/// The ranges of values of a model on batches of its inputs.
inline std::map<std::string, onnx::activation_range> calibrate(const onnx_model& net,
                                                               const std::vector<std::string>& values,
                                                               const std::vector<std::vector<any_tensor>>& batches,
                                                               const quantization_options& options) {
    const onnx_model observed = net.until_all(values);
    std::vector<onnx::activation_range> ranges(values.size());
    const auto each = [&](const auto& f) {
        for (const std::vector<any_tensor>& x : batches) {
            const std::vector<any_tensor> y = observed.predict(std::span<const any_tensor>(x));
            for (std::size_t k = 0; k < values.size(); ++k)
                f(ranges[k], floats_of(y[k], values[k]), y[k].size(), values[k]);
        }
    };
    each([](onnx::activation_range& r, const float* x, std::int64_t n, const std::string& name) { r.see(x, n, name); });
    for (std::size_t k = 0; k < values.size(); ++k) {
        if (ranges[k].count() == 0)
            throw argument_error("quantization: '" + values[k] + "' has no elements on the calibration data");
        if (ranges[k].low() == ranges[k].high())
            throw argument_error("quantization: '" + values[k] + "' is " + number_text(ranges[k].low()) + " in all " +
                                 std::to_string(ranges[k].count()) +
                                 " elements on the calibration data: a constant has no range. Leave its layer out, or "
                                 "take other data");
    }
    if (options.ranges == calibration::percentile) {
        each([](onnx::activation_range& r, const float* x, std::int64_t n, const std::string&) { r.sort(x, n); });
        for (onnx::activation_range& r : ranges) r.keep(options.percentile);
    }
    if (options.ranges == calibration::entropy) {
        each([](onnx::activation_range& r, const float* x, std::int64_t n, const std::string&) {
            r.sort_absolute(x, n);
        });
        for (onnx::activation_range& r : ranges) r.keep_information();
    }
    std::map<std::string, onnx::activation_range> named;
    for (std::size_t k = 0; k < values.size(); ++k) named.emplace(values[k], ranges[k]);
    return named;
}

/// A file that is gone when it is no longer used.
struct passing_file {
    files::path path;
    explicit passing_file(files::path p) : path(std::move(p)) {}
    passing_file(const passing_file&) = delete;
    passing_file& operator=(const passing_file&) = delete;
    ~passing_file() {
        std::remove(path.c_str());
        files::path beside = path;
        beside += ".data";
        std::remove(beside.c_str());
    }
};

} // namespace detail

/// Writes a model whose convolutions and matrix products work on integers of 8 bits: weights from -127 to 127 with a
/// scale for each output channel, their inputs and results from 0 to 255 with one scale each, which follows from the
/// numbers that they take on `batches`, each the model's inputs in order. Other operations stay in f32. Runtimes make
/// operators on integers of it; load_onnx computes the same numbers in f32. Returns what the file's outputs are off by on
/// the same data.
///
/// Throws argument_error, as export_onnx does, and for no batches, a value that is not finite or constant on them (by
/// its name), a model without a layer to quantise, and a scope in `leave` that no layer is in.
template <class Model>
quantization_report export_quantized_onnx(const Model& model, const files::path& path,
                                          const std::vector<std::vector<any_tensor>>& batches,
                                          const quantization_options& options = {}) {
    if (batches.empty()) throw argument_error("quantization: no batches to calibrate by");
    if (options.weight_bits != 7 && options.weight_bits != 8)
        throw argument_error("quantization: weight_bits = " + std::to_string(options.weight_bits) + ", it is 7 or 8");
    if (options.ranges == calibration::percentile && !(options.percentile > 0 && options.percentile <= 100))
        throw argument_error("quantization: percentile = " + number_text(options.percentile) +
                             ", it is above 0 and at most 100");
    quantization_report report;
    detail::with_onnx_graph(model, options.file, [&](auto& g) {
        files::path name = path;
        name += ".calibration";
        const detail::passing_file whole(name);
        const onnx::chosen_layers chosen = onnx::choose_layers(g, options.leave);
        detail::write_onnx(whole.path, g, options.file);
        const onnx_model exact = load_onnx(whole.path);
        std::vector<std::string> values;
        const auto add = [&](const std::string& value) {
            if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end())
                values.push_back(value);
        };
        for (const onnx::quantized_layer& l : chosen.layers) add(l.input), add(l.result);
        const auto ranges = detail::calibrate(exact, values, batches, options);
        report.left = chosen.left;
        for (const onnx::quantized_layer& l : chosen.layers) {
            const onnx::activation_range& r = ranges.at(l.input);
            const onnx::uint8_scale s = onnx::uint8_scale_of(r.low(), r.high());
            const double step = static_cast<double>(s.scale);
            report.layers.push_back({l.name, l.type, 0 - step * s.zero, step * (255 - s.zero)});
        }
        report.float_bytes = detail::bytes_of_weights(g);
        onnx::quantize_layers(g, chosen, ranges, options.weight_bits == 7 ? 63 : 127);
        report.bytes = detail::bytes_of_weights(g);
        detail::write_onnx(path, g, options.file);
        const onnx_model quantised = load_onnx(path);
        std::vector<detail::output_comparison> compared(exact.outputs().size());
        for (const std::vector<any_tensor>& x : batches) {
            const auto a = exact.predict(std::span<const any_tensor>(x)),
                       b = quantised.predict(std::span<const any_tensor>(x));
            for (std::size_t k = 0; k < compared.size(); ++k) compared[k].add(a[k], b[k]);
        }
        for (std::size_t k = 0; k < compared.size(); ++k)
            report.outputs.push_back(compared[k].result(exact.outputs()[k].name));
    });
    return report;
}

} // namespace tapegraph::io
