#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

/// Checks that all objects of a program were compiled with the same choices. A header whose
/// functions depend on a macro declares
///
///     TG_OBJECTS_AGREE(TG_INSTRUCTION_SETS, 7)    // the choice, and its value in this object
///
/// and objects with different values are refused; otherwise the linker would silently keep one
/// definition of each function.
///
/// - The linker checks within one program: "multiple definition of
///   tapegraph_objects_differ_in_TG_INSTRUCTION_SETS". The symbol is a strong alias of an `inline` variable, of
///   which the linker keeps one and whose name contains the value. So equal objects share one definition, and
///   different ones have two.
/// - A check before main compares a program with its shared libraries, because that is when their functions are
///   merged: it prints both values and aborts. A library with hidden symbols keeps its own functions and is not
///   checked.

namespace tapegraph::detail {
/// `first` is the value of the object that the dynamic linker found first.
inline bool objects_agree(const char* choice, const char* own, const char* first) {
    if (std::strcmp(own, first) == 0) return true;
    std::fprintf(
        stderr,
        "tapegraph: this program and a shared library were compiled with %s = %s and = %s; compile both alike, "
        "or the library with -fvisibility=hidden\n",
        choice, first, own);
    std::abort();
}
} // namespace tapegraph::detail

#if defined(__ELF__) && !defined(TG_MODULE)
#define TG_OBJECTS_AGREE_LINKED(symbol, variable)                                                                      \
    extern "C" {                                                                                                       \
    [[gnu::used]] inline const char variable = 0;                                                                      \
    extern const char symbol __attribute__((alias(#variable)));                                                        \
    }
#else // no aliases, or a module, which mangles these names: only the check before main remains
#define TG_OBJECTS_AGREE_LINKED(symbol, variable)
#endif

#define TG_OBJECTS_AGREE_CHECKED(choice, name, variable, own)                                                          \
    namespace tapegraph::detail {                                                                                      \
    inline const char* volatile name = own; /* volatile: of several in a process one is read, maybe not this one */    \
    inline const bool agrees_that_##variable = objects_agree(choice, own, name);                                       \
    }

#define TG_OBJECTS_AGREE_NAMED(choice, symbol, name, variable, value)                                                  \
    TG_OBJECTS_AGREE_LINKED(symbol, variable##value)                                                                   \
    TG_OBJECTS_AGREE_CHECKED(choice, name, variable##value, #value)
#define TG_OBJECTS_AGREE(choice, value)                                                                                \
    TG_OBJECTS_AGREE_NAMED(#choice, tapegraph_objects_differ_in_##choice, first_##choice, tapegraph_##choice##_is_,    \
                           value)
