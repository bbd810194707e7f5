#pragma once

#include <tapegraph/formats/needs_posix.hpp>

#include <tapegraph/formats/path.hpp>
#include <tapegraph/formats/pytorch.hpp>
#include <tapegraph/io/foreign_weights.hpp>
#include <tapegraph/io/pytorch_dialect.hpp>

#include <string>
#include <utility>

/// Loads weights of a PyTorch state_dict into a model: converts names and layouts of torch.nn.

namespace tapegraph::io {

/// Loads the weights of a PyTorch state_dict (torch.save) into a model; its optimizer and step
/// count are unchanged. Layers are found by name (`encoder.fc` is the scope "encoder/fc"), the
/// others by kind, shape and order, or as options.layers says; the report lists the matches, and
/// the content that was not read. Layouts are converted: docs/weights_of_others.md. Other
/// floating types are converted to the model's. Throws data_error if the file cannot be read
/// (read_pytorch_file) or tensors are missing or left over, shape_error if some have other shapes,
/// listing all of them in the message, argument_error for options that match nothing; then the
/// model is unchanged.
///
///     const auto report = tg::io::load_pytorch(model, "resnet.pt", {.prefix = "model.", .layers = {{"fc", "score"}}});
template <class Model>
foreign_report load_pytorch(Model& model, const files::path& path, const foreign_options& options = {}) {
    const std::string name = detail::quoted(path);
    pytorch_file file = read_pytorch_file(path);
    return detail::load_foreign<detail::pytorch_dialect>(
        model.variables(), detail::layers_of_pytorch(std::move(file.tensors), options.prefix, name), name, options,
        std::move(file.unread));
}

} // namespace tapegraph::io
