// A convolutional network trained statement by statement.
#include "cnn.hpp"

int main() { return train<tg::eager>(); }
