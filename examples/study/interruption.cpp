#include "interruption.hpp"

#include <csignal>

namespace study {

namespace {
volatile std::sig_atomic_t seen = 0;
extern "C" void note_interruption(int) { seen = 1; }
} // namespace

void note_interruptions() {
    struct sigaction action {};
    action.sa_handler = note_interruption; // without SA_RESTART, so that waiting for a child is interrupted
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() { return seen != 0; }

} // namespace study
