#include <tapegraph/cpu/parallel.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace team_test {

namespace tg = tapegraph;
namespace cpu = tapegraph::cpu;

/// Restores the number of threads.
struct threads_of_kernels {
    explicit threads_of_kernels(int threads) { tg::set_thread_count(threads); }
    ~threads_of_kernels() { tg::set_thread_count(0); }
};

// Whether every task ran once, and on threads below `most`.
bool each_once(std::int64_t tasks, int most) {
    std::vector<int> ran(static_cast<std::size_t>(tasks));
    std::atomic<int> highest{0};
    cpu::for_tasks(tasks, true, [&](std::int64_t task, int thread) {
        ++ran[static_cast<std::size_t>(task)];
        for (int seen = highest; thread > seen && !highest.compare_exchange_weak(seen, thread);) {}
    });
    for (const int times : ran)
        if (times != 1) return false;
    return highest < most;
}

TEST_CASE("every task runs once, whatever the number of threads and tasks") {
    for (const int threads : {1, 2, 3, 7, 2, 16, 1, 20, 4}) { // there are at most 16 shares
        const threads_of_kernels set(threads);
        for (const std::int64_t tasks : {0, 1, 2, 3, 17, 1000})
            for (int again = 0; again < 20; ++again) CHECK(each_once(tasks, threads));
    }
}

TEST_CASE("a thread begins with its own share, and takes what others leave") {
    const auto order = [](std::int64_t tasks, int threads, int thread) {
        std::vector<std::int64_t> taken;
        cpu::detail::task_shares(tasks, threads).take(thread, [&](std::int64_t task) { taken.push_back(task); });
        return taken;
    };
    using numbers = std::vector<std::int64_t>;
    CHECK(order(7, 3, 0) == numbers{0, 1, 2, 3, 4, 5, 6});
    CHECK(order(7, 3, 1) == numbers{2, 3, 4, 5, 6, 0, 1});
    CHECK(order(7, 3, 2) == numbers{4, 5, 6, 0, 1, 2, 3});
    CHECK(order(7, 3, 4) == order(7, 3, 1));
    CHECK(order(1, 1, 5) == numbers{0});
    CHECK(order(100, 20, 16) == order(100, 16, 0));
    const threads_of_kernels set(2);
    for (int again = 0; again < 50; ++again) {
        std::atomic<int> begun{0};
        std::vector<std::thread::id> ran(100);
        cpu::for_tasks(100, true, [&](std::int64_t task, int) {
            ran[static_cast<std::size_t>(task)] = std::this_thread::get_id();
            if (task != 0 && task != 50) return;
            // Neither goes on before the other has begun, for ten seconds at most.
            ++begun;
            for (int wait = 0; begun < 2 && wait < 100000; ++wait)
                std::this_thread::sleep_for(std::chrono::microseconds(100));
        });
        CHECK(begun == 2);
        CHECK(ran[0] == std::this_thread::get_id());
        CHECK(ran[50] != ran[0]);
    }
    // The caller leaves nothing to a worker that waits.
    std::atomic<bool> done{false};
    std::atomic<int> left{99};
    cpu::for_tasks(100, true, [&](std::int64_t task, int) {
        if (task == 50)
            for (int wait = 0; left > 0 && wait < 100000; ++wait)
                std::this_thread::sleep_for(std::chrono::microseconds(100));
        else
            --left;
        if (task == 50) done = left == 0;
    });
    CHECK(done);
}

TEST_CASE("the members of a team are all there, and can meet") {
    for (const int threads : {2, 5, 3}) {
        const threads_of_kernels set(threads);
        for (int again = 0; again < 200; ++again) {
            std::atomic<int> here{0}, numbers{0};
            cpu::parallel_team(true, [&](int thread, int team) {
                CHECK(team == threads);
                numbers |= 1 << thread;
                ++here;
                while (here < team) std::this_thread::yield();
            });
            CHECK(numbers == (1 << threads) - 1);
        }
    }
}

