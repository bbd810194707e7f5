#pragma once

#include "noise.hpp"

#include <tapegraph/core/math_mode.hpp>
#include <tapegraph/fast_convolution.hpp>
#include <tapegraph/profile.hpp>
#include <tapegraph/runtime/device_runtime.hpp>
#include <tapegraph/tensor.hpp>
#ifdef TG_CUDA
#include <tapegraph/cuda/memory.hpp>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A contestant of benchmarks/compare.py: a process that answers lines on stdin by lines on stdout.
/// benchmarks/compare/protocol.py describes the lines.

namespace compare {

namespace tg = tapegraph;

/// One row: the work, its kind and its size.
struct row {
    std::string work, kind; ///< "cnn", "training"
    std::int64_t size = 1;  ///< the batch, or the elements
    std::int64_t length = 0;
    tg::math_mode math = tg::math_mode::fp32; ///< how a GPU multiplies floats
};

/// "cnn/training/32", "conv1d_small/inference/32/140", "cnn@tf32/training/32".
inline row row_of(const std::string& text) {
    row r;
    std::istringstream in(text);
    std::string size, length;
    std::getline(in, r.work, '/'), std::getline(in, r.kind, '/'), std::getline(in, size, '/'),
        std::getline(in, length, '/');
    r.size = std::atoll(size.c_str()), r.length = std::atoll(length.c_str());
    if (const auto at = r.work.find('@'); at != std::string::npos) {
        if (r.work.substr(at) == "@tf32") r.math = tg::math_mode::tf32;
        r.work.resize(at);
    }
    return r;
}

/// The work that has been prepared.
struct prepared {
    std::function<void()> step{};                               ///< the function that is timed
    std::function<std::vector<double>(std::int64_t)> numbers{}; ///< results that others must reproduce
    std::function<void(const std::string&)> save{};             ///< writes weights
    std::function<tg::profile_result(int steps)> profile{};     ///< where the time of a step goes
    std::int64_t operations = 1;                                ///< per step
};

/// Values that all contestants generate alike, of magnitude at most `scale`.
inline tg::tensor<float> noise(const tg::shape& dims, float scale) {
    auto t = tg::tensor<float>::uninitialized(dims);
    float* const to = t.mutable_data();
    for (std::int64_t i = 0; i < t.size(); ++i) to[i] = scale * noise_at(i);
    return t;
}

/// A digest of a result: its mean magnitude, and 16 evenly spaced elements, including the first and
/// the last.
inline std::vector<double> digest(const tg::tensor<float>& y) {
    const float* const from = y.data();
    double sum = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) sum += std::abs(static_cast<double>(from[i]));
    std::vector<double> numbers{sum / static_cast<double>(y.size())};
    for (std::int64_t i = 0; i < 16; ++i) numbers.push_back(static_cast<double>(from[i * (y.size() - 1) / 15]));
    return numbers;
}

/// The least time that a step could take: every call at the peak of multiply-adds, or with each operand and result moved
/// once at the rate of a triad of that size. Convolutions and the products of other algorithms count as direct sums.
struct floor_of_step {
    double seconds = 0, flops = 0, bytes = 0, peak, bandwidth;
    explicit floor_of_step(const tg::profile_result& r) : peak(r.peaks.flops), bandwidth(r.peaks.memory_bandwidth()) {
        for (const auto& call : r.calls) seconds += call.bound, flops += call.flops, bytes += call.bytes;
    }
};

using maker = std::function<prepared(const row&, bool for_check, const std::string& weights)>;

inline std::pair<double, double> clocks() {
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return {std::chrono::duration<double>(wall).count(),
            static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec)};
}

/// Releases memory of the GPU that others may need.
inline void give_back() {
#ifdef TG_CUDA
    if (tg::runtime::current_runtime() != nullptr) tg::cuda::memory_pool::of(0).trim();
#endif
}

/// Answers one request.
inline std::string answer(const std::string& line, const maker& make, prepared& now) {
    std::istringstream in(line);
    std::ostringstream out;
    out.precision(10);
    std::string verb, a, b, c;
    in >> verb >> a >> b >> c;
    if (verb == "prepare") {
        now = {};
        give_back();
        const row requested_row = row_of(a);
        tg::set_math_mode(requested_row.math);
        now = make(requested_row, b == "check", c == "-" ? std::string() : c);
    } else if (verb == "forget") {
        now = {};
        give_back();
    } else if (verb == "save" && now.save) {
        now.save(a);
    } else if (verb == "profile" && now.profile) {
        const tg::profile_result r = now.profile(10);
        std::ofstream(a) << (a.ends_with(".csv") ? r.csv() : r.text());
    } else if (verb == "floor" && now.profile) {
        const floor_of_step f(now.profile(1)); // counts and peaks alone: steps of large models take long
        const auto each = static_cast<double>(now.operations);
        out << ' ' << f.seconds / each << ' ' << f.flops / each << ' ' << f.bytes / each << ' ' << f.peak << ' '
            << f.bandwidth;
    } else if (verb == "check" && now.numbers) {
        for (const double number : now.numbers(std::atoll(a.c_str()))) out << ' ' << number;
    } else if (verb == "run" && now.step) {
        const double before = clocks().second;
        std::ostringstream steps;
        for (std::int64_t left = std::atoll(a.c_str()); left > 0; --left) {
            const double start = clocks().first;
            now.step();
            if (tg::runtime::device_runtime* device = tg::runtime::current_runtime()) device->wait();
            steps << ' ' << (clocks().first - start) / static_cast<double>(now.operations);
        }
        out << ' ' << (clocks().second - before) / static_cast<double>(now.operations) << steps.str();
    } else {
        throw tg::argument_error("nothing is prepared for '" + line + "'");
    }
    return "ok" + out.str();
}

/// Answers until stdin ends. Arguments: [--threads N] [--convolution direct|fast] [--device cpu|cuda:0].
inline int serve(int argc, char** argv, const maker& make) {
    tg::device place;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i], value = argv[i + 1];
        if (name == "--device") place = tg::device::parse(value);
        if (name == "--threads") tg::set_thread_count(std::max(1, std::atoi(argv[i + 1])));
        if (name == "--convolution")
            tg::set_convolution_algorithm(value == "fast" ? tg::convolution_algorithm::automatic
                                                          : tg::convolution_algorithm::direct);
    }
    const tg::device_scope on(place);
    prepared now;
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::cout << answer(line, make, now) << std::endl;
        } catch (const std::exception& failure) {
            std::string text = failure.what();
            std::replace(text.begin(), text.end(), '\n', ' ');
            std::cout << "error " << text << std::endl;
        }
    }
    return 0;
}

} // namespace compare
