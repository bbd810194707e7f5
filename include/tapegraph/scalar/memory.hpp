#pragma once

#include <tapegraph/core/error.hpp>
#include <tapegraph/scalar/recorder.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// The memory of tapes of numbers: chunks of operands, which a thread keeps for its next tape.

namespace tapegraph::scalars {

/// Owns what `new` gave: std::unique_ptr without the rest of <memory>, which takes 0.1 s to compile.
template <class T>
class owner {
    using element = std::remove_extent_t<T>;

public:
    owner() = default;
    explicit owner(element* given) : pointer_(given) {}
    owner(owner&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
    owner& operator=(owner&& other) noexcept {
        std::swap(pointer_, other.pointer_);
        return *this;
    }
    ~owner() {
        if constexpr (std::is_array_v<T>)
            delete[] pointer_;
        else
            delete pointer_;
    }
    element* get() const { return pointer_; }
    element* operator->() const { return pointer_; }

private:
    element* pointer_ = nullptr;
};

/// A run of operands. Statements do not straddle chunks.
template <class T>
struct tape_chunk {
    owner<T[]> slopes;
    owner<std::uint32_t[]> statements;
    std::uint32_t room = 0;
    std::uint32_t used = 0; ///< of chunks before the current one

    tape_chunk() = default;
    // Not initialised: pages that nothing is written to cost nothing.
    explicit tape_chunk(std::uint32_t count)
        : slopes(new T[count]), statements(new std::uint32_t[count]), room(count) {}
    operand_rows<T> rows() const { return {slopes.get(), statements.get()}; }
    std::size_t bytes() const { return room * (sizeof(T) + sizeof(std::uint32_t)); }
};

template <class T>
struct tape_memory {
    std::vector<tape_chunk<T>> chunks;
    std::size_t current = 0; ///< the chunk that is written to
    std::vector<T> adjoints; ///< of statements; place 0 takes what passes to inputs
    std::size_t limit = SIZE_MAX;

    std::size_t bytes() const {
        std::size_t sum = adjoints.capacity() * sizeof(T);
        for (const auto& chunk : chunks) sum += chunk.bytes();
        return sum;
    }
    void require(std::size_t more) const {
        const std::size_t held = bytes();
        if (more <= limit && held <= limit - more) return;
        throw out_of_memory("tape of numbers: " + std::to_string(more) + " bytes more than the " +
                                std::to_string(held) + " in use exceed its limit of " + std::to_string(limit) +
                                " bytes; tg::checkpointed_steps needs less memory for a loop of steps",
                            more, held);
    }
    /// Makes a chunk with room for `count` operands the current one; `used` is that of the current one so far.
    void next_chunk(std::uint32_t used, std::uint32_t count) {
        if (!chunks.empty()) chunks[current].used = used;
        std::size_t next = chunks.empty() ? 0 : current + 1;
        if (next < chunks.size() && chunks[next].room < count) chunks.resize(next); // a statement of unusual size
        if (next == chunks.size()) {
            // From 48 KiB to 3 MiB for doubles.
            const std::uint32_t usual = std::uint32_t{4096} << std::min<std::size_t>(next, 6);
            const std::uint32_t size = std::max(usual, count);
            require(size * (sizeof(T) + sizeof(std::uint32_t)));
            chunks.emplace_back(size);
        }
        current = next;
    }
    void want_adjoints(std::size_t count) {
        if (count > adjoints.capacity()) {
            require((count - adjoints.capacity()) * sizeof(T));
            adjoints.reserve(std::max(count, std::min(2 * adjoints.capacity(), limit / sizeof(T))));
        }
        adjoints.assign(count, T(0));
    }
};

/// What tapes of this thread have left.
template <class T>
std::vector<tape_memory<T>>& spare_tape_memory() {
    static thread_local std::vector<tape_memory<T>> spare;
    return spare;
}
template <class T>
tape_memory<T> take_tape_memory() {
    auto& spare = spare_tape_memory<T>();
    if (spare.empty()) return {};
    tape_memory<T> memory = std::move(spare.back());
    spare.pop_back();
    return memory;
}
template <class T>
void give_tape_memory_back(tape_memory<T>&& memory) noexcept {
    try {
        memory.current = 0;
        memory.limit = SIZE_MAX;
        spare_tape_memory<T>().push_back(std::move(memory));
    } catch (...) { // then it is freed
    }
}

} // namespace tapegraph::scalars
