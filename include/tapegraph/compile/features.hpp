#pragma once

#include <tapegraph/compile/model_verdict.hpp>
#include <tapegraph/core/fixed_string.hpp>
#include <tapegraph/model/columns.hpp>
#include <tapegraph/model/eager_scope.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

/// A model of another model's intermediate values. Not part of tapegraph.hpp.
///
///     auto codes = tg::compile<tg::graph>(tg::features<"encoder/out">(network{}), spec, {.shared = &model.variables()});
///     const auto code = codes.predict(x);

namespace tapegraph {

namespace ir::detail {

/// Removes all that a trace has recorded after a node.
constexpr void cut_after(model_trace& t, int last) {
    const auto drop = [&](auto& entries, const auto& node_of) {
        int kept = 0;
        for (int i = 0; i < entries.size(); ++i)
            if (node_of(entries[i]) <= last) entries[kept++] = entries[i];
        entries.resize(kept);
    };
    const auto by_node = [](const auto& entry) { return entry.node; };
    int variables = t.variables.size();
    while (variables > 0 && t.variables[variables - 1].node > last) --variables;
    for (scope_members& s : t.members)
        while (s.last_variable > variables) s.last_variable = t.definitions[s.last_variable - 1].previous;
    t.variables.resize(variables);
    t.definitions.resize(variables);
    const auto of_variable = [&](const auto& rule) { return rule.variable < variables ? 0 : last + 1; };
    drop(t.regularizers, of_variable);
    drop(t.constraints, of_variable);
    drop(t.inputs, by_node);
    for (variable_entry& v : t.variables)
        if (v.frozen_input > t.inputs.size()) v.frozen_input = 0;
    drop(t.assignments, by_node);
    drop(t.row_uses, by_node);
    drop(t.minimizations, by_node);
    drop(t.layers, by_node);
    drop(t.named, by_node);
    drop(t.results, by_node);
    drop(t.added_losses, [](int node) { return node; });
    t.flows = {-1, -1, {}};
    t.many_flows = {};
    if (last + 1 < t.nodes.size()) t.arguments.resize(t.nodes[last + 1].first_argument); // nodes store theirs in order
    t.nodes.resize(last + 1);
}

/// The node with a path, relative to a scope, among the results from `first` on; -1 where there is
/// none.
constexpr int result_with(const graph_scope& scope, std::string_view path, int first) {
    model_trace& t = scope.owner();
    const std::size_t slash = path.rfind('/');
    const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
    const int whole = (scope / path).index();
    const int above = slash == path.npos ? scope.index() : (scope / path.substr(0, slash)).index();
    int at = -1;
    for (int i = first; i < t.results.size(); ++i) {
        const result_entry& r = t.results[i];
        const bool matches = r.name.empty() ? r.scope == whole : r.scope == above && r.name == name;
        if (matches && (at < 0 || r.first <= at)) at = i; // the first one, or an enclosing layer
    }
    return at < 0 ? -1 : t.results[at].node;
}

} // namespace ir::detail

namespace detail {

/// Selects the output of a model whose element type the features have: the first floating one, or
/// the first.
template <class Is>
constexpr int typical_output(int count, const Is& floating) {
    int at = 0;
    while (at < count && !floating(at)) ++at;
    return at < count ? at : 0;
}

template <fixed_string... Paths, class Each>
constexpr auto picked(const Each& each) {
    if constexpr (sizeof...(Paths) == 1)
        return each(0);
    else
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return outputs{named_output<Paths, decltype(each(0))>{each(I)}...};
        }
    (std::make_index_sequence<sizeof...(Paths)>{});
}

/// While it lives, an evaluation is searched.
class searching {
public:
    searching(eager_context& context, feature_search& search) : context_(context), open_(context.open_layers.size()) {
        search.outer = context.search;
        context.search = &search;
    }
    searching(const searching&) = delete;
    searching& operator=(const searching&) = delete;
    ~searching() {
        context_.search = context_.search->outer;
        context_.open_layers.resize(open_);
    }

private:
    eager_context& context_;
    std::size_t open_;
};

/// Runs `model` until everything has been found, and no further.
template <class Run>
void find_features(eager_context& context, feature_search& search, const Run& model) {
    search.missing = search.paths.size();
    search.found.resize(search.paths.size());
    try {
        const searching now(context, search);
        model();
    } catch (const features_found& e) {
        if (e.which != &search) throw;
        return;
    }
    for (std::size_t k = 0; k < search.paths.size(); ++k) {
        if (search.found[k].has_storage()) continue;
        std::string text = "features: the model has no layer and no named value '" + search.paths[k] + "', there are";
        for (const std::string& path : search.seen)
            text.append(&path == search.seen.data() ? " '" : ", '").append(path).append("'");
        throw argument_error(text);
    }
}

/// `Source::get()` returns the model.
template <class Source, fixed_string... Paths>
struct feature_model {
    template <class Scope, class... X>
    constexpr auto operator()(const Scope& scope, const X&... x) const {
        if constexpr (std::is_base_of_v<graph_scope, Scope>)
            return in_trace(scope, x...);
        else
            return in_eager_mode(scope, x...);
    }

private:
    static constexpr std::size_t count = sizeof...(Paths);
    static constexpr std::string_view paths[count]{Paths.view()...};

