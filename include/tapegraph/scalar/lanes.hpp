#pragma once

#include <tapegraph/scalar/tape.hpp>

#include <cstddef>
#include <vector>

namespace tapegraph {

/// N adjoints of every number at once, for N results: one sweep reads the tape once for all of them. N is 2, 4 or 8.
/// The memory counts toward no tape's limit.
template <class T, int N>
class adjoint_lanes {
    static_assert(std::is_floating_point_v<T>, "adjoint_lanes: lanes are of float or double");
    static_assert(N == 2 || N == 4 || N == 8, "adjoint_lanes: 2, 4 or 8 lanes");

public:
    explicit adjoint_lanes(real_tape<T>& tape) : tape_(&tape) { clear(); }

    /// All adjoints of all lanes are 0 again; needed after anything was recorded.
    void clear() { adjoints_.assign(tape_->statements() + 1, scalars::adjoint_pack<T, N>{}); }
    /// Lane `lane` is to be the derivatives of y, times `amount`.
    void add(const real<T>& y, int lane, const T& amount = T(1)) {
        tape_->require_own(y, "adjoint_lanes::add");
        if (y.place.at >= adjoints_.size()) scalars::refuse_lanes();
        if (y.place.at != 0) adjoints_[y.place.at].value[lane] += amount;
    }
    /// One backward sweep for all lanes.
    void sweep() {
        if (adjoints_.size() != tape_->statements() + 1) scalars::refuse_lanes();
        tape_->sweep(adjoints_.data(), {});
    }
    /// The derivative by x in a lane. Throws argument_error if x is not on this tape.
    T operator()(const real<T>& x, int lane) const {
        tape_->require_own(x, "adjoint_lanes");
        if (x.place.at == 0) scalars::refuse_constant("adjoint_lanes");
        if (x.place.at >= adjoints_.size()) scalars::refuse_lanes();
        return adjoints_[x.place.at].value[lane];
    }

private:
    real_tape<T>* tape_;
    std::vector<scalars::adjoint_pack<T, N>> adjoints_;
};

} // namespace tapegraph
