#pragma once

#include <tapegraph/io/onnx_import/extents.hpp>
#include <tapegraph/io/onnx_import/rule_own.hpp>
#include <tapegraph/io/onnx_import/rules_attention.hpp>
#include <tapegraph/io/onnx_import/rules_bits.hpp>
#include <tapegraph/io/onnx_import/rules_control.hpp>
#include <tapegraph/io/onnx_import/rules_counted.hpp>
#include <tapegraph/io/onnx_import/rules_creation.hpp>
#include <tapegraph/io/onnx_import/rules_elementwise.hpp>
#include <tapegraph/io/onnx_import/rules_geometry.hpp>
#include <tapegraph/io/onnx_import/rules_indexing.hpp>
#include <tapegraph/io/onnx_import/rules_microsoft.hpp>
#include <tapegraph/io/onnx_import/rules_ml.hpp>
#include <tapegraph/io/onnx_import/rules_movement.hpp>
#include <tapegraph/io/onnx_import/rules_normalization.hpp>
#include <tapegraph/io/onnx_import/rules_quantize.hpp>
#include <tapegraph/io/onnx_import/rules_random.hpp>
#include <tapegraph/io/onnx_import/rules_recurrent.hpp>
#include <tapegraph/io/onnx_import/rules_reduction.hpp>
#include <tapegraph/io/onnx_import/rules_resize.hpp>
#include <tapegraph/io/onnx_import/rules_sampling.hpp>
#include <tapegraph/io/onnx_import/rules_sequences.hpp>
#include <tapegraph/io/onnx_import/rules_states.hpp>
#include <tapegraph/io/onnx_import/rules_windows.hpp>

#include <algorithm>
#include <span>
#include <string_view>

/// The table of all rules.

namespace tapegraph::io::onnx_import {

namespace rules {
inline rule_function find_in(std::span<const operator_rule> table, std::string_view type) {
    for (const operator_rule& rule : table)
        if (rule.type == type) return rule.apply;
    return nullptr;
}
} // namespace rules

inline rule_function rule_of(std::string_view domain, std::string_view type) {
    if (domain == own_operators::domain) return &rules::own_rule;
    if (domain == "ai.onnx.ml") return rules::find_in(rules::ml(), type);
    if (domain == "ai.onnx.preview") return rules::find_in(rules::previews(), type);
    if (domain == "com.microsoft") {
        for (const auto table : {&rules::microsoft, &rules::microsoft_quantised, &rules::microsoft_attentions})
            if (const rule_function found = rules::find_in(table(), type)) return found;
        const auto& same = rules::as_in_the_standard;
        if (std::find(same.begin(), same.end(), type) == same.end()) return nullptr;
    } else if (!domain.empty()) {
        return nullptr;
    }
    for (const auto table :
         {&rules::elementwise, &rules::bits, &rules::movement, &rules::reductions, &rules::indexing, &rules::windows,
          &rules::normalizations, &rules::resizings, &rules::quantised, &rules::recurrences, &rules::attentions,
          &rules::control, &rules::samplings, &rules::creations, &rules::geometries, &rules::states, &rules::counted,
          &rules::sequences, &rules::randoms})
        if (const rule_function found = rules::find_in(table(), type)) return found;
    return nullptr;
}

} // namespace tapegraph::io::onnx_import
