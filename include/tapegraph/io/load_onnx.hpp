#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/io/onnx_model.hpp>
#if TG_DEFINES_FOR_HOST(onnx)
#include <tapegraph/io/onnx_import/model.hpp>
#endif

/// load_onnx, which makes an onnx_model of a file.

namespace tapegraph::io {

/// Reads a model: `tg::io::load_onnx("m.onnx").predict({x})`. Throws as onnx_model's constructor does.
inline onnx_model load_onnx(const files::path& file) { return onnx_model(file); }

} // namespace tapegraph::io
