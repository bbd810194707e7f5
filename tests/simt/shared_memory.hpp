#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

/// The `__shared__` variables of kernels: thread-local variables of functions in a namespace called
/// `kernels`, found in the executable's own symbol table (so a test must not be stripped, and
/// kernels must not be in a shared library).

namespace simt {

struct shared_variable {
    std::size_t offset, bytes; ///< within the executable's thread-local block
};

inline std::vector<shared_variable> find_shared_variables() {
    std::vector<shared_variable> found;
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const auto read = [&](auto& into, std::uint64_t at) {
        file.seekg(static_cast<std::streamoff>(at));
        file.read(reinterpret_cast<char*>(&into), sizeof into);
        return static_cast<bool>(file);
    };
    Elf64_Ehdr header{};
    if (!read(header, 0) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return found;
    for (int i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section{}, names{};
        if (!read(section, header.e_shoff + static_cast<std::uint64_t>(i) * header.e_shentsize)) return found;
        if (section.sh_type != SHT_SYMTAB) continue;
        if (!read(names, header.e_shoff + static_cast<std::uint64_t>(section.sh_link) * header.e_shentsize))
            return found;
        std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
        std::string text(names.sh_size, '\0');
        file.seekg(static_cast<std::streamoff>(section.sh_offset));
        file.read(reinterpret_cast<char*>(symbols.data()), static_cast<std::streamsize>(section.sh_size));
        file.seekg(static_cast<std::streamoff>(names.sh_offset));
        file.read(text.data(), static_cast<std::streamsize>(names.sh_size));
        for (const Elf64_Sym& s : symbols) {
            if (ELF64_ST_TYPE(s.st_info) != STT_TLS || s.st_size == 0) continue;
            const std::string name(text.c_str() + s.st_name);
            if (name.rfind("_ZZ", 0) == 0 && name.find("7kernels") != std::string::npos)
                found.push_back({s.st_value, s.st_size});
        }
    }
    return found;
}

/// The calling thread's copy of the executable's thread-local block.
inline unsigned char* thread_local_block() {
    unsigned char* block = nullptr;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<unsigned char**>(out) = static_cast<unsigned char*>(info->dlpi_tls_data);
            return 1; // the executable comes first
        },
        &block);
    return block;
}

/// Sets every static shared variable to NaN (all bits one).
inline void poison_shared_variables() {
    static const std::vector<shared_variable> variables = find_shared_variables();
    unsigned char* block = thread_local_block();
    if (block == nullptr) return;
    for (const shared_variable& v : variables) std::memset(block + v.offset, 0xFF, v.bytes);
}

} // namespace simt
