#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Writes small GGUF files for tests.

namespace support {

template <class T>
std::string little(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string gguf_text(const std::string& text) { return little<std::uint64_t>(text.size()) + text; }

struct gguf_file {
    std::uint32_t version = 3;
    std::size_t alignment = 32;
    std::uint64_t entries = 0, tensors = 0;
    std::string metadata{}, infos{}, data{};

    gguf_file& entry(const std::string& key, std::uint32_t type, const std::string& value) {
        metadata += gguf_text(key) + little(type) + value;
        ++entries;
        return *this;
    }
    gguf_file& entry(const std::string& key, std::uint32_t number) { return entry(key, 4, little(number)); }
    /// `extents`: the innermost first, as in the file.
    gguf_file& tensor(const std::string& name, const std::vector<std::int64_t>& extents, std::uint32_t type,
                      const std::string& bytes) {
        infos += gguf_text(name) + little(static_cast<std::uint32_t>(extents.size()));
        for (const auto extent : extents) infos += little(extent);
        infos += little(type) + little<std::uint64_t>(data.size());
        data += bytes;
        data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
        ++tensors;
        return *this;
    }
    /// Floats, as F32.
    gguf_file& tensor(const std::string& name, const std::vector<std::int64_t>& extents,
                      const std::vector<float>& values) {
        return tensor(name, extents, 0, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
    }
    std::string bytes() const {
        std::string all = "GGUF" + little(version) + little(tensors) + little(entries) + metadata + infos;
        all.resize((all.size() + alignment - 1) / alignment * alignment, '\0');
        return all + data;
    }
};

} // namespace support
