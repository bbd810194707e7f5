#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace tapegraph {

/// Base of everything the library throws on purpose. `what()` is one line that names the culprit.
struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Shapes that do not fit an operation; both are named.
struct shape_error : error {
    using error::error;
};

/// An element type an operation or a file does not accept.
struct dtype_error : error {
    using error::error;
};

/// An index, label or size outside its range.
struct range_error : error {
    using error::error;
};

/// range_error for an element of an index tensor: the index and its flat position.
struct index_error : range_error {
    index_error(const std::string& what, std::int64_t which, std::int64_t where)
        : range_error(what), index(which), position(where) {}
    std::int64_t index, position;
};

/// The message for an index outside [0, extent); `position` is where the index stands, "12" or "[3,
/// 1]".
std::string index_outside(const std::string& operation, std::int64_t index, const std::string& position,
                          std::int64_t extent);

/// An argument that makes no sense: a negative batch size, an unknown name, a missing gradient.
struct argument_error : error {
    using error::error;
};

/// A file that is missing, truncated, corrupt or of the wrong format; file and record are named.
struct data_error : error {
    using error::error;
};

/// A condition of tg::check that does not hold.
struct check_error : error {
    using error::error;
};

/// A value that is not finite where the user asked for a check.
struct numeric_error : error {
    using error::error;
};

/// A device that is missing, or a call to it that failed; the call and its purpose are named.
struct device_error : error {
    using error::error;
};

/// A device's memory is exhausted; the message names the requested size, the limit and the largest
/// buffers.
struct out_of_memory : device_error {
    explicit out_of_memory(const std::string& text, std::size_t bytes_of_request = 0, std::size_t bytes_in_use = 0)
        : device_error(text), requested_bytes(bytes_of_request), in_use(bytes_in_use) {}

    std::size_t requested_bytes;
    std::size_t in_use; ///< bytes of the other buffers
};

#if TG_DEFINES(runtime)

TG_DEFINITION std::string index_outside(const std::string& operation, std::int64_t index, const std::string& position,
                                        std::int64_t extent) {
    return operation + ": index " + std::to_string(index) + " at position " + position + " is outside [0, " +
           std::to_string(extent) + ")";
}

#endif

} // namespace tapegraph