TEST_CASE("callers leave each other processors, and have none but their own where they are as many") {
    CHECK(cpu::threads_beside(4, 1, 4) == 4);
    CHECK(cpu::threads_beside(8, 1, 4) == 8); // who is alone may have asked for more
    CHECK(cpu::threads_beside(4, 2, 4) == 3);
    CHECK(cpu::threads_beside(4, 4, 4) == 1);
    CHECK(cpu::threads_beside(4, 9, 4) == 1);
    CHECK(cpu::threads_beside(2, 2, 64) == 2);
    CHECK(cpu::threads_beside(4, 2, 1) == 1);

    struct processors {
        explicit processors(int count) { cpu::detail::assumed_processors = count; }
        ~processors() { cpu::detail::assumed_processors = 0; }
    };
    const threads_of_kernels set(4);
    const processors four(4);
    const auto members = [] {
        std::atomic<int> most{0}, highest{0};
        cpu::parallel_team(true, [&](int, int team) { most = team; });
        // Regions that need not be whole, too: no task runs on a thread beyond them.
        cpu::for_tasks(200, true, [&](std::int64_t, int thread) {
            for (int seen = highest; thread > seen && !highest.compare_exchange_weak(seen, thread);) {}
        });
        CHECK(highest < most);
        return most.load();
    };
    CHECK(members() == 4);
    const auto beside = [&](int others) {
        std::atomic<int> begun{0};
        std::atomic<bool> end{false};
        std::vector<std::thread> threads;
        for (int i = 0; i < others; ++i)
            threads.emplace_back([&] {
                const cpu::at_work here, same_thread; // counts once
                const cpu::at_work not_counted(false);
                ++begun;
                while (!end) std::this_thread::sleep_for(std::chrono::microseconds(100));
            });
        while (begun < others) std::this_thread::yield();
        const int found = members();
        end = true;
        for (std::thread& t : threads) t.join();
        return found;
    };
    CHECK(beside(1) == 3);
    CHECK(beside(2) == 2);
    CHECK(beside(3) == 1);
    CHECK(beside(40) == 1); // more than there are counters
    CHECK(members() == 4);
    // Who opens a region inside of a program is one caller, not two; and its workers are none.
    const cpu::at_work program;
    CHECK(cpu::detail::caller_count::at_least(100) == 1);
    std::atomic<int> callers{0};
    cpu::parallel_team(true, [&](int, int) {
        const cpu::at_work inside;
        if (const int now = cpu::detail::caller_count::at_least(100); now != 1) callers = now;
    });
    CHECK(callers == 0);
}

TEST_CASE("a region does not wait for threads that have not begun") {
    const threads_of_kernels set(2);
    // The task that is begun first ends when the other one has: with one thread in it that would never be.
    std::atomic<int> begun{0};
    cpu::parallel_for(2, true, [&](std::int64_t) {
        ++begun;
        while (begun < 2) std::this_thread::yield();
    });
    CHECK(begun == 2);
    // A region of one long task: workers come too late, and the caller goes on.
    for (int again = 0; again < 1000; ++again) {
        std::atomic<int> sum{0};
        cpu::parallel_for(2, true, [&](std::int64_t task) { sum += static_cast<int>(task) + 1; });
        REQUIRE(sum == 3);
    }
}

TEST_CASE("regions inside regions run on the thread that opens them") {
    const threads_of_kernels set(4);
    std::atomic<int> sum{0}, elsewhere{0};
    cpu::parallel_for(8, true, [&](std::int64_t) {
        const auto here = std::this_thread::get_id();
        cpu::parallel_for(5, true, [&](std::int64_t) {
            ++sum;
            if (std::this_thread::get_id() != here) ++elsewhere;
        });
        cpu::parallel_team(true, [&](int thread, int team) {
            if (thread != 0 || team != 1) ++elsewhere;
        });
    });
    CHECK(sum == 40);
    CHECK(elsewhere == 0);
    CHECK(each_once(100, 4)); // and afterwards there are several again
}

TEST_CASE("several threads of a program open regions at once") {
    const threads_of_kernels set(3);
    std::atomic<int> failures{0};
    std::vector<std::thread> users;
    for (int user = 0; user < 4; ++user)
        users.emplace_back([&] {
            for (int again = 0; again < 300; ++again)
                if (!each_once(1 + again % 40, 3)) ++failures;
        });
    for (std::thread& user : users) user.join();
    CHECK(failures == 0);
}

#if !defined(__SANITIZE_THREAD__) // which refuses threads in a child of a program with threads
TEST_CASE("a child of fork has threads of its own") {
    const threads_of_kernels set(3);
    REQUIRE(each_once(100, 3));
    std::atomic<bool> begun{false}, end{false};
    std::thread other([&] { // which the child has not, nor its share of the processors
        const cpu::at_work here;
        for (begun = true; !end;) std::this_thread::sleep_for(std::chrono::microseconds(100));
    });
    while (!begun) std::this_thread::yield();
    const cpu::at_work here;
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60); // rather than wait for threads that are not there
        bool right = cpu::detail::caller_count::at_least(100) == 1;
        for (int again = 0; again < 50; ++again) right = right && each_once(100, 3);
        std::atomic<int> here{0};
        cpu::parallel_team(true, [&](int, int) { ++here; });
        ::_exit(right && here >= 1 ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    end = true;
    other.join();
    CHECK(each_once(100, 3));
}
#endif

TEST_CASE("workers that sleep come back") {
    const threads_of_kernels set(2);
    for (int again = 0; again < 5; ++again) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        CHECK(each_once(50, 2));
        std::atomic<int> here{0};
        cpu::parallel_team(true, [&](int, int team) {
            ++here;
            while (here < team) std::this_thread::yield();
        });
        CHECK(here == 2);
    }
}

} // namespace team_test
