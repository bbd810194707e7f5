// A transformer trained by a compiled step.
#include "transformer.hpp"

int main() { return train<tg::graph>(); }