    template <class... X>
    static constexpr auto in_trace(const graph_scope& scope, const X&... x) {
        ir::model_trace& t = scope.owner();
        const int first = t.results.size();
        const auto y = sealed_result(Source::get()(scope, x...));
        using pack = output_pack<std::remove_const_t<decltype(y)>>;
        const graph_node typical = [&]<std::size_t... I>(std::index_sequence<I...>) {
            const graph_node all[]{pack::template get<I>(y)...};
            return all[typical_output(pack::count, [&](int k) { return is_floating(all[k].type()); })];
        }
        (std::make_index_sequence<pack::count>{});
        int found[count]{}, last = 0;
        for (std::size_t k = 0; k < count; ++k) {
            found[k] = ir::detail::result_with(scope, paths[k], first);
            const bool known = found[k] >= 0;
            if (known && t.nodes[found[k]].type == typical.type()) {
                last = found[k] > last ? found[k] : last;
                continue;
            }
            if (t.error.what == nullptr) t.error.operation = paths[k];
            t.scope = scope.index();
            t.fail(known ? "features: it is of another element type than the model's output"
                         : "features: the model has no layer and no named value of this path");
            found[k] = typical.id();
        }
        if (t.error.what == nullptr) ir::detail::cut_after(t, last);
        return picked<Paths...>([&](std::size_t k) { return graph_node(&t, found[k]); });
    }

    template <class... X>
    static auto in_eager_mode(const eager_scope& scope, const X&... x) {
        using result = decltype(sealed_result(Source::get()(scope, x...)));
        using pack = output_pack<result>;
        constexpr int typical = []<std::size_t... I>(std::index_sequence<I...>) {
            const dtype types[]{dtype_of<typename pack::template type<I>::element_type>...};
            return typical_output(pack::count, [&](int k) { return is_floating(types[k]); });
        }
        (std::make_index_sequence<pack::count>{});
        using type = tensor<typename pack::template type<typical>::element_type>;
        feature_search search;
        for (const std::string_view path : paths) search.paths.push_back(scope.path_of(path));
        find_features(scope.context(), search, [&] { static_cast<void>(Source::get()(scope, x...)); });
        return picked<Paths...>([&](std::size_t k) { return type(search.found[k]); });
    }
};

} // namespace detail

/// A model that returns the results of another's layers, by their paths, or of its scope.named("h",
/// value): a tensor, or for several paths `outputs` of these names. A layer that is called more
/// than once gives its first call. The part of the model after the last of them is left out,
/// variables included. All have the element type of the model's first floating output.
///
/// The model is an empty structure, or a constant: `features<network{.layers = 5}, "block/2">()`.
/// An unknown path is an error that names it.
template <fixed_string... Paths, class Model>
constexpr auto features(const Model&) {
    static_assert(sizeof...(Paths) > 0, "features: of which layers? features<\"encoder/out\">(model{})");
    static_assert(std::is_empty_v<Model>,
                  "this model has data members: tg::features<your_model{.layers = 5}, \"path\">()");
    return detail::feature_model<detail::model_type<Model>, Paths...>{};
}
template <auto Model, fixed_string... Paths>
constexpr auto features() {
    return detail::feature_model<detail::model_constant<Model>, Paths...>{};
}

} // namespace tapegraph
