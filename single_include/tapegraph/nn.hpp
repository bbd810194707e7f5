// SPDX-License-Identifier: MIT
#pragma once
#include "all.hpp" // which has this
