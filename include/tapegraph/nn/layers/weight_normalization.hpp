#pragma once

#include <tapegraph/model/initializer.hpp>
#include <tapegraph/ops/reduction/norm.hpp>

/// Weight normalization (Salimans and Kingma 2016). Not part of tapegraph.hpp: programs without it do not compile it.

namespace tapegraph {

/// A scope whose kernels are parametrized by direction and length. A layer's request for
/// "...kernel" [..., outputs] gives gain v / |v|, with the norm over all axes but the last. Its
/// variables are v, which has the kernel's name, and "..._gain" [outputs], initially ones; a v of
/// zeros gives zeros. So every layer can be normalized:
///
///     h = tg::dense(tg::weight_normalized(scope / "hidden"), h, {.units = 64});
///
/// Regularizers and constraints of the kernel apply to v. (PyTorch starts with gain = |v|: assign
/// it.)
template <class Scope>
class weight_normalized_scope : public Scope {
public:
    constexpr explicit weight_normalized_scope(const Scope& scope) : Scope(scope) {}

    /// The scope of a name below this one, whose kernels are normalized, too.
    template <class Name>
    constexpr weight_normalized_scope operator/(const Name& name) const {
        return weight_normalized_scope(static_cast<const Scope&>(*this) / name);
    }

    /// The scope in which a variable that exists is returned.
    constexpr weight_normalized_scope reuse() const { return weight_normalized_scope(Scope::reuse()); }

    /// The variable; a kernel as g v / |v|, of which v and g are the variables.
    template <handle H>
    constexpr H variable_like(const H& like, std::string_view name, const shape& dims,
                              const variable_options& options = {}) const {
        const H v = Scope::variable_like(like, name, dims, options);
        if (!name.ends_with("kernel") || dims.rank() < 2) return v;
        const H gain = Scope::variable_like(like, gain_name(name), {dims[dims.rank() - 1].value},
                                            {.initializer = init::ones{}, .trainable = options.trainable});
        const std::int64_t before = (std::int64_t{1} << (dims.rank() - 1)) - 1;
        const H direction = detail::unit_vectors(v, before, 0, std::source_location::current());
        return eval(gain * direction);
    }

private:
    // A trace keeps the name, so it must be one of these literals.
    static constexpr std::string_view gain_name(std::string_view name) {
        return name == "kernel"             ? "kernel_gain"
               : name == "recurrent_kernel" ? "recurrent_kernel_gain"
               : name == "depthwise_kernel" ? "depthwise_kernel_gain"
               : name == "pointwise_kernel" ? "pointwise_kernel_gain"
                                            : "gain";
    }
};

/// The scope in which layers have normalized kernels: `tg::dense(tg::weight_normalized(scope / "hidden"), x, ...)`.
template <class Scope>
constexpr auto weight_normalized(const Scope& scope) {
    return weight_normalized_scope<Scope>(scope);
}

} // namespace tapegraph
