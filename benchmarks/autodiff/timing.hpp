#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <string>
#include <time.h>
#include <vector>

/// Contestants that alternate, in processor time.

namespace timing {

inline double seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// What a call made stays in memory.
template <class T>
void keep(const T& value) {
    asm volatile("" : : "r"(&value) : "memory");
}

struct timed {
    std::string name;
    std::function<void()> call;
    const std::size_t* bytes = nullptr; ///< of its tape
    std::vector<double> times{};
    int calls = 1; ///< between two readings of the clock
};

/// Prints the medians; `per_second` is 1e6 for microseconds.
inline void print(const char* title, std::vector<timed> all, double budget, double per_second = 1e6) {
    const double until = seconds() + budget;
    while (seconds() < until || all[0].times.size() < 5)
        for (timed& one : all)
            for (;; one.calls *= 2) {
                const double start = seconds();
                for (int i = 0; i < one.calls; ++i) one.call();
                const double passed = seconds() - start;
                if (passed < 1e-3) continue; // what reading the clock takes must not count
                one.times.push_back(passed / one.calls);
                break;
            }
    std::printf("%-36s", title);
    for (timed& one : all) {
        const auto middle = one.times.begin() + static_cast<std::ptrdiff_t>(one.times.size() / 2);
        std::nth_element(one.times.begin(), middle, one.times.end());
        std::printf(per_second > 1e6 ? "  %s %.0f" : "  %s %.2f", one.name.c_str(), per_second * *middle);
        if (one.bytes != nullptr && *one.bytes > 0) std::printf(" (%zu KiB)", *one.bytes / 1024);
    }
    std::printf("\n");
    std::fflush(stdout);
}

} // namespace timing
