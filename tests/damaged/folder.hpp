#pragma once

#include <damaged/target.hpp>

#include <support/temporary_folder.hpp>

/// Where a target has its files, for readers that take a path.
inline const support::temporary_folder& folder() {
    static const support::temporary_folder made;
    return made;
}
