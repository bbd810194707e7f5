#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

/// Devices, where tensors live and kernels run. This header does not depend on CUDA: the backend,
/// if a program has one, lists the devices.

namespace tapegraph {

/// The CPU, or a GPU by its index.
class device {
public:
    constexpr device() = default;
    /// The processor, the default.
    static constexpr device cpu() { return {}; }
    /// Throws argument_error for a negative index. Whether that GPU exists is checked when it is
    /// used.
    static constexpr device cuda(int index = 0) {
        if (index < 0) throw argument_error("device::cuda: the index is " + std::to_string(index));
        device d;
        d.index_ = index;
        return d;
    }
    /// "cpu"; "gpu" or "cuda" for the first GPU, "gpu:1" or "cuda:1" for others. Throws argument_error that names the text.
    static device parse(std::string_view text);

    /// Whether it is the processor.
    constexpr bool is_cpu() const { return index_ < 0; }
    /// Whether it is a GPU of NVIDIA's; `index` says which.
    constexpr bool is_cuda() const { return index_ >= 0; }
    /// The number of the GPU among those that CUDA shows; -1 for the CPU.
    constexpr int index() const { return index_; }
    /// "cpu", "cuda:0"; parse() reads it.
    std::string name() const { return is_cpu() ? "cpu" : "cuda:" + std::to_string(index_); }

    // Not defaulted, because nvcc's front end loses defaulted ones.
    friend constexpr bool operator==(device a, device b) { return a.index_ == b.index_; }
    /// The CPU comes first.
    friend constexpr auto operator<=>(device a, device b) { return a.index_ <=> b.index_; }

private:
    int index_ = -1;
};

inline device device::parse(std::string_view text) {
    if (text == "cpu") return cpu();
    std::string_view rest = text;
    for (std::string_view kind : {"gpu", "cuda"})
        if (text.substr(0, kind.size()) == kind) rest = text.substr(kind.size());
    if (rest.empty() && !text.empty()) return cuda();
    int index = -1;
    if (rest.size() > 1 && rest.size() < text.size() && rest[0] == ':') {
        const auto [end, status] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), index);
        if (status == std::errc{} && end == rest.data() + rest.size() && index >= 0) return cuda(index);
    }
    throw argument_error("device '" + std::string(text) +
                         "': expected cpu, gpu, cuda, or cuda:N with the GPU's number");
}

/// Properties of a device; unknown numbers are 0.
struct device_report {
    device id;
    std::string name;         ///< the maker's name
    std::size_t memory = 0;   ///< bytes
    int major = 0, minor = 0; ///< compute capability, of GPUs
    int multiprocessors = 0;  ///< of a GPU; hardware threads of the CPU
};

namespace runtime {
class device_runtime;
}

namespace detail {

/// Functions that the CUDA backend sets in programs that contain it (cuda/devices.hpp); null
/// otherwise. Functions of this header test them instead of a macro, so that sources compiled with
/// and without CUDA have the same definitions.
struct device_backend {
    int (*count)() = nullptr;
    std::string (*why_none)() = nullptr; ///< CUDA's explanation of a count of 0
    device_report (*report)(int) = nullptr;
    runtime::device_runtime* (*open)(int) = nullptr; ///< of an available GPU
};
inline device_backend& cuda_backend() {
    static device_backend backend;
    return backend;
}

std::string readable_bytes(std::size_t bytes);

// The processor's properties, read from Linux; unknown elsewhere.
device_report cpu_report();

/// Why a device cannot be used; empty if it can.
std::string why_unavailable(device d);

} // namespace detail

/// The CPU and then the GPUs that CUDA shows; the CPU alone in a program without CUDA.
std::vector<device_report> list_devices();

/// A table with one line per device.
std::string device_table(const std::vector<device_report>& devices = list_devices());

/// Throws device_error with the reason if the device cannot be used.
void check_available(device d);

/// The device if it can be used, else the CPU; the first fallback prints the reason to stderr.
device available_or_cpu(device wanted);

#if TG_DEFINES(runtime)

