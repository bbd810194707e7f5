#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>

/// Choices that all objects of a program must have made alike. A header whose functions differ with a macro says
///
///     TG_OBJECTS_AGREE(TG_INSTRUCTION_SETS, 7)    // the choice, and what this object was compiled with
///
/// and objects with different values are refused: otherwise the linker would keep either definition of each function.
///
/// - Within one program by the linker: "multiple definition of tapegraph_objects_differ_in_TG_INSTRUCTION_SETS". The symbol is
///   not weak, but an alias of a variable that the linker keeps one of (it is `inline`), whose name has the value in it. So
///   equal objects share one definition, and different ones have two.
/// - Between a program and a shared library by a check before main, for that is when their functions become one: it prints
///   both values and aborts. A library whose symbols are hidden keeps its own functions and is not asked.

namespace tapegraph::detail {
/// `first` is what the object that the dynamic linker found first was compiled with.
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
#else // no aliases, or a module, whose names are not these: the check before main has to do
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
