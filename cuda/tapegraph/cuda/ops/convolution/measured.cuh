#pragma once

#include <tapegraph/cuda/measured_plans.cuh>
#include <tapegraph/cuda/ops/convolution/plans.hpp>
#include <tapegraph/ops/convolution/convolution.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// The plans of convolutions in use: predicted, remembered or measured (measured_plans.cuh).

namespace tapegraph::cuda::detail {

inline convolution_device convolution_device_of(const context& on) {
    return {on.properties().multiprocessors, on.properties().major >= 8, on.device()};
}
/// The properties of this thread's device.
inline convolution_device this_convolution_device() { return convolution_device_of(context::current()); }

/// The key under which a plan is remembered.
inline std::string convolution_work(const convolution_geometry& g, convolution_pass pass, dtype type, math_mode mode) {
    constexpr const char* passes[]{"forward", "input_gradient", "filter_gradient"};
    std::string name = std::string("convolution ") + passes[static_cast<int>(pass)];
    name.append(" ").append(name_of(type));
    if (type == dtype::f32) name.append(" ").append(name_of(mode));
    const auto field = [&](const char* what, std::initializer_list<std::int64_t> extents) {
        name.append(" ").append(what);
        char before = ' ';
        for (const std::int64_t e : extents) {
            name.append(1, before).append(std::to_string(e));
            before = 'x';
        }
    };
    field("images", {g.batch, g.in_height, g.in_width, g.in_channels});
    field("filters", {g.kernel_height, g.kernel_width, g.out_channels});
    field("outputs", {g.out_height, g.out_width});
    field("strides", {g.stride_height, g.stride_width});
    field("pads", {g.pad_top, g.pad_left});
    field("dilations", {g.dilation_height, g.dilation_width});
    field("groups", {g.groups});
    return name;
}

/// How far two sums of k products of numbers between -1 and 1 may differ by rounding. A sum's
/// standard deviation is sqrt(k) / 3; the errors are as random as the products, so the largest of
/// all results stays below eight of their standard deviations. A factor in TF32 is off by 2^-10 at
/// most, 3xTF32 omits 2^-20, and every addition may be off by half a unit of the sum so far. By
/// Winograd's algorithm results are off by 1e-5 of their size (docs/performance/convolutions.md).
inline double convolution_difference(std::int64_t k, std::size_t element, math_mode mode, bool winograd = false) {
    const double unit = element == sizeof(float) ? 0x1p-24 : 0x1p-53, terms = static_cast<double>(k);
    const double factors = element != sizeof(float) || mode == math_mode::fp32 ? 0
                           : mode == math_mode::tf32                           ? 0x1p-9
                                                                               : 0x1p-20;
    return 8 * std::sqrt(terms) / 3 * (factors + terms * unit + (winograd ? 1e-5 : 0));
}

/// The operands of a pass, and its candidates run on them.
template <class T, convolution_pass Pass, class Perform>
class convolution_trial {
public:
    convolution_trial(context& on, const convolution_geometry& g, math_mode mode, std::int64_t results,
                      const std::vector<convolution_plan>& plans, const Perform& perform)
        : on_(on),
          mode_(mode),
          count_(results),
          plans_(plans),
          perform_(perform),
          gathered_(on, gathered(g)),
          other_(on, other(g)) {
        gathered_.fill_with_noise(1);
        other_.fill_with_noise(2);
    }
    void operator()(int candidate, T* to, void* workspace) const {
        const math_mode_scope in(mode_);
        buffer_view results;
        results.data = to, results.type = dtype_of<T>, results.rank = 1, results.extents[0] = count_;
        kernel_call call;
        call.out = &results, call.outputs = 1;
        call.stream = on_.stream(), call.workspace = workspace;
        perform_(call, gathered_.data(), other_.data(), plans_[static_cast<std::size_t>(candidate)]);
    }

private:
    static std::int64_t images(const convolution_geometry& g) {
        return g.batch * g.in_height * g.in_width * g.in_channels;
    }
    static std::int64_t outputs(const convolution_geometry& g) {
        return g.batch * g.out_height * g.out_width * g.out_channels;
    }
    static std::int64_t filters(const convolution_geometry& g) {
        return g.kernel_height * g.kernel_width * g.group_in() * g.out_channels;
    }
    static std::int64_t gathered(const convolution_geometry& g) {
        return Pass == convolution_pass::input_gradient ? outputs(g) : images(g);
    }
    static std::int64_t other(const convolution_geometry& g) {
        return Pass == convolution_pass::filter_gradient ? outputs(g) : filters(g);
    }

