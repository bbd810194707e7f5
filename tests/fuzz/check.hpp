#pragma once

#include <fuzz/evaluate.hpp>

#include <cstdint>

/// What is checked of a random program.
///
///   value         every instruction against plain loops in long double, where the operation has them
///   trace         the unoptimised trace, node by node: the bits of eager mode, values and gradients;
///                 second derivatives close to those of nested tapes; the same of tangents
///   formulas      the same with inner instructions inside the formulas that use them: equal values, gradients up to
///                 the order in which they are added
///   verifier      what the library's verifier says after each pass and of the schedule
///   passes        after all passes, scheduled, planned and run kernel by kernel: the bits of the trace it came from
///   unfused       the same with one kernel per node
///   library       the same as the library runs graphs that are made at run time, its interpreter of fused kernels among it
///   symbolic      the same with a symbolic batch
///   vmap          every instruction of batches against the same instruction example by example
///   forward       tangents against gradients, products of the Hessian by forward over reverse, reverse over forward and
///                 forward over forward mode against reverse over reverse mode
///   differences   the gradient and the tangents, and the derivative of the gradient, against finite differences along a
///                 random direction
///   error         an exception

namespace tapegraph::fuzz {

struct finding {
    std::string what; ///< one of the words above; empty: nothing was found
    std::string text;

    bool ok() const { return what.empty(); }
};

struct check_options {
    bool second = true; ///< second derivatives, too: trace against nested tapes, and passes against the trace
    bool twice = true;  ///< and the tangent of a tangent
    bool mapped = true; ///< under vmap
    /// Runs after the last pass: how tests break a pass.
    void (*after_passes)(ir::trace& t) = nullptr;
};

struct statistics {
    std::int64_t programs = 0, instructions = 0, nodes = 0, steps = 0;
    std::int64_t differences = 0, kinks = 0; ///< finite differences taken, and left out because a kink is near
    std::int64_t second_differences = 0, second_kinks = 0; ///< of the gradient
    std::int64_t epilogues = 0;         ///< convolutions that took a bias, and perhaps relu, into their kernel
    std::int64_t product_epilogues = 0; ///< matrix products that did
    std::int64_t symbolic = 0;          ///< programs whose batch could be a symbol
    std::int64_t tangents = 0;          ///< programs whose tangents were compared with their gradients
    std::int64_t mapped = 0;            ///< instructions run under vmap
};

/// Checks one program; types and extents are written into it. Throws unsuitable where it does not apply.
finding check(program& p, statistics& counts, const check_options& options = {});

/// The same for leaves of these values instead of drawn ones: modes, traces, passes, forward mode and vmap, not what the values
/// are. Domains are not looked at.
finding check_modes(program& p, const std::vector<any_tensor>& leaves, statistics& counts,
                    const check_options& options = {});

} // namespace tapegraph::fuzz
