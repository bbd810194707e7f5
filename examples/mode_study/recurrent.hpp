#pragma once

#include "training.hpp"

#include "../models/recurrent_medium.hpp"
#include "../models/recurrent_small.hpp"

namespace mode_study {

template <class Mode>
measurement run_recurrent(const cell& c, const options& o, const series& data) {
    // These models end in a dense layer over all steps, so their length is part of the type.
    using records = tg::spec<float, tg::dyn, 400, 16>;
    if (c.model == "recurrent_small") return run<Mode, records>(models::recurrent_small{}, c, o, data);
    return run<Mode, records>(models::recurrent_medium<>{}, c, o, data);
}

} // namespace mode_study
