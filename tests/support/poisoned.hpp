#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

namespace support {

/// Memory aligned to 64 bytes, filled with NaN: a kernel that reads uninitialised memory cannot
/// pass.
class poisoned {
public:
    explicit poisoned(std::size_t bytes)
        : memory_(bytes / sizeof(double) + 9, std::numeric_limits<double>::quiet_NaN()) {}
    void* get() {
        void* p = memory_.data();
        std::size_t space = memory_.size() * sizeof(double);
        return std::align(64, 1, p, space);
    }

private:
    std::vector<double> memory_;
};

} // namespace support
