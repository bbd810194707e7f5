#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/error.hpp>
#include <tapegraph/eager/tensor.hpp>
#include <tapegraph/graph/program.hpp>
#include <tapegraph/model/columns.hpp>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapegraph::detail {

/// Copies output `index` of a program that has run into a new tensor on the program's device.
any_tensor output_copy(const ir::program& p, int index);

/// The results of one call of a program whose inputs are set. On the CPU large ones are allocated
/// before it runs, and its kernels write into them, because copying them out of the arena would be
/// another pass over memory.
class call_results {
public:
    explicit call_results(ir::program& p) : program_(&p) {
        if (p.device() != nullptr) return;
        const device_scope on(nullptr);
        p.bind();
        const int count = p.view().outputs.size();
        for (int k = 0; k < count; ++k) {
            const buffer_view& v = p.device_output(k);
            if (v.bytes() < worth_placing) continue;
            made_.resize(static_cast<std::size_t>(count));
            made_[static_cast<std::size_t>(k)] = any_tensor(v.type, shape(v.rank, v.extents));
        }
        for (std::size_t k = 0; k < made_.size(); ++k)
            if (made_[k].has_storage() && !p.place_output(static_cast<int>(k), made_[k].view().data)) made_[k] = {};
    }
    call_results(const call_results&) = delete;
    call_results& operator=(const call_results&) = delete;
    ~call_results() {
        if (!made_.empty()) program_->recall_outputs();
    }

    /// Takes result `index`, once, after the program has run.
    any_tensor take(int index);

private:
    // A smaller copy costs less than finding every kernel's operands again.
    static constexpr std::size_t worth_placing = std::size_t{1} << 15;

    ir::program* program_;
    std::vector<any_tensor> made_;
};

template <class Stage, std::size_t I>
using output_element = element_t<Stage::value.nodes[Stage::value.outputs[static_cast<int>(I)].node].type>;

/// A model's result of nodes with tensors in their place, which `fill` writes. Their element types
/// are those of Stage's outputs.
template <class Result, class Stage, class Fill>
auto result_tensors(const Fill& fill) {
    if constexpr (is_outputs<Result>) {
        return [&]<fixed_string... Names, class... Handles>(const outputs<named_output<Names, Handles>...>*) {
            any_tensor all[sizeof...(Handles)];
            fill(std::span<any_tensor>(all));
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
                return outputs{named_output<Names, tensor<output_element<Stage, I>>>{
                    tensor<output_element<Stage, I>>(std::move(all[I]))}...};
            }
            (std::index_sequence_for<Handles...>{});
        }
        (static_cast<const Result*>(nullptr));
    } else {
        any_tensor only;
        fill(std::span<any_tensor>(&only, 1));
        return tensor<output_element<Stage, 0>>(std::move(only));
    }
}

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION any_tensor output_copy(const ir::program& p, int index) {
    const device_scope on(p.device());
    const buffer_view& from = p.device_output(index);
    any_tensor result(from);
    if (p.device() == nullptr)
        std::memcpy(result.view_on(nullptr).data, from.data, from.bytes());
    else
        p.device()->copy(result.view().data, from.data, from.bytes());
    return result;
}

TG_DEFINITION any_tensor call_results::take(int index) {
    const auto k = static_cast<std::size_t>(index);
    if (made_.empty() || !made_[k].has_storage()) return output_copy(*program_, index);
    return std::move(made_[k]);
}

#endif

} // namespace tapegraph::detail
