#include <support/settings_guard.hpp>

#include <tapegraph/cpu/content_hash.hpp>
#include <tapegraph/cpu/parallel.hpp>

#include <doctest/doctest.h>

#include <set>
#include <vector>

namespace content_hash_test {

namespace cpu = tapegraph::cpu;

TEST_CASE("content_hash: the same on every instruction set, another after any change") {
    const support::settings_guard guard;
    // Less than a block of 128 bytes, one, one and a byte, several with and without a rest.
    for (const std::size_t size : {0, 1, 127, 128, 129, 640, 1000}) {
        CAPTURE(size);
        std::vector<std::byte> bytes(size + 1);
        for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
        std::set<std::uint64_t> found;
        for (const auto set :
             {cpu::instruction_set::baseline, cpu::instruction_set::avx2, cpu::instruction_set::avx512}) {
            cpu::set_instruction_set(set);
            found.insert(cpu::content_hash(bytes.data(), size));
        }
        CHECK(found.size() == 1);
        for (std::size_t i = 0; i < size; ++i)
            for (const int bit : {0, 3, 7}) {
                bytes[i] ^= static_cast<std::byte>(1 << bit);
                found.insert(cpu::content_hash(bytes.data(), size));
                bytes[i] ^= static_cast<std::byte>(1 << bit);
            }
        CHECK(found.size() == 1 + 3 * size);
        bytes[size] = std::byte{1};
        CHECK(found.count(cpu::content_hash(bytes.data(), size)) == 1); // what is past the end does not count
    }
}

TEST_CASE("content_hash: numbers that change places, and zeros more or less, change it") {
    std::set<std::uint64_t> found;
    for (std::size_t at = 0; at < 500; ++at) {
        std::vector<float> values(500);
        values[at] = 1;
        found.insert(cpu::content_hash(values.data(), 500 * sizeof(float)));
    }
    CHECK(found.size() == 500);
    const std::vector<float> zeros(1000);
    for (std::size_t count = 0; count <= 1000; ++count)
        found.insert(cpu::content_hash(zeros.data(), count * sizeof(float)));
    CHECK(found.size() == 500 + 1001);
}

} // namespace content_hash_test
