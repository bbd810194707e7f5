#include <damaged/folder.hpp>
#include <formats/gguf_files.hpp>

#include <tapegraph/formats/gguf.hpp>

#include <string>
#include <vector>

std::vector<std::string> sound_files() {
    support::gguf_file all;
    all.entry("general.architecture", 8, support::gguf_text("llama"));
    all.entry("general.alignment", 4, support::little<std::uint32_t>(64));
    all.entry("tokens", 9,
              support::little<std::uint32_t>(8) + support::little<std::uint64_t>(2) + support::gguf_text("a") +
                  support::gguf_text("bc"));
    all.entry("lists", 9,
              support::little<std::uint32_t>(9) + support::little<std::uint64_t>(1) +
                  support::little<std::uint32_t>(6) + support::little<std::uint64_t>(2) + std::string(8, '\1'));
    all.alignment = 64;
    for (const auto& block : tapegraph::io::detail::gguf_blocks)
        all.tensor(std::string("t.") + block.name, {static_cast<std::int64_t>(block.count), 2}, block.number,
                   std::string(2 * block.bytes, '\x31'));
    support::gguf_file small;
    small.version = 2;
    small.tensor("x", {3}, 0, std::string(12, '\0')).tensor("scalar", {}, 28, std::string(8, '\0'));
    return {all.bytes(), small.bytes(), support::gguf_file().bytes()};
}

bool read_damaged(const std::string& bytes) {
    try {
        std::vector<tapegraph::io::unread_value> unread;
        static_cast<void>(tapegraph::io::read_gguf(folder().write("damaged", bytes), &unread));
        return true;
    } catch (const tapegraph::error&) {
        return false;
    }
}

const std::size_t memory_factor = 64; // 84 bytes of Q2_K are 256 floats
