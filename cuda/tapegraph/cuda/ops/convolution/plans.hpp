#pragma once

#include <tapegraph/cuda/ops/convolution/choose.hpp>
#include <tapegraph/cuda/word_hash.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

/// Caches plans. A call asks for its plan several times (for scratch memory in each mode, and to
/// run), and a training step repeats the shapes of the step before.

namespace tapegraph::cuda {

/// The plans of one pass for every math_mode: the mode may change between the query for scratch
/// memory and the run.
struct convolution_plans {
    std::array<convolution_plan, 3> by_mode{};
    std::size_t workspace = 0; ///< the maximum over the modes

    /// choose(mode) returns a plan.
    template <class Choose>
    static convolution_plans of_modes(const Choose& choose) {
        convolution_plans plans;
        for (const math_mode m : {math_mode::fp32, math_mode::tf32, math_mode::tf32x3}) {
            convolution_plan& plan = plans.by_mode[static_cast<std::size_t>(m)];
            plan = choose(m);
            plans.workspace = std::max(plans.workspace, plan.workspace);
        }
        return plans;
    }
    const convolution_plan& operator[](math_mode mode) const { return by_mode[static_cast<std::size_t>(mode)]; }
};

/// One thread's plans of recently used shapes. Each shape hashes to one entry, which it may take
/// over from another shape.
class known_convolution_plans {
    // The extents. Of the algorithm after them it matters whether it allows Winograd's; padding bytes
    // may hold anything.
    static constexpr std::size_t extents = offsetof(convolution_geometry, algorithm) / sizeof(std::int64_t);

public:
    /// Everything that plans depend on.
    using key = std::array<std::int64_t, extents + 3>;

    /// The plans of the calling thread.
    static known_convolution_plans& instance() {
        static thread_local known_convolution_plans plans;
        return plans;
    }
    /// The calling thread's plans that are predicted even where others are measured.
    static known_convolution_plans& predictions() {
        static thread_local known_convolution_plans plans;
        return plans;
    }

    /// The result of make(key), cached for known shapes. Valid until the next call.
    template <class Make>
    const convolution_plans& of(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                                const convolution_device& device, const Make& make) {
        const key plan_key = key_of(g, pass, element, device);
        if (entries_ == nullptr) entries_ = std::make_unique<std::array<entry, places>>();
        entry& e = (*entries_)[place_of(plan_key)];
        if (e.plan_key != plan_key) {
            e.plan_key = {}; // matches no shape, in case of an exception
            e.plans = make(plan_key);
            e.plan_key = plan_key;
            ++made_;
        }
        return e.plans;
    }
    /// As above, with the plans of choose_convolution.
    const convolution_plans& of(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                                const convolution_device& device) {
        return of(g, pass, element, device, [&](const key&) {
            return convolution_plans::of_modes(
                [&](math_mode m) { return choose_convolution(g, pass, element, m, device); });
        });
    }
    /// The number of times that plans had to be made so far.
    std::int64_t made() const { return made_; }

    static key key_of(const convolution_geometry& g, convolution_pass pass, std::size_t element,
                      const convolution_device& device) {
        key k;
        std::memcpy(k.data(), &g, extents * sizeof(std::int64_t));
        k[extents] = static_cast<std::int64_t>(element) << 8 | static_cast<std::int64_t>(detail::winograd_may(g)) << 3 |
                     static_cast<std::int64_t>(pass) << 1 | static_cast<std::int64_t>(device.tensor_cores);
        k[extents + 1] = device.multiprocessors;
        k[extents + 2] = device.number;
        return k;
    }

private:
    static constexpr std::size_t places = 256; // entries of a word_hash
    struct entry {
        key plan_key{}; // zeros match no shape: an element has bytes
        convolution_plans plans;
    };

    static std::size_t place_of(const key& k) {
        word_hash hash;
        for (const std::int64_t word : k) hash.add(static_cast<std::uint64_t>(word));
        return hash.place();
    }

    std::unique_ptr<std::array<entry, places>> entries_;
    std::int64_t made_ = 0;
};

} // namespace tapegraph::cuda
