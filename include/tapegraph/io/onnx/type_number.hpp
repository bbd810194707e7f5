#pragma once

#include <tapegraph/core/dtype.hpp>

#include <cstdint>
#include <optional>

/// ONNX's numbers of element types, for the reader and the writer.

namespace tapegraph::onnx {

/// ONNX's number of an element type (TensorProto.DataType).
constexpr std::int32_t type_number(dtype type) {
    switch (type) {
    case dtype::f32: return 1;
    case dtype::u8: return 2;
    case dtype::i8: return 3;
    case dtype::u16: return 4;
    case dtype::i16: return 5;
    case dtype::i32: return 6;
    case dtype::i64: return 7;
    case dtype::boolean: return 9;
    case dtype::f16: return 10;
    case dtype::f64: return 11;
    case dtype::u32: return 12;
    case dtype::u64: return 13;
    case dtype::bf16: return 16;
    }
    return 0;
}

/// The inverse; nothing for numbers of types that this library does not have.
constexpr std::optional<dtype> type_of_number(std::int64_t number) {
#define TG_ROW(name, T, bytes, text)                                                                                   \
    if (number == type_number(dtype::name)) return dtype::name;
    TG_ELEMENT_TYPES(TG_ROW)
#undef TG_ROW
    return std::nullopt;
}

} // namespace tapegraph::onnx
