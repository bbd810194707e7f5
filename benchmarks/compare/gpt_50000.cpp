#define COMPARE_VOCABULARY 50000
#include "gpt.cpp"
