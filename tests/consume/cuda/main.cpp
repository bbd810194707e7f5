int run_on_device(); // on_device.cpp

int main() { return run_on_device(); }
