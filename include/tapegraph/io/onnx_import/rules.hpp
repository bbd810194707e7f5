#pragma once

#include <tapegraph/io/onnx_import/extents.hpp>
#include <tapegraph/io/onnx_import/rule_own.hpp>
#include <tapegraph/io/onnx_import/rules_attention.hpp>
#include <tapegraph/io/onnx_import/rules_control.hpp>
#include <tapegraph/io/onnx_import/rules_creation.hpp>
#include <tapegraph/io/onnx_import/rules_elementwise.hpp>
#include <tapegraph/io/onnx_import/rules_indexing.hpp>
#include <tapegraph/io/onnx_import/rules_movement.hpp>
#include <tapegraph/io/onnx_import/rules_normalization.hpp>
#include <tapegraph/io/onnx_import/rules_quantize.hpp>
#include <tapegraph/io/onnx_import/rules_recurrent.hpp>
#include <tapegraph/io/onnx_import/rules_reduction.hpp>
#include <tapegraph/io/onnx_import/rules_resize.hpp>
#include <tapegraph/io/onnx_import/rules_sampling.hpp>
#include <tapegraph/io/onnx_import/rules_windows.hpp>

#include <span>
#include <string_view>

/// The table of all rules.

namespace tapegraph::io::onnx_import {

inline rule_function rule_of(std::string_view type) {
    for (const auto table :
         {&rules::elementwise, &rules::movement, &rules::reductions, &rules::indexing, &rules::windows,
          &rules::normalizations, &rules::resizings, &rules::quantised, &rules::recurrences, &rules::attentions,
          &rules::control, &rules::samplings, &rules::creations})
        for (const operator_rule& rule : table())
            if (rule.type == type) return rule.apply;
    return nullptr;
}

inline rule_function rule_of_own_operators() { return &rules::own_rule; }

} // namespace tapegraph::io::onnx_import
