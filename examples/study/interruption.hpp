#pragma once

namespace study {

/// From now on SIGINT (Ctrl-C) and SIGTERM are only noted and end nothing, so that the measurements
/// so far can be reported.
void note_interruptions();
/// Whether such a signal has arrived.
bool interrupted();

} // namespace study
