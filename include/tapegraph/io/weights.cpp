// The functions of io/weights.hpp, for programs that are compiled with TG_WEIGHTS_COMPILED.
#undef TG_WEIGHTS_COMPILED
#define TG_WEIGHTS_INSTANCE template
#include <tapegraph/io/weights.hpp>
