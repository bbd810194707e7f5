#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/environment.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#else
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

/// How many processors this program may use, and how many threads its user wants.

// Programs may use OpenMP beside the library, which needs nothing of it. Where one does, its runtime
// says whether a thread is in a region of the program's own, and what omp_set_num_threads asked for.
// The names of our own keep these declarations apart from omp.h's.
#if defined(__ELF__)
extern "C" {
[[gnu::weak]] int tapegraph_omp_in_parallel() __asm__("omp_in_parallel");
[[gnu::weak]] int tapegraph_omp_get_max_threads() __asm__("omp_get_max_threads");
[[gnu::weak]] int tapegraph_omp_get_num_procs() __asm__("omp_get_num_procs");
}
#endif

namespace tapegraph::cpu::detail {

/// The processors that a quota "200000 100000" of a control group grants (microseconds of processor
/// time in each period; Linux, cpu.max), at least one; 0 for "max" and for anything else.
int processors_of_quota(std::string_view quota);

/// What `OMP_NUM_THREADS=4,2` and `TAPEGRAPH_NUM_THREADS=4` ask for: the first number; 0 for none, and
/// where anything but a comma follows it.
int threads_of(std::string_view text);

/// The processors that the affinity of the process and the quotas of its control groups allow.
int system_processors();

/// The threads that OMP_NUM_THREADS asks for, or `otherwise`.
int threads_of_openmp(int otherwise);

/// The threads that the environment asks for, or a thread for each of the system's processors.
/// Throws argument_error where TAPEGRAPH_NUM_THREADS is no number from 1 on.
int wanted_threads();

#if TG_DEFINES(runtime)

TG_DEFINITION int processors_of_quota(std::string_view quota) {
    std::int64_t granted = 0, period = 0;
    const char* const end = quota.data() + quota.size();
    const auto [next, error] = std::from_chars(quota.data(), end, granted);
    if (error != std::errc() || next == end) return 0;
    if (std::from_chars(next + 1, end, period).ec != std::errc() || granted <= 0 || period <= 0) return 0;
    return static_cast<int>(std::min<std::int64_t>((granted + period - 1) / period, 1 << 15));
}

TG_DEFINITION int threads_of(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    int threads = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, threads);
    if (error != std::errc() || (next != end && *next != ',')) return 0;
    return std::clamp(threads, 0, 1 << 15);
}

#if defined(__linux__)
/// The first line of a file that begins with `beginning`, without it; empty where there is none.
TG_DEFINITION std::string line_of_file(const std::string& path, std::string_view beginning) {
    std::string found;
    if (std::FILE* const file = std::fopen(path.c_str(), "r")) {
        char line[4096];
        while (found.empty() && std::fgets(line, sizeof line, file) != nullptr) {
            const std::string_view text(line);
            if (text.starts_with(beginning)) found = text.substr(beginning.size(), text.find('\n') - beginning.size());
        }
        std::fclose(file);
    }
    return found;
}

/// The fewest processors that the quotas of the process's control groups grant, or `most`.
TG_DEFINITION int processors_of_groups(int most) {
    const std::string root = "/sys/fs/cgroup";
    const auto limit = [&](const std::string& quota) {
        if (const int granted = processors_of_quota(quota); granted > 0) most = std::min(most, granted);
    };
    // Version 2: each group limits those inside it. In a container the root is the container's group.
    for (std::string group = line_of_file("/proc/self/cgroup", "0::");; group.resize(group.rfind('/'))) {
        while (group.ends_with('/')) group.pop_back();
        limit(line_of_file(root + group + "/cpu.max", ""));
        if (group.empty()) break;
    }
    // Version 1.
    limit(line_of_file(root + "/cpu/cpu.cfs_quota_us", "") + ' ' + line_of_file(root + "/cpu/cpu.cfs_period_us", ""));
    return most;
}
#endif

TG_DEFINITION int system_processors() {
#if defined(__linux__)
    cpu_set_t allowed;
    const bool known = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0; // not where there are more than 1,024
    return std::max(
        processors_of_groups(known ? CPU_COUNT(&allowed) : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))), 1);
#elif defined(__unix__) || defined(__APPLE__)
    return std::max(static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)), 1);
#else
    return std::max(::pthread_num_processors_np(), 1);
#endif
}

TG_DEFINITION int threads_of_openmp(int otherwise) {
    const char* const text = tapegraph::detail::environment("OMP_NUM_THREADS");
    const int threads = text == nullptr ? 0 : threads_of(text);
    return threads > 0 ? threads : otherwise;
}

TG_DEFINITION int wanted_threads() {
    if (const char* const own = tapegraph::detail::environment("TAPEGRAPH_NUM_THREADS")) {
        const int threads = threads_of(own);
        if (threads < 1)
            tapegraph::detail::refuse_environment("TAPEGRAPH_NUM_THREADS", own, "a number of threads, 1 or more");
        return threads;
    }
    return threads_of_openmp(system_processors());
}

#endif

/// The threads that omp_set_num_threads asked for, in a program that uses OpenMP, or wanted_threads().
inline int default_threads() {
    static const int wanted = wanted_threads();
#if defined(__ELF__)
    if (&tapegraph_omp_get_max_threads != nullptr && &tapegraph_omp_get_num_procs != nullptr) {
        static const int unless_set = threads_of_openmp(tapegraph_omp_get_num_procs());
        if (const int set = tapegraph_omp_get_max_threads(); set != unless_set) return set;
    }
#endif
    return wanted;
}

/// Whether this thread is in a parallel region of a program that uses OpenMP.
inline bool in_region_of_program() {
#if defined(__ELF__)
    return &tapegraph_omp_in_parallel != nullptr && tapegraph_omp_in_parallel() != 0;
#else
    return false;
#endif
}

} // namespace tapegraph::cpu::detail
