// ../main.cpp twice in one program: this object takes kernels and loops of training from the component, the other compiled them.
#define main linked_with_the_component
#include "../main.cpp"
#undef main

int headers_alone();

int main() { return linked_with_the_component() + headers_alone(); }
