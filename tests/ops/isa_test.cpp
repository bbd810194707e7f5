/// This program is compiled for the processor's best instruction set alone.
#include <cpu/isa_test.cpp>
