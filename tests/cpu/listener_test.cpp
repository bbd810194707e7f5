#include <tapegraph/cpu/parallel.hpp>

#include <atomic>
#include <doctest/doctest.h>
#include <thread>

/// Who is called between the tasks of a thread.

namespace listener_test {

namespace cpu = tapegraph::cpu;

namespace {

struct task_counter {
    std::thread::id expected = std::this_thread::get_id();
    int calls = 0, elsewhere = 0;
    static void call(void* of) noexcept {
        auto& mine = *static_cast<task_counter*>(of);
        ++mine.calls;
        mine.elsewhere += std::this_thread::get_id() != mine.expected;
    }
};

} // namespace

TEST_CASE("a listener is called after each task of its thread, and of no other") {
    task_counter mine;
    const auto nothing = [](std::int64_t) {};
    {
        const cpu::listen_between_tasks scope(&task_counter::call, &mine);
        cpu::parallel_for(7, false, nothing);
        CHECK(mine.calls == 7);
        cpu::parallel_for(0, true, nothing);
        CHECK(mine.calls == 7);
        std::thread([&] { cpu::parallel_for(5, false, nothing); }).join(); // somebody else's tasks
        CHECK(mine.calls == 7);

        // In a team the caller's own share of the tasks: all of them where workers come too late.
        tapegraph::set_thread_count(4);
        std::atomic<int> own{0};
        cpu::parallel_for(1000, true, [&](std::int64_t) { own += std::this_thread::get_id() == mine.expected; });
        tapegraph::set_thread_count(0);
        CHECK(mine.calls == 7 + own.load());
        CHECK(mine.elsewhere == 0);

        task_counter inner;
        {
            const cpu::listen_between_tasks within(&task_counter::call, &inner);
            cpu::parallel_for(3, false, nothing);
        }
        CHECK(inner.calls == 3);
        const int before = mine.calls;
        cpu::parallel_for(2, false, nothing);
        CHECK(mine.calls == before + 2);
    }
    const int before = mine.calls;
    cpu::parallel_for(7, false, nothing);
    CHECK(mine.calls == before);
}

} // namespace listener_test
