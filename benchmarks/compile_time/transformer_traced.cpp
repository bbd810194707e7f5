// Deep: 24 blocks in a loop that runs when the program does.
#include <tapegraph/traced.hpp>

#include "transformer.hpp"

int main() { return train<tg::traced, 24>(); }
