#pragma once

#include <tapegraph/core/fixed_string.hpp>

/// What a mistake looks like: a type that is never defined, whose arguments are the facts. Using it is the error. The umbrella headers
/// include this one first, because g++ prints the way from the user's file to it.

namespace tapegraph {

/// Shown when a model does not fit together: what, where, the operands, the scope.
template <fixed_string... Facts>
struct ill_formed_model;

/// Shown when a model, a loss or a function cannot be traced at all, or is given what it cannot take: what to do.
template <fixed_string... Advice>
struct cannot_be_compiled;

/// Shown when a call's options in braces are not those of the structure named: one is misspelt, has another type, or comes before another
/// that the structure has first.
template <class Options>
struct no_such_option_in;

/// The other arguments of a call whose options are wrong. Whatever fits a function that computes fits it better than this.
struct any_argument {
    template <class T>
    constexpr any_argument(const T&) {} // NOLINT: anything is one
};

/// What a function returns that cannot be called: it becomes whatever is made of it, so that nothing more is said.
struct refused_value {
    template <class T>
    constexpr operator T() const { // NOLINT
        return static_cast<T (*)()>(nullptr)();
    }
};

} // namespace tapegraph

/// Behind the declaration of an overload that is there to be named in an error. Options in braces that fit nothing else reach
/// `...`: that g++ tells of no other function, and clang of what such an overload would return.
#ifdef __clang__
#define TG_MISTAKE
#else
#define TG_MISTAKE = delete
#endif

/// Before the declaration of a function that nobody should call, and that has a body: calling it is an error with this text, and the only
/// one, because what calls it can be evaluated. nvcc has none of these functions.
#if defined(__clang__)
#define TG_REFUSED(text)                                                                                               \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"")                              \
        __attribute__((diagnose_if(true, text, "error"))) _Pragma("clang diagnostic pop")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define TG_REFUSED(text) __attribute__((unavailable(text)))
#endif

/// Behind the declaration of an overload for arguments that are a mistake: calling it is an error with this text.
#ifdef TG_REFUSED
#define TG_REFUSES(text) TG_REFUSED(text)
#else
#define TG_REFUSES(text) = delete
#endif