TG_DEFINITION std::string detail::readable_bytes(std::size_t bytes) {
    const char* const units[]{"bytes", "KiB", "MiB", "GiB"};
    double value = static_cast<double>(bytes);
    int unit = 0;
    while (value >= 1024 && unit < 3) value /= 1024, ++unit;
    char text[48];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
    return text;
}

TG_DEFINITION device_report detail::cpu_report() {
    device_report r{device::cpu(), "processor"};
    const auto each_line = [](const char* file, const auto& f) {
        std::FILE* const lines = std::fopen(file, "r");
        if (lines == nullptr) return;
        for (char line[512]; std::fgets(line, sizeof line, lines) != nullptr;) f(std::string_view(line));
        std::fclose(lines);
    };
    each_line("/proc/cpuinfo", [&](std::string_view line) {
        if (line.substr(0, 9) == "processor") ++r.multiprocessors;
        const std::size_t colon = line.find(": ");
        if (line.substr(0, 10) == "model name" && colon != line.npos)
            r.name = line.substr(colon + 2, line.find('\n') - colon - 2);
    });
    each_line("/proc/meminfo", [&](std::string_view line) {
        if (line.substr(0, 9) != "MemTotal:") return;
        const std::size_t digits = std::min(line.find_first_of("0123456789"), line.size());
        std::from_chars(line.data() + digits, line.data() + line.size(), r.memory);
        r.memory *= 1024; // the file means KiB by kB
    });
    return r;
}

TG_DEFINITION std::string detail::why_unavailable(device d) {
    if (d.is_cpu()) return {};
    const device_backend& backend = cuda_backend();
    if (backend.count == nullptr)
        return d.name() +
               " cannot be used: this program was built without CUDA (compile it with nvcc and link tapegraph::cuda)";
    const int count = backend.count();
    if (count == 0) return d.name() + " cannot be used: " + backend.why_none();
    if (d.index() >= count)
        return d.name() + " does not exist: this machine has " +
               (count == 1 ? "cuda:0 alone" : "cuda:0 to cuda:" + std::to_string(count - 1));
    return {};
}

TG_DEFINITION std::vector<device_report> list_devices() {
    std::vector<device_report> devices{detail::cpu_report()};
    const detail::device_backend& backend = detail::cuda_backend();
    const int count = backend.count == nullptr ? 0 : backend.count();
    for (int i = 0; i < count; ++i) devices.push_back(backend.report(i));
    return devices;
}

TG_DEFINITION std::string device_table(const std::vector<device_report>& devices) {
    std::vector<std::vector<std::string>> rows{{"device", "memory", "capability", "processors", "name"}};
    for (const device_report& r : devices) {
        const auto known = [](bool is, const std::string& text) { return is ? text : std::string("-"); };
        rows.push_back({r.id.name(), known(r.memory > 0, detail::readable_bytes(r.memory)),
                        known(r.major > 0, std::to_string(r.major) + "." + std::to_string(r.minor)),
                        known(r.multiprocessors > 0, std::to_string(r.multiprocessors)), r.name});
    }
    std::string text;
    for (const auto& row : rows) {
        for (std::size_t column = 0; column + 1 < row.size(); ++column) {
            std::size_t width = 0;
            for (const auto& other : rows) width = std::max(width, other[column].size());
            text += row[column] + std::string(width + 2 - row[column].size(), ' ');
        }
        text += row.back() + "\n";
    }
    return text;
}

TG_DEFINITION void check_available(device d) {
    if (const std::string why = detail::why_unavailable(d); !why.empty()) throw device_error(why);
}

TG_DEFINITION device available_or_cpu(device wanted) {
    const std::string why = detail::why_unavailable(wanted);
    if (why.empty()) return wanted;
    // One line per process.
    static const bool warned = [&] {
        return std::fprintf(stderr, "tapegraph: %s; continuing on the CPU\n", why.c_str()) > 0;
    }();
    static_cast<void>(warned);
    return device::cpu();
}

#endif

} // namespace tapegraph
