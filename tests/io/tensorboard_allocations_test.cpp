#include <tapegraph/io/tensorboard.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

// Counts what is asked of the heap, of which a scalar event asks nothing.

namespace {
std::atomic<long> tensorboard_heap_calls{0};
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    tensorboard_heap_calls.fetch_add(1, std::memory_order_relaxed);
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}
// std::stable_sort asks for it; without one here AddressSanitizer's own would be freed by ours.
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    tensorboard_heap_calls.fetch_add(1, std::memory_order_relaxed);
    return std::malloc(bytes == 0 ? 1 : bytes);
}
// Not inlined, or g++ takes it for a pair that does not match.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tensorboard_allocations_test {

TEST_CASE("a scalar event asks nothing of the heap, full buffers that are written included") {
    const support::temporary_folder folder;
    tapegraph::io::event_writer events(folder.path(), {.buffer_bytes = 4096});
    const auto write = [&](int from, int to) {
        for (int i = from; i < to; ++i) events.scalar("a/tag/that/is/longer/than/small/strings", 0.5 * i, i);
    };
    const long before = tensorboard_heap_calls;
    write(0, 10000);
    CHECK(tensorboard_heap_calls == before);
    events.text("t", std::string(100000, 'x'), 1); // grows the buffer, which is then made anew
    const long later = tensorboard_heap_calls;
    CHECK(later > before);
    write(10000, 20000);
    CHECK(tensorboard_heap_calls == later);
}

} // namespace tensorboard_allocations_test
