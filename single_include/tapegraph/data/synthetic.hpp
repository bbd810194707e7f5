// SPDX-License-Identifier: MIT
#pragma once
#include "../data.hpp" // which has this
