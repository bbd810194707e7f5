#include "count.hpp"

#include <simt/words.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace bank_conflicts {

namespace {

struct access {
    std::uintptr_t place;
    std::uint32_t bytes, block, warp, lane;
    std::uint64_t count; ///< the thread's accesses from there before this one
    std::uintptr_t at;
    bool write;

    auto of_warp() const { return std::tuple(place, write, bytes, block, warp, count); }
};

bool counting = false;
std::vector<access> all;
std::unordered_map<std::uint64_t, std::uint64_t> counts;

/// Whether an address is in static shared memory, or in the dynamic shared memory of the running
/// block or its cluster.
bool is_shared(const void* p) {
    const auto* const at = static_cast<const unsigned char*>(p);
    const auto within = [&](const unsigned char* from, std::size_t bytes) { return at >= from && at < from + bytes; };
    static const std::vector<simt::shared_variable> variables = simt::find_shared_variables();
    static unsigned char* const fixed = simt::thread_local_block();
    for (const simt::shared_variable& v : variables)
        if (within(fixed + v.offset, v.bytes)) return true;
    const simt::executor& e = *simt::executor::active();
    const simt::launch_config& config = e.config();
    for (unsigned i = 0; config.cluster > 1 && i < config.cluster; ++i)
        if (within(e.peer(i).dynamic, config.shared)) return true;
    return within(simt::executor::running()->owner->dynamic, config.shared);
}

struct turns {
    std::uint64_t accesses = 0, taken = 0, least = 0;
    void operator+=(const turns& t) { accesses += t.accesses, taken += t.taken, least += t.least; }
};

/// The turns of accesses [first, last), which are those of one warp at once.
turns turns_of(const access* first, const access* last) {
    turns t{1};
    const std::uint32_t parts = first->bytes <= 4 ? 1 : first->bytes / 4;
    for (std::uint32_t part = 0; part < parts; ++part) {
        std::vector<std::uintptr_t> words[32];
        bool any = false;
        for (const access* a = first; a < last; ++a) {
            if (a->lane * parts / 32 != part) continue;
            any = true;
            for (std::uintptr_t w = a->at / 4; w < (a->at + a->bytes + 3) / 4; ++w) words[w % 32].push_back(w);
        }
        std::ptrdiff_t most = 0;
        for (auto& bank : words) {
            std::sort(bank.begin(), bank.end());
            most = std::max(most, std::unique(bank.begin(), bank.end()) - bank.begin());
        }
        t.taken += static_cast<std::uint64_t>(most), t.least += any;
    }
    return t;
}

/// The innermost line of a kernel's header that an address in the code belongs to, or of the
/// executor, which does there what an instruction does on a device.
std::string line_of(std::uintptr_t place) {
    char command[256], text[1024];
    std::snprintf(command, sizeof command, "addr2line -i -e /proc/%d/exe %#zx", static_cast<int>(getpid()), place - 1);
    FILE* const lines = popen(command, "r");
    std::string of_kernel, of_executor;
    const auto keep = [](std::string& found, const std::string& line, const std::string& folder) {
        const std::size_t at = line.find(folder);
        if (at == std::string::npos || !found.empty()) return;
        found = line.substr(at + folder.size(), line.find_first_of(" \n", at) - at - folder.size());
    };
    while (lines != nullptr && std::fgets(text, sizeof text, lines) != nullptr) {
        keep(of_kernel, text, "kernels/");
        keep(of_executor, text, "tests/");
    }
    if (lines != nullptr) pclose(lines);
    return !of_kernel.empty() ? of_kernel : !of_executor.empty() ? of_executor : "?";
}

} // namespace

void note(const void* p, std::size_t bytes, bool write, const void* place) {
    if (!counting || simt::executor::active() == nullptr || simt::executor::running() == nullptr || !is_shared(p))
        return;
    counting = false; // what follows may be reported, too
    const simt::thread& t = *simt::executor::running();
    const auto from = reinterpret_cast<std::uintptr_t>(place);
    const auto warp = static_cast<std::uint32_t>(t.warp()), lane = static_cast<std::uint32_t>(t.lane());
    const std::uint32_t block = t.owner->index.x;
    const std::uint64_t thread = (std::uint64_t{block} << 10 | warp << 5 | lane) << 32 | (from & 0xFFFFFFFFu);
    all.push_back({from, static_cast<std::uint32_t>(bytes), block, warp, lane, counts[thread]++,
                   reinterpret_cast<std::uintptr_t>(p), write});
    counting = true;
}

void begin() {
    all.clear(), counts.clear();
    counting = true;
}

std::uint64_t end(const char* name) {
    counting = false;
    std::sort(all.begin(), all.end(), [](const access& a, const access& b) { return a.of_warp() < b.of_warp(); });
    static std::map<std::uintptr_t, std::string> names;
    std::map<std::tuple<std::string, bool, std::uint32_t>, turns> lines;
    turns whole;
    for (std::size_t i = 0, last; i < all.size(); i = last) {
        for (last = i; last < all.size() && all[last].of_warp() == all[i].of_warp();) ++last;
        std::string& line = names[all[i].place];
        if (line.empty()) line = line_of(all[i].place);
        const turns t = turns_of(all.data() + i, all.data() + last);
        lines[{line, all[i].write, all[i].bytes}] += t, whole += t;
    }
    std::printf("%s: %zu accesses of warps, %zu turns, least %zu\n", name, whole.accesses, whole.taken, whole.least);
    for (const auto& [line, t] : lines)
        std::printf("    %-28s %s %2u bytes %8zu accesses %8zu turns, %.2f times the least\n",
                    std::get<0>(line).c_str(), std::get<1>(line) ? "writes" : "reads ", std::get<2>(line), t.accesses,
                    t.taken, static_cast<double>(t.taken) / static_cast<double>(t.least));
    std::fflush(stdout);
    return whole.taken - whole.least;
}

} // namespace bank_conflicts

// The functions that -fsanitize=thread calls for accesses.
extern "C" {
#define TG_REPORTED(NAME, BYTES, WRITE)                                                                                \
    void NAME(void* at) { bank_conflicts::note(at, BYTES, WRITE, __builtin_return_address(0)); }
#define TG_REPORTED_SIZE(BYTES)                                                                                        \
    TG_REPORTED(__tsan_read##BYTES, BYTES, false)                                                                      \
    TG_REPORTED(__tsan_write##BYTES, BYTES, true)                                                                      \
    TG_REPORTED(__tsan_unaligned_read##BYTES, BYTES, false)                                                            \
    TG_REPORTED(__tsan_unaligned_write##BYTES, BYTES, true)
TG_REPORTED_SIZE(1)
TG_REPORTED_SIZE(2)
TG_REPORTED_SIZE(4)
TG_REPORTED_SIZE(8)
TG_REPORTED_SIZE(16)
void __tsan_read_range(void* at, std::size_t n) { bank_conflicts::note(at, n, false, __builtin_return_address(0)); }
void __tsan_write_range(void* at, std::size_t n) { bank_conflicts::note(at, n, true, __builtin_return_address(0)); }
std::uint8_t __tsan_atomic8_load(const volatile std::uint8_t* at, int) { return *at; }
std::uint32_t __tsan_atomic32_load(const volatile std::uint32_t* at, int) { return *at; }
std::uint32_t __tsan_atomic32_fetch_add(volatile std::uint32_t* at, std::uint32_t by, int) {
    const std::uint32_t old = *at;
    *at = old + by;
    return old;
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}
