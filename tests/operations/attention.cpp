#include <operations/builders.hpp>

/// Attention. whole: causal, causal_offset and causal_at_end of attention_options; real: scale.

namespace tapegraph::testing {

namespace attentions {

attention_options options_from(const attributes& with) {
    return {.scale = with.real[0],
            .causal = with.whole[0] != 0,
            .causal_offset = with.whole[1],
            .causal_at_end = with.whole[2] != 0};
}

/// Element (batch, head, query, key) of a mask, which broadcasts.
real bias_at(const array& mask, const extents& at) {
    extents own(at.end() - rank_of(mask.dims), at.end());
    for (std::size_t i = 0; i < own.size(); ++i)
        if (mask.dims[i] == 1) own[i] = 0;
    return mask.at(own);
}

array reference(const std::vector<array>& x, const attributes& with) {
    const array &q = x[0], &k = x[1], &v = x[2];
    const std::int64_t batch = q.dims[0], time = q.dims[1], heads = q.dims[2], depth = q.dims[3], steps = k.dims[1],
                       width = v.dims[3], shared = k.dims[2] > 0 ? heads / k.dims[2] : 1;
    const real scale = with.real[0] != 0 ? static_cast<real>(with.real[0]) : 1 / std::sqrt(static_cast<real>(depth));
    const std::int64_t last = with.whole[1] + (with.whole[2] != 0 ? steps - time : 0);
    array y({batch, time, heads, width});
    for (std::int64_t i = 0; i < batch * time * heads; ++i) {
        const std::int64_t b = i / (time * heads), t = i / heads % time, h = i % heads, g = h / shared;
        std::vector<real> weights(static_cast<std::size_t>(steps), 0);
        const auto each_seen = [&](const auto& f) {
            for (std::int64_t s = 0; s < steps; ++s)
                if (with.whole[0] == 0 || s <= t + last)
                    if (x.size() < 4 || bias_at(x[3], {b, h, t, s}) != -static_cast<real>(inf))
                        f(s, weights[static_cast<std::size_t>(s)]);
        };
        real largest = -static_cast<real>(inf), total = 0;
        each_seen([&](std::int64_t s, real& w) {
            for (std::int64_t d = 0; d < depth; ++d) w += q.at({b, t, h, d}) * k.at({b, s, g, d}) * scale;
            if (x.size() > 3) w += bias_at(x[3], {b, h, t, s});
            largest = std::max(largest, w);
        });
        each_seen([&](std::int64_t, real& w) { total += w = std::exp(w - largest); });
        each_seen([&](std::int64_t s, real& w) {
            for (std::int64_t c = 0; c < width; ++c) y[i * width + c] += w / total * v.at({b, s, g, c});
        });
    }
    return y;
}

row of(bool causal, std::int64_t offset, bool ends, double scale, shape_list shapes) {
    return {.with = {{causal, offset, ends}, {scale}},
            .shapes = std::move(shapes),
            .domains = {{-1, 1}, {-1, 1}, {-1, 1}},
            .ulps = 32,
            .floor = 1,
            .why = "sums of products, and exponentials of them"};
}
row masked(bool causal, shape_list shapes) {
    row made = of(causal, 0, false, 0, std::move(shapes));
    made.domains.push_back({-1, 1});
    return made;
}

std::string source_of(const std::vector<std::string>& x, const attributes& with) {
    std::string text = "attention(";
    for (const std::string& operand : x) text += operand + ", ";
    return text + "tg::attention_options{" + number_text(with.real[0]) + ", " + flag_text(with.whole[0]) + ", " +
           text_of(with.whole[1]) + ", " + flag_text(with.whole[2]) + "})";
}
operation finished(operation made) {
    made.weight = 0; // random programs have what it is made of
    made.reference = reference;
    made.source = source_of;
    return made;
}

} // namespace attentions

std::vector<operation> attention_operations() {
    using namespace attentions;
    return {finished(make_operation<floating, floating, floating>(
                "attention",
                [](const auto& q, const auto& k, const auto& v, const attributes& with) {
                    return attention(q, k, v, options_from(with));
                },
                {of(false, 0, false, 0,
                    {{{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 3}},
                     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
                     {{1, 3, 6, 2}, {1, 4, 2, 2}, {1, 4, 2, 5}},
                     {{1, 67, 1, 3}, {1, 131, 1, 3}, {1, 131, 1, 2}},
                     {{0, 3, 2, 4}, {0, 5, 2, 4}, {0, 5, 2, 3}},
                     {{2, 0, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 3}},
                     {{2, 3, 2, 4}, {2, 0, 2, 4}, {2, 0, 2, 3}},
                     {{1, 2, 2, 17}, {1, 3, 1, 17}, {1, 3, 1, 33}}}),
                 of(true, 0, false, 0.5,
                    {{{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 3}},
                     {{1, 70, 1, 2}, {1, 9, 1, 2}, {1, 9, 1, 2}},
                     {{1, 66, 2, 2}, {1, 66, 1, 2}, {1, 66, 1, 3}}}),
                 of(true, 1, true, 0, {{{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 3}}}),
                 of(true, -2, false, -1, {{{1, 5, 2, 2}, {1, 4, 1, 2}, {1, 4, 1, 3}}})})),
            finished(make_operation<floating, floating, floating, floating>(
                "attention with a mask",
                [](const auto& q, const auto& k, const auto& v, const auto& mask, const attributes& with) {
                    return attention(q, k, v, mask, options_from(with));
                },
                {masked(false, {{{2, 3, 2, 4}, {2, 5, 2, 4}, {2, 5, 2, 3}, {2, 2, 3, 5}},
                                {{2, 3, 4, 2}, {2, 5, 2, 2}, {2, 5, 2, 3}, {4, 1, 5}},
                                {{2, 3, 4, 2}, {2, 5, 2, 2}, {2, 5, 2, 3}, {2, 1, 1, 5}},
                                {{1, 3, 1, 2}, {1, 5, 1, 2}, {1, 5, 1, 3}, {3, 1}},
                                {{1, 3, 1, 2}, {1, 5, 1, 2}, {1, 5, 1, 3}, {}},
                                {{1, 65, 1, 2}, {1, 130, 1, 2}, {1, 130, 1, 2}, {65, 130}}}),
                 masked(true, {{{2, 3, 4, 2}, {2, 5, 2, 2}, {2, 5, 2, 3}, {2, 1, 3, 5}}})}))};
}

} // namespace tapegraph::testing
