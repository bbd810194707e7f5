// SPDX-License-Identifier: MIT
#pragma once
#include "tapegraph.hpp" // which has this