    context& on_;
    math_mode mode_;
    std::int64_t count_;
    const std::vector<convolution_plan>& plans_;
    const Perform& perform_;
    trial_memory<T> gathered_, other_;
};

/// The plan of a pass in one mode; `perform(call, operand, operand, plan)` computes it.
template <class T, convolution_pass Pass, class Perform>
convolution_plan plan_of_mode(context& on, const convolution_geometry& g, math_mode mode,
                              const convolution_device& device, const Perform& perform) {
    if (!device.tensor_cores || sizeof(T) != sizeof(float)) mode = math_mode::fp32; // all modes compute the same
    if (!plans_vary()) return choose_convolution(g, Pass, sizeof(T), mode, device);
    const std::vector<convolution_plan> plans = convolution_candidates(g, Pass, sizeof(T), mode, device);
    const product_extents e(g, Pass);
    planned_work work;
    work.name = convolution_work(g, Pass, dtype_of<T>, mode);
    work.results = e.m * e.n * g.groups;
    bool winograd = false;
    for (const convolution_plan& p : plans) {
        work.candidates.push_back({name_of(p), p.workspace});
        winograd = winograd || p.algorithm == convolution_algorithm::winograd;
    }
    work.largest_difference = convolution_difference(e.k, sizeof(T), mode, winograd);
    const auto believed = std::find_if(plans.begin(), plans.end(), [](const convolution_plan& p) {
        return p.algorithm == convolution_algorithm::multiply_adds;
    });
    work.reference = believed == plans.end() ? 0 : static_cast<int>(believed - plans.begin());
    return plans[static_cast<std::size_t>(choose_candidate<T>(
        on, work, [&] { return convolution_trial<T, Pass, Perform>(on, g, mode, work.results, plans, perform); }))];
}

/// All plans that have been given out.
inline lasting_plans<known_convolution_plans::key, convolution_plans>& convolution_plans_in_use() {
    static auto& plans = *new lasting_plans<known_convolution_plans::key, convolution_plans>;
    return plans;
}

/// The plans for this thread's device; valid until the next call.
template <class T, convolution_pass Pass, class Perform>
const convolution_plans& plans_of(const convolution_geometry& g, const Perform& perform) {
    using known = known_convolution_plans;
    const convolution_device device = this_convolution_device();
    return known::instance().of(g, Pass, sizeof(T), device, [&](const known::key& k) {
        auto& in_use = convolution_plans_in_use();
        if (const auto before = in_use.find(k)) return *before;
        context& on = context::current();
        return in_use.keep(k, convolution_plans::of_modes(
                                  [&](math_mode m) { return plan_of_mode<T, Pass>(on, g, m, device, perform); }));
    });
}

/// The mode and plan of a pass of floats where the plan does not follow from the shape alone; empty
/// otherwise. The text stays valid.
template <convolution_pass Pass>
std::string_view convolution_method(const convolution_geometry& g, const buffer_view& to) {
    if (!plans_vary()) return {};
    const auto plans = convolution_plans_in_use().find(
        known_convolution_plans::key_of(g, Pass, sizeof(float), convolution_device_of(context::of(to.memory - 1))));
    if (!plans) return {};
    const math_mode mode = current_math_mode();
    std::string text = mode == math_mode::fp32 ? "" : std::string(name_of(mode)) + ", ";
    text += name_of((*plans)[mode]);
    static std::mutex guard;
    static auto& texts = *new std::set<std::string>;
    const std::lock_guard lock(guard);
    return *texts.insert(text).first;
}
inline const bool convolution_methods_are_known = [] {
    namespace on = tapegraph::detail;
    on::method_on_device<convolution_op> = &convolution_method<convolution_pass::forward>;
    on::method_on_device<convolution_input_gradient_op> = &convolution_method<convolution_pass::input_gradient>;
    on::method_on_device<convolution_filter_gradient_op> = &convolution_method<convolution_pass::filter_gradient>;
    return true;
}();

} // namespace tapegraph::cuda::detail
