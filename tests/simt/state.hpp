#pragma once

#include <simt/fiber.hpp>

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

/// The parts of a launch: threads, their blocks, and settings.

namespace simt {

struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct index3 {
    unsigned x = 0, y = 0, z = 0;
};
struct extent3 {
    unsigned x, y, z;
    constexpr extent3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {} // NOLINT: like dim3
    constexpr unsigned count() const { return x * y * z; }
};

/// Which thread runs next; a thread runs until it waits. `greedy` runs whole warps in random order,
/// each as far as it can: warps drift as far apart as possible, so a missing barrier breaks
/// something.
enum class order { forward, reverse, random, greedy };

struct launch_config {
    extent3 grid, block;
    std::size_t shared = 0;   ///< bytes of dynamic shared memory
    unsigned cluster = 1;     ///< blocks along x that form a cluster and see each other's dynamic shared memory
    bool cooperative = false; ///< all blocks of the grid are resident at once
};

/// The location in the source where a thread waits.
struct site {
    const char* file = "";
    int line = 0;

    std::strong_ordering operator<=>(const site& o) const {
        const int c = std::strcmp(file, o.file);
        return c != 0 ? c <=> 0 : line <=> o.line;
    }
    bool operator==(const site& o) const { return (*this <=> o) == 0; }
    std::string text() const { return std::string(file) + ":" + std::to_string(line); }
};

/// Settings of the launches of this operating-system thread.
struct settings {
    simt::order order = order::forward;
    std::uint64_t seed = 1;
    bool poison = true;                ///< shared memory holds NaN when a block begins
    bool truncating = false;           ///< tensor cores drop what is below 24 bits of the largest number they add
    site skipped{};                    ///< a barrier that is left out, to show that its absence is noticed
    std::set<site>* visited = nullptr; ///< collects the barriers that threads reached
    /// The fragments of these calls go to other registers: bit 0 of `swap` exchanges a register
    /// with its neighbour, bit 1 with the one after that; bit 2 selects the second operand.
    site swapped{};
    int swap = 0;
    std::set<site>* multiplied = nullptr; ///< collects the calls that take fragments
    site unfilled{};                  ///< an asynchronous copy that leaves the old contents where it should write zeros
    std::set<site>* filled = nullptr; ///< collects the copies that write zeros
};
inline settings& current_settings() {
    static thread_local settings s;
    return s;
}

/// `turn`: a loop that polls for another thread's write; it continues when the others have had
/// their turn.
enum class waiting : std::uint8_t { nothing, barrier, collective, cluster, grid, turn, done };
enum class collective : std::uint8_t { sync, shuffle, ballot, reduce };

/// A copy that has been started, or the end of a group of them.
struct pending_copy {
    void* to;
    const void* from;
    std::size_t bytes;
    bool ends_group;
};

/// Part of a warpgroup's product that has been started, or the end of a group of them.
struct pending_product {
    std::function<void()> make;
    bool ends_group;
};

struct block;
struct thread {
    fiber run;
    simt::block* owner = nullptr;
    index3 index;
    int linear = 0;
    simt::waiting waiting = waiting::nothing;
    site where;
    int predicate = 0, passed = 0; ///< a block barrier's vote, and how many voted yes
    // A warp's collective: this lane's value, the lane it reads from, and the result.
    unsigned mask = 0;
    collective kind = collective::sync;
    int source = 0;
    std::uint64_t value = 0, result = 0;
    std::uint64_t (*combine)(std::uint64_t, std::uint64_t) = nullptr;
    std::vector<pending_copy> copies;
    std::vector<pending_product> products;
    std::size_t cluster_arrivals = 0; ///< at cluster barriers, so far
    bool owes_cluster_wait = false;   ///< has arrived and not yet waited

    int lane() const { return linear & 31; }
    int warp() const { return linear >> 5; }
};

struct block {
    index3 index;
    int size = 0;
    std::vector<std::unique_ptr<thread>> threads; ///< may be more than `size`: reused by the next block
    std::vector<unsigned char> memory;
    unsigned char* dynamic = nullptr;
    struct parcel {
        const void* counted_by;
        void* to;
        unsigned char value[8];
        std::size_t bytes;
    };
    std::vector<parcel> sent;   ///< by other blocks of the cluster, not yet arrived
    std::vector<parcel> stored; ///< for other blocks, not yet published
    struct fetch {
        const void* counted_by;
        std::function<void()> arrive;
    };
    std::vector<fetch> fetches; ///< tiles that have been requested, not yet arrived
    static constexpr std::size_t line_bytes = 32;
    std::map<std::uintptr_t, std::array<unsigned char, line_bytes>> lines; ///< of global memory, read once

    static constexpr std::size_t canary = 256;
    static constexpr unsigned char canary_byte = 0xA5;

    void prepare_dynamic(std::size_t bytes, bool poison) {
        memory.assign(bytes + canary + 128, canary_byte);
        const auto at = (reinterpret_cast<std::uintptr_t>(memory.data()) + 127) / 128 * 128;
        dynamic = reinterpret_cast<unsigned char*>(at);
        std::memset(dynamic, poison ? 0xFF : 0, bytes);
        sent.clear(), stored.clear(), lines.clear(), fetches.clear();
    }
    bool ended() const {
        for (int i = 0; i < size; ++i)
            if (threads[static_cast<std::size_t>(i)]->waiting != waiting::done) return false;
        return true;
    }
    /// Holds data sent to `to` until its barrier has counted all of it, and then delivers it.
    void keep(const void* counted_by, void* to, const void* value, std::size_t bytes) {
        sent.push_back({counted_by, to, {}, bytes});
        std::memcpy(sent.back().value, value, bytes);
    }
    void deliver(const void* counted_by) {
        std::erase_if(sent, [&](const parcel& p) {
            if (p.counted_by == counted_by) std::memcpy(p.to, p.value, p.bytes);
            return p.counted_by == counted_by;
        });
    }
    /// The value that the block sees at an address: its own stores first.
    void read(const void* at, void* to, std::size_t bytes) const {
        for (auto s = stored.rbegin(); s != stored.rend(); ++s)
            if (s->to == at) return void(std::memcpy(to, s->value, bytes));
        std::memcpy(to, at, bytes);
    }
    /// The value when the block first read something of the line.
    void read_cached(const void* at, void* to, std::size_t bytes) {
        const auto address = reinterpret_cast<std::uintptr_t>(at);
        for (std::size_t i = 0; i < bytes; ++i) {
            const std::uintptr_t line = (address + i) / line_bytes;
            auto found = lines.find(line);
            if (found == lines.end()) {
                found = lines.try_emplace(line).first;
                std::memcpy(found->second.data(), reinterpret_cast<const void*>(line * line_bytes), line_bytes);
            }
            static_cast<unsigned char*>(to)[i] = found->second[(address + i) % line_bytes];
        }
    }
    void publish() {
        for (const parcel& p : stored) std::memcpy(p.to, p.value, p.bytes);
        stored.clear();
    }
    bool canary_intact(std::size_t bytes) const {
        for (std::size_t i = 0; i < canary; ++i)
            if (dynamic[bytes + i] != canary_byte) return false;
        return true;
    }
};

} // namespace simt
