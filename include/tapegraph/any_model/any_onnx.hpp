#pragma once

#include <tapegraph/any_model/hidden_model.hpp>
#include <tapegraph/io/load_onnx.hpp>
#include <tapegraph/train/predict_set.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A model of an ONNX file, which predicts, as an any_model.

namespace tapegraph::detail {

class hidden_onnx final : public model_over_base {
public:
    explicit hidden_onnx(io::onnx_model net) : net_(std::move(net)) {
        for (const io::onnx_value& each : net_.inputs()) {
            if (!each.ranked)
                throw argument_error("any_model: the file does not give the number of axes of its input '" + each.name +
                                     "'; call the onnx_model itself");
            signature_.inputs.push_back({each.name, each.type, each.extents});
        }
        for (const io::onnx_value& each : net_.outputs())
            signature_.outputs.push_back({each.name, each.type, each.extents});
        for (const tensor_signature& each : signature_.inputs)
            columns_.push_back({signature_.inputs.size() == 1 ? std::string_view() : each.name, each.type,
                                static_cast<int>(each.shape.size()), each.shape.data(),
                                [] { return std::string("another shape in the file"); }});
    }

    std::string_view mode() const override { return "onnx"; }
    bool trains() const override { return false; }
    const model_signature& signature() const override { return signature_; }
    model_base& base() override { return net_.base(); }

    // An any_model calls none of these for a model that only predicts.
    history fit(const data::dataset&, const fit_options&, const callback_hooks*, int) override { return {}; }
    measured_result evaluate(const data::dataset&, std::int64_t) override { return {}; }
    step_result evaluate_batch(std::span<const any_tensor>) override { return {}; }
    step_result train_on_batch(std::span<const any_tensor>) override { return {}; }
    gradient_list gradients(std::span<const any_tensor>) override { return {}; }

    std::vector<any_tensor> predict(std::span<const any_tensor> inputs) const override { return net_.predict(inputs); }
    std::vector<any_tensor> predict(const data::dataset& set, std::int64_t batch_size) const override {
        mode_calls calls;
        calls.inputs = columns_;
        return predict_set(
            calls, set, batch_size,
            [](const void* self, std::span<const any_tensor> x) {
                return static_cast<const hidden_onnx*>(self)->net_.predict(x);
            },
            this);
    }
    std::int64_t parameter_count(bool trainable) const override {
        std::int64_t count = 0;
        for (const variable& v : net_.variables()) count += trainable && !v.trainable() ? 0 : v.size();
        return count;
    }
    /// What goes in and comes out, and how many parameters there are: a file has no layers.
    std::string summary() const override {
        return text_of(signature_.inputs, "input", "inputs") + "\n" + text_of(signature_.outputs, "output", "outputs") +
               "\n" + std::to_string(parameter_count(false)) + " parameters in " +
               std::to_string(net_.variables().size()) + " variables\n";
    }
    std::vector<named_value> metrics() const override { return {}; }
    void reset_metrics() override {}
    std::size_t arena_bytes() const override { return 0; }

private:
    optimizer_number changeable_number() override { return {}; }

    io::onnx_model net_;
    model_signature signature_;
    std::vector<input_spec> columns_;
};

} // namespace tapegraph::detail

namespace tapegraph::io {

/// Hides a model of a file: `any_model model = tg::io::any_onnx("m.onnx")`. It predicts; for
/// training compile the onnx_model with tg::traced. Throws as onnx_model's constructor does, and
/// argument_error for a file that does not give the number of axes of an input.
inline any_model any_onnx(onnx_model net) {
    return any_model(std::make_unique<tapegraph::detail::hidden_onnx>(std::move(net)));
}
inline any_model any_onnx(const files::path& file) { return any_onnx(load_onnx(file)); }

} // namespace tapegraph::io
