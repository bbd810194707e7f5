#pragma once

#include <tapegraph/core/fixed_string.hpp>

/// Types that carry error messages: they are never defined, and their template arguments are the
/// facts shown. Using one is the error. The umbrella headers include this file first, because g++
/// prints the include path from the user's file to it.

namespace tapegraph {

/// Shown when the parts of a model do not fit: what, where, the operands, the scope.
template <fixed_string... Facts>
struct ill_formed_model;

/// Shown when a model, a loss or a function cannot be traced, or is given an argument it cannot
/// take: what to do.
template <fixed_string... Advice>
struct cannot_be_compiled;

/// Shown when a call's options in braces do not match the structure named: one is misspelt, has
/// another type, or is out of the structure's order.
/// A constructor has no result to name it by: there it is the default of a template parameter of `C(...) = delete`.
template <class Options>
struct no_such_option_in;

/// Stands for the other arguments of a call whose options are wrong. Overloads that compute
/// something match better than this.
struct any_argument {
    template <class T>
    constexpr any_argument(const T&) {} // NOLINT: matches anything
};

/// The result of a function that cannot be called: it converts to any type, so that no further
/// errors follow.
struct refused_value {
    template <class T>
    constexpr operator T() const { // NOLINT
        return static_cast<T (*)()>(nullptr)();
    }
};

} // namespace tapegraph

/// Follows the declaration of an overload that exists to be named in an error. Options in braces
/// that match nothing else reach `...`; g++ then lists no other function, and clang the return type
/// of such an overload.
#ifdef __clang__
#define TG_MISTAKE
#else
#define TG_MISTAKE = delete
#endif

/// Precedes the declaration of a function that must not be called, but has a body: calling it is an error
/// with this text, and the only one, because the call can still be evaluated. (clang prints it twice
/// where a template is called by its name.) nvcc has none of these functions.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define TG_REFUSED(text) __attribute__((unavailable(text)))
#endif

/// The same for a function that the compiler never evaluates.
#if defined(__clang__)
#define TG_REFUSED_CALL(text)                                                                                          \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wgcc-compat\"")                              \
        __attribute__((diagnose_if(true, text, "error"))) _Pragma("clang diagnostic pop")
#elif defined(TG_REFUSED)
#define TG_REFUSED_CALL(text) TG_REFUSED(text)
#endif

/// Follows the declaration of an overload for arguments that are a mistake: calling it is an error with this text.
#ifdef TG_REFUSED_CALL
#define TG_REFUSES(text) TG_REFUSED_CALL(text)
#else
#define TG_REFUSES(text) = delete
#endif
