#pragma once

#include <tapegraph/core/philox.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

/// Random numbers of the data pipeline (Philox, as everywhere): pure functions of (seed, stream,
/// counter), so that record i or epoch e is the same whichever thread requests it and in whichever
/// order.

namespace tapegraph::data {

/// The random numbers of one stream, one after the other.
class counter_random {
public:
    /// The numbers of `stream` (a record, an epoch); there are 2^48 streams.
    counter_random(std::uint64_t seed, std::uint64_t stream) : address_(seed, stream, data_ordinal) {}

    /// The next 64 random bits.
    std::uint64_t next() {
        if (has_word_) {
            has_word_ = false;
            return word_;
        }
        std::uint32_t w0 = 0, w1 = 0, w2 = 0, w3 = 0;
        random::detail::words(address_, static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32),
                              w0, w1, w2, w3);
        ++block_;
        word_ = std::uint64_t{w3} << 32 | w2;
        has_word_ = true;
        return std::uint64_t{w1} << 32 | w0;
    }

    /// Uniform in [0, 1), 53 bits.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    double uniform(double low, double high) { return low + (high - low) * uniform(); }

    /// Uniform in [0, bound), without bias. Lemire, "Fast Random Integer Generation in an Interval", 2019.
    std::uint64_t below(std::uint64_t bound) {
        product_128 product = multiplied(next(), bound);
        if (product.low < bound) {
            const std::uint64_t threshold = (0 - bound) % bound;
            while (product.low < threshold) product = multiplied(next(), bound);
        }
        return product.high;
    }

    /// Standard normal; the second of each pair is kept for the next call.
    double normal() {
        if (has_spare_) {
            has_spare_ = false;
            return spare_;
        }
        double first = 0;
        const double u = uniform(), v = uniform();
        random::box_muller(u, v, first, spare_);
        has_spare_ = true;
        return first;
    }

private:
    struct product_128 {
        std::uint64_t high, low;
    };
    // By halves: 32-bit processors have no type of 128 bits.
    static product_128 multiplied(std::uint64_t a, std::uint64_t b) {
        constexpr std::uint64_t half = 0xFFFFFFFFu;
        const std::uint64_t across = (a & half) * (b >> 32);
        const std::uint64_t middle = (a >> 32) * (b & half) + ((a & half) * (b & half) >> 32) + (across & half);
        return {(a >> 32) * (b >> 32) + (across >> 32) + (middle >> 32), a * b};
    }
    // Random nodes of a model are numbered from zero, so data and model are independent for equal
    // seeds.
    static constexpr std::uint32_t data_ordinal = 0xFFFFFFFFu;

    random::address address_;
    std::uint64_t block_ = 0;
    std::uint64_t word_ = 0; ///< the second half of the last block
    double spare_ = 0;
    bool has_word_ = false, has_spare_ = false;
};

/// Fills `order` with a permutation of [0, order.size()) that depends only on (seed, epoch), by
/// Fisher and Yates.
inline void shuffle_order(std::uint64_t seed, std::uint64_t epoch, std::vector<std::int64_t>& order) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    counter_random random(seed, epoch);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

} // namespace tapegraph::data
