// A convolutional network trained by a compiled step.
#include "cnn.hpp"

int main() { return train<tg::graph>(); }
