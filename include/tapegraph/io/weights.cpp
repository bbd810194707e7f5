// The functions of io/weights.hpp, for programs that are compiled with TG_WEIGHTS_COMPILED. Weak, because a program may have a source
// that is compiled without.
#undef TG_WEIGHTS_COMPILED
#define TG_WEIGHTS_DEFINITION [[gnu::weak]]
#include <tapegraph/io/weights.hpp>
