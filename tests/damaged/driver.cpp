/// Reads sound files, then damaged ones: `driver [COUNT] [SEED]`. Each must be read or refused by an exception that says why, within
/// seconds and within the memory that its size allows. The last line is "N passed, N failed".

#include <damaged/mutate.hpp>
#include <damaged/target.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include <malloc.h>
#include <unistd.h>

namespace {

std::size_t live = 0, peak = 0;

void* counted(std::size_t size) {
    void* const memory = std::malloc(size == 0 ? 1 : size);
    if (memory == nullptr) throw std::bad_alloc();
    live += malloc_usable_size(memory);
    if (live > peak) peak = live;
    return memory;
}

void uncounted(void* memory) {
    if (memory == nullptr) return;
    live -= malloc_usable_size(memory);
    std::free(memory);
}

/// What every reader takes, however small the file: buffers, texts of errors, tables of a decoder.
constexpr std::size_t allowance = 4 << 20;
constexpr unsigned most_seconds = 20;

} // namespace

void* operator new(std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }

int main(int argc, char** argv) {
    const long count = argc > 1 ? std::atol(argv[1]) : 10000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    const std::vector<std::string> sound = sound_files();
    long passed = 0, failed = 0, refused = 0;
    for (std::size_t i = 0; i < sound.size(); ++i) {
        if (read_damaged(sound[i])) continue;
        std::printf("sound file %zu was refused\n", i);
        ++failed;
    }
    for (long i = 0; i < count; ++i) {
        const std::string bytes = damaged::mutate(sound, seed * 1000003 + static_cast<std::uint64_t>(i));
        ::alarm(most_seconds); // a reader that hangs is ended, and the test with it
        const std::size_t before = live;
        peak = live;
        bool good = true;
        try {
            if (!read_damaged(bytes)) ++refused;
        } catch (const std::exception& other) {
            std::printf("file %ld (seed %llu): %s\n", i, static_cast<unsigned long long>(seed), other.what());
            good = false;
        }
        if (peak - before > allowance + memory_factor * bytes.size()) {
            std::printf("file %ld (seed %llu): %zu bytes of memory for a file of %zu\n", i,
                        static_cast<unsigned long long>(seed), peak - before, bytes.size());
            good = false;
        }
        ++(good ? passed : failed);
    }
    std::printf("%zu sound files; of the damaged %ld were refused\n%ld passed, %ld failed\n", sound.size(), refused, passed,
                failed);
    return failed == 0 ? 0 : 1;
}
