// A transformer trained statement by statement.
#include "transformer.hpp"

int main() { return train<tg::eager>(); }
