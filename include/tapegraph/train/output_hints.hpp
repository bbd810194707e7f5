#pragma once

#include <tapegraph/core/component.hpp>
#include <tapegraph/core/environment.hpp>
#include <tapegraph/graph/lower.hpp>
#include <tapegraph/model/variables.hpp>
#include <tapegraph/train/measured.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

/// Warnings of `compile` about outputs to which their loss applies the same function again, for
/// example a softmax with a loss that applies softmax itself: such a model trains, but badly, and
/// nothing else reports it. Each is one line on stderr, once per process.

namespace tapegraph {
namespace detail {

/// The first thing that a loss or metric does with an output.
enum class output_use : std::uint8_t {
    elements,  ///< uses it unchanged
    sigmoid,   ///< takes logits
    softmax,   ///< takes logits of classes
    logarithm, ///< takes probabilities
    classes    ///< takes the largest
};
struct use_of_name {
    std::string_view name;
    output_use use;
    std::string_view other; ///< the counterpart for probabilities if this one takes logits, and vice versa
};
inline constexpr use_of_name uses_of_names[29]{
    {"sigmoid_cross_entropy", output_use::sigmoid, "binary_cross_entropy"},
    {"sigmoid_focal_cross_entropy", output_use::sigmoid, "binary_focal_cross_entropy"},
    {"softmax_cross_entropy", output_use::softmax, "categorical_cross_entropy"},
    {"softmax_focal_cross_entropy", output_use::softmax, "categorical_focal_cross_entropy"},
    {"sparse_softmax_cross_entropy", output_use::softmax, "sparse_categorical_cross_entropy"},
    {"ctc", output_use::softmax, ""},
    {"binary_cross_entropy", output_use::logarithm, "sigmoid_cross_entropy"},
    {"binary_focal_cross_entropy", output_use::logarithm, "sigmoid_focal_cross_entropy"},
    {"categorical_cross_entropy", output_use::logarithm, "softmax_cross_entropy"},
    {"categorical_focal_cross_entropy", output_use::logarithm, "softmax_focal_cross_entropy"},
    {"sparse_categorical_cross_entropy", output_use::logarithm, "sparse_softmax_cross_entropy"},
    {"kl_divergence", output_use::logarithm, ""},
    {"mean_squared_error", output_use::elements, ""},
    {"mean_absolute_error", output_use::elements, ""},
    {"mean_absolute_percentage_error", output_use::elements, ""},
    {"mean_squared_logarithmic_error", output_use::elements, ""},
    {"huber", output_use::elements, ""},
    {"log_cosh", output_use::elements, ""},
    {"pinball", output_use::elements, ""},
    {"poisson", output_use::elements, ""},
    {"cosine_similarity", output_use::elements, ""},
    {"hinge", output_use::elements, ""},
    {"squared_hinge", output_use::elements, ""},
    {"categorical_hinge", output_use::elements, ""},
    {"dice", output_use::elements, ""},
    {"tversky", output_use::elements, ""},
    {"triplet_semi_hard", output_use::elements, ""},
    {"triplet_hard", output_use::elements, ""},
    {"categorical_accuracy", output_use::classes, ""},
};

/// The known use of a loss or metric by its name; null if unknown.
const use_of_name* use_of(std::string_view name);

/// The name of a loss, or of the one wrapped in it, for example in `smoothed`.
template <class Loss>
constexpr std::string_view name_in_hints() {
    if constexpr (requires(const Loss& whole) { whole.loss; })
        return name_in_hints<std::remove_cvref_t<decltype(Loss::loss)>>();
    else if constexpr (requires { std::string_view(Loss::name); })
        return Loss::name;
    else
        return {};
}

/// A loss or metric, and the name of its output, which is empty for the only one.
struct hinted_part {
    std::string_view output, name;
};
template <class Loss>
struct hinted_parts {
    static constexpr std::array<hinted_part, 1> all{{{{}, name_in_hints<Loss>()}}};
};
template <fixed_string... Names, class... Losses>
struct hinted_parts<losses<part_on<Names, Losses>...>> {
    static constexpr std::array<hinted_part, sizeof...(Losses)> all{{{Names.view(), name_in_hints<Losses>()}...}};
};
template <class Loss, class... Metrics>
struct hinted_parts<measured<Loss, Metrics...>> {
    static constexpr auto all = [] {
        constexpr auto& of_loss = hinted_parts<Loss>::all;
        std::array<hinted_part, of_loss.size() + sizeof...(Metrics)> parts{};
        std::size_t k = 0;
        for (const hinted_part& each : of_loss) parts[k++] = each;
        ((parts[k++] = {metric_part<Metrics>::output, name_in_hints<typename metric_part<Metrics>::type>()}), ...);
        return parts;
    }();
};

inline std::atomic<bool>& hints_setting() {
    static std::atomic<bool> on{environment_flag("TAPEGRAPH_HINTS", true)};
    return on;
}

/// Prints a line on stderr if this process has not printed it yet.
void print_hint_once(const std::string& text);

/// The node that computed a value, looking through casts and reshapes.
int origin_of(const ir::program_view& v, int node);

/// Describes the problem of an output with its loss; empty where there is none.
std::string hint_of(const ir::model_view& v, const ir::output_entry& output, const use_of_name& by);

void hint_of_outputs(const ir::model_view& v, const hinted_part* parts, std::size_t count);

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION void print_hint_once(const std::string& text) {
    static std::mutex one_at_a_time;
    static std::vector<std::string> printed_hints;
    const std::lock_guard lock(one_at_a_time);
    for (const std::string& each : printed_hints)
        if (each == text) return;
    printed_hints.push_back(text);
    std::fprintf(stderr, "tapegraph: hint: %s (TAPEGRAPH_HINTS=0: no hints)\n", text.c_str());
}

TG_DEFINITION int origin_of(const ir::program_view& v, int node) {
    while (v.nodes[node].op->name == "cast" || v.nodes[node].op->name == "reshape")
        node = v.arguments[v.nodes[node].first_argument];
    return node;
}

TG_DEFINITION std::string hint_of(const ir::model_view& v, const ir::output_entry& output, const use_of_name& by) {
    using enum output_use;
    const ir::entry& whole = v.nodes[output.node];
    const bool single = whole.rank > 0 && v.pool[whole.dims + whole.rank - 1] == 1;
    const std::string called = output.name == "output" ? "the output" : "output '" + std::string(output.name) + "'";
    const std::string who(by.name), other(by.other);
    if (single && (by.use == softmax || by.use == classes))
        return called + " has one class, of which " + who + (by.use == classes ? " is always 1" : " is always 0") +
               ": give as many outputs as there are classes, or " +
               (by.use == classes ? "use binary_accuracy" : "train with sigmoid_cross_entropy");
    const int node = origin_of(v, output.node);
    const std::string_view made_by = v.nodes[node].op->name;
    const bool probability = made_by == "sigmoid" || made_by == "softmax";
    const bool logits = by.use == sigmoid || by.use == softmax;
    if (!(logits && probability) && !(by.use == logarithm && made_by == "log_softmax")) return {};
    const int given = origin_of(v, v.arguments[v.nodes[node].first_argument]);
    std::string layer;
    for (const ir::layer_entry& each : v.layers)
        if (origin_of(v, each.node) == given) layer = path_of(v.scopes, each.scope);
    std::string text = called + " is " + std::string(made_by);
    if (!layer.empty()) text += " of layer '" + layer + "'";
    text += ", and " + who + (logits ? " takes logits: it applies " : " takes probabilities: it applies ");
    text += by.use == sigmoid ? "sigmoid" : by.use == softmax ? "softmax" : "the logarithm";
    text += " itself. Return what " + std::string(made_by) + " is given";
    if (logits) return other.empty() ? text : text + ", or train with " + other;
    return text + (other.empty() ? ", through softmax" : " and train with " + other);
}

TG_DEFINITION void hint_of_outputs(const ir::model_view& v, const hinted_part* parts, std::size_t count) {
    if (!hints_setting().load(std::memory_order_relaxed)) return;
    for (std::size_t k = 0; k < count; ++k) {
        const use_of_name* const by = use_of(parts[k].name);
        if (by == nullptr || by->use == output_use::elements) continue;
        for (const ir::output_entry& output : v.outputs)
            if (parts[k].output.empty() || parts[k].output == output.name)
                if (const std::string text = hint_of(v, output, *by); !text.empty()) print_hint_once(text);
    }
}

#endif

} // namespace detail

/// Whether `compile` prints hints on stderr about likely mistakes in valid models. On by default;
/// TAPEGRAPH_HINTS=0 in the environment turns it off from the start.
inline void show_hints(bool on) { detail::hints_setting().store(on, std::memory_order_relaxed); }

#if TG_DEFINES_FOR_HOST(nn)

TG_DEFINITION const detail::use_of_name* detail::use_of(std::string_view name) {
    if (name == "sparse_categorical_accuracy") name = "categorical_accuracy";
    for (const use_of_name& each : uses_of_names)
        if (each.name == name) return &each;
    return nullptr;
}

#endif

} // namespace tapegraph
