#pragma once

namespace study {

/// From now on SIGINT (Ctrl-C) and SIGTERM end nothing by themselves, but are noted, so that what is measured can be reported.
void note_interruptions();
/// Whether one has come.
bool interrupted();

} // namespace study
