#define TG_DEFINES_OPERATIONS_OF_TESTS
#include <support/compiled_operations.hpp>
