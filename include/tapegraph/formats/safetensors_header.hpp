#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/formats/host_array.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The header of a safetensors file as values. The conversions from and to JSON are declared here
/// and defined in formats/safetensors_json.hpp.

#if !defined(TG_WEIGHTS_DEFINITION) // io/weights.cpp has another
#define TG_WEIGHTS_DEFINITION TG_DEFINITION
#endif

namespace tapegraph::io::detail {

// In the order of the reference implementation's enumeration, which sorts tensors by it (widest
// last, written first), so that files equal those of Python's safetensors byte for byte and every
// tensor is aligned.
inline constexpr std::array<std::pair<dtype, const char*>, 13> safetensors_types{{{dtype::boolean, "BOOL"},
                                                                                  {dtype::u8, "U8"},
                                                                                  {dtype::i8, "I8"},
                                                                                  {dtype::i16, "I16"},
                                                                                  {dtype::u16, "U16"},
                                                                                  {dtype::f16, "F16"},
                                                                                  {dtype::bf16, "BF16"},
                                                                                  {dtype::i32, "I32"},
                                                                                  {dtype::u32, "U32"},
                                                                                  {dtype::f32, "F32"},
                                                                                  {dtype::f64, "F64"},
                                                                                  {dtype::i64, "I64"},
                                                                                  {dtype::u64, "U64"}}};

inline std::size_t safetensors_rank(dtype type) {
    std::size_t rank = 0;
    while (safetensors_types[rank].first != type) ++rank;
    return rank;
}

/// The position of one tensor's values, counted from the end of the header.
struct safetensors_place {
    std::string name;
    dtype type;
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;
    std::string unknown{}; ///< the name of a type that is not read
};

struct safetensors_header {
    std::vector<safetensors_place> places;
    std::map<std::string, std::string> metadata;
};

/// Reads a header and checks every entry separately. Throws data_error that names `file` and the
/// tensor.
safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, const std::string& file);

/// The header's text, with positions in the order given, without trailing spaces. Throws
/// argument_error that names `operation` if a name or metadata are not UTF-8.
std::string safetensors_header_text(const safetensors_header& header, const std::string& operation);

} // namespace tapegraph::io::detail
