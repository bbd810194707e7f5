#include <fuzz/rows.hpp>

/// Views and layouts.

namespace tapegraph::fuzz {

namespace {

// The elements whose position in x `from` gives; the reference of what moves elements.
template <class From>
array moved(const array& x, const extents& dims, const From& from) {
    array y(dims);
    for (std::int64_t i = 0; i < y.size(); ++i) y[i] = x.at(from(testing::unravel(i, dims)));
    return y;
}

operation transpose_row() {
    return one_operand<double>(
        "transpose",
        [](const auto& x, const attributes& with) {
            std::vector<int> order(with.whole.begin(), with.whole.end());
            return with_list(order, [&](std::initializer_list<int> list) { return transpose(x, list); });
        },
        [](choices& random, const extents& x, attributes& with) {
            for (std::int64_t i = 0; i < rank_of(x); ++i) with.whole.insert(with.whole.begin() + random.whole(0, i), i);
            return rank_of(x) > 1;
        },
        [](const attributes& with) { return "transpose($, " + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            extents dims;
            for (const std::int64_t axis : with.whole) dims.push_back(x.dims[static_cast<std::size_t>(axis)]);
            return moved(x, dims, [&](const extents& at) {
                extents from(at.size());
                for (std::size_t i = 0; i < at.size(); ++i) from[static_cast<std::size_t>(with.whole[i])] = at[i];
                return from;
            });
        });
}

operation reshape_row() {
    operation row = one_operand<double>(
        "reshape", [](const auto& x, const attributes& with) { return reshape(x, shape_of_words(with.whole)); },
        [](choices& random, const extents& x, attributes& with) {
            // Primes of the count, dealt to a few axes.
            std::int64_t count = testing::count_of(x);
            const std::int64_t rank = random.whole(0, 4);
            if (count == 0) {
                with.whole = {random.whole(0, 3), 0};
                return true;
            }
            with.whole.assign(static_cast<std::size_t>(rank), 1);
            for (std::int64_t p = 2; count > 1; ++p)
                for (; count % p == 0; count /= p) {
                    if (rank == 0) return false;
                    with.whole[static_cast<std::size_t>(random.whole(0, rank - 1))] *= p;
                }
            if (rank > 0 && random.chance(0.4)) with.whole[static_cast<std::size_t>(random.whole(0, rank - 1))] = -1;
            return true;
        },
        [](const attributes& with) { return "reshape($, " + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            extents dims = with.whole;
            std::int64_t rest = 1;
            for (const std::int64_t d : dims) rest *= d < 0 ? 1 : d;
            for (std::int64_t& d : dims)
                if (d < 0) d = rest == 0 ? 0 : x.size() / rest;
            return array(dims, x.values);
        });
    return row;
}

operation slice_row() {
    return one_operand<double>(
        "slice",
        [](const auto& x, const attributes& with) {
            std::vector<range> ranges;
            for (std::size_t i = 0; i + 2 < with.whole.size(); i += 3)
                ranges.push_back({with.whole[i], with.whole[i + 1], with.whole[i + 2]});
            return with_list(ranges, [&](std::initializer_list<range> list) { return slice(x, list); });
        },
        [](choices& random, const extents& x, attributes& with) {
            for (const std::int64_t extent : x) {
                const std::int64_t begin = random.whole(-extent, extent), end = random.whole(-extent, extent + 1);
                const std::int64_t step = random.pick(std::vector<std::int64_t>{1, 1, 2, 3, -1, -2});
                if (random.chance(0.5))
                    with.whole.insert(with.whole.end(), {all.begin, all.end, all.step});
                else
                    with.whole.insert(with.whole.end(), {begin, end, step});
            }
            return !x.empty();
        },
        [](const attributes& with) {
            std::string text;
            for (std::size_t i = 0; i + 2 < with.whole.size(); i += 3) {
                const bool whole = with.whole[i] == all.begin && with.whole[i + 1] == all.end && with.whole[i + 2] == 1;
                text += std::string(text.empty() ? "" : ", ") +
                        (whole ? "tg::all" : braces({with.whole[i], with.whole[i + 1], with.whole[i + 2]}));
            }
            return "slice($, {" + text + "})";
        });
}

operation pad_row() {
    return one_operand<double>(
        "pad",
        [](const auto& x, const attributes& with) {
            std::vector<padding_amount> amounts;
            for (std::size_t i = 0; i + 1 < with.whole.size(); i += 2)
                amounts.push_back({with.whole[i], with.whole[i + 1]});
            return with_list(amounts, [&](std::initializer_list<padding_amount> list) { return pad(x, list); });
        },
        [](choices& random, const extents& x, attributes& with) {
            for (std::size_t i = 0; i < x.size(); ++i)
                with.whole.insert(with.whole.end(), {random.whole(0, 2), random.whole(0, 2)});
            return !x.empty();
        },
        [](const attributes& with) {
            std::string text;
            for (std::size_t i = 0; i + 1 < with.whole.size(); i += 2)
                text += (text.empty() ? "" : ", ") + braces({with.whole[i], with.whole[i + 1]});
            return "pad($, {" + text + "})";
        },
        [](const array& x, const attributes& with) {
            extents dims = x.dims;
            for (std::size_t i = 0; i < dims.size(); ++i) dims[i] += with.whole[2 * i] + with.whole[2 * i + 1];
            array y(dims);
            for (std::int64_t i = 0; i < x.size(); ++i) {
                extents at = testing::unravel(i, x.dims);
                for (std::size_t k = 0; k < at.size(); ++k) at[k] += with.whole[2 * k];
                y.at(at) = x[i];
            }
            return y;
        });
}

operation pad_value_row() {
    operation row = pad_row();
    const auto plain = make_operation<double>("pad_value", [](const auto& x, const attributes& with) {
        std::vector<padding_amount> amounts;
        for (std::size_t i = 0; i + 1 < with.whole.size(); i += 2)
            amounts.push_back({with.whole[i], with.whole[i + 1]});
        return with_list(
            amounts, [&](std::initializer_list<padding_amount> list) { return pad(x, list, {.value = with.real[0]}); });
    });
    row.name = plain.name;
    row.eager = plain.eager, row.graph = plain.graph, row.mapped = plain.mapped;
    row.draw = [draw = row.draw](choices& random, const std::vector<extents>& x, attributes& with) {
        with.real = {random.pick(std::vector<double>{1, -1.5, 2})};
        return draw(random, x, with);
    };
    row.source = [source = row.source](const std::vector<std::string>& x, const attributes& with) {
        std::string text = source(x, with);
        text.back() = ',';
        return text + " {.value = " + number_text(with.real[0]) + "})";
    };
    row.reference = [zeros = row.reference](const std::vector<array>& x, const attributes& with) {
        array y = zeros(x, with);
        const array inside =
            zeros({array(x[0].dims, std::vector<real>(static_cast<std::size_t>(x[0].size()), 1))}, with);
        for (std::int64_t i = 0; i < y.size(); ++i)
            if (inside[i] == 0) y[i] = static_cast<real>(with.real[0]);
        return y;
    };
    return row;
}

operation broadcast_row() {
    return one_operand<double>(
        "broadcast_to",
        [](const auto& x, const attributes& with) { return broadcast_to(x, shape_of_words(with.whole)); },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = x;
            for (std::int64_t& d : with.whole)
                if (d == 1 && random.chance(0.6)) d = random.whole(0, 4);
            for (std::int64_t extra = random.whole(0, 2); extra > 0 && with.whole.size() < 5; --extra)
                with.whole.insert(with.whole.begin(), random.whole(1, 3));
            return true;
        },
        [](const attributes& with) { return "broadcast_to($, " + braces(with.whole) + ")"; },
        [](const array& x, const attributes& with) {
            return testing::map({x, array(with.whole)}, [](const real* v) { return v[0]; });
        });
}

template <class F>
operation cumulative(const char* name, F f, bool product) {
    operation row = make_operation<double>(name, f);
    if (product) row.domains = {{-2.5, 2.5}};
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (!draw_axis(random, x[0], with)) return false;
        with.whole.insert(with.whole.end(), {random.chance(0.5), random.chance(0.5)});
        return true;
    };
    row.source = [name](const std::vector<std::string>& x, const attributes& with) {
        const auto flag = [&](std::size_t i) { return std::string(with.whole[i] != 0 ? "true" : "false"); };
        return std::string(name) + "(" + x[0] + ", " + text_of(with.whole[0]) + ", {.reverse = " + flag(1) +
               ", .exclusive = " + flag(2) + "})";
    };
    row.reference = [product](const std::vector<array>& operands, const attributes& with) {
        const array& x = operands[0];
        array y(x.dims, product ? 1 : 0);
        const auto axis = static_cast<std::size_t>(with.whole[0]);
        for (std::int64_t i = 0; i < x.size(); ++i) {
            extents at = testing::unravel(i, x.dims);
            const std::int64_t own = at[axis];
            for (std::int64_t j = 0; j < x.dims[axis]; ++j) {
                at[axis] = j;
                const bool before = with.whole[1] != 0 ? j > own : j < own;
                if (!before && (j != own || with.whole[2] != 0)) continue;
                y[i] = product ? y[i] * x.at(at) : y[i] + x.at(at);
            }
        }
        return y;
    };
    return row;
}

cumulative_options running(const attributes& with) {
    return {.reverse = with.whole[1] != 0, .exclusive = with.whole[2] != 0};
}

operation concat_row() {
    operation row = make_operation<double, double>("concat", [](const auto& x, const auto& y, const attributes& with) {
        return concat(x, y, static_cast<int>(with.whole[0]));
    });
    row.partner = [](choices& random, std::size_t, const std::vector<extents>& before, extents& dims) {
        dims = before[0];
        if (dims.empty()) return false;
        dims[static_cast<std::size_t>(random.whole(0, rank_of(dims) - 1))] = random.whole(0, 3);
        return true;
    };
    row.draw = [](choices& random, const std::vector<extents>& x, attributes& with) {
        if (x[0].size() != x[1].size() || x[0].empty()) return false;
        std::vector<std::int64_t> differing;
        for (std::int64_t i = 0; i < rank_of(x[0]); ++i)
            if (x[0][static_cast<std::size_t>(i)] != x[1][static_cast<std::size_t>(i)]) differing.push_back(i);
        if (differing.size() > 1) return false;
        with.whole = differing.empty() ? extents{random.whole(0, rank_of(x[0]) - 1)} : differing;
        return true;
    };
    row.source = [](const std::vector<std::string>& x, const attributes& with) {
        return "concat(" + x[0] + ", " + x[1] + ", " + text_of(with.whole[0]) + ")";
    };
    row.reference = [](const std::vector<array>& x, const attributes& with) {
        const auto axis = static_cast<std::size_t>(with.whole[0]);
        array y([&] {
            extents dims = x[0].dims;
            dims[axis] += x[1].dims[axis];
            return dims;
        }());
        for (std::int64_t i = 0; i < y.size(); ++i) {
            extents at = testing::unravel(i, y.dims);
            const bool second = at[axis] >= x[0].dims[axis];
            if (second) at[axis] -= x[0].dims[axis];
            y[i] = x[second ? 1 : 0].at(at);
        }
        return y;
    };
    return row;
}

} // namespace

std::vector<operation> movement_operations() {
    std::vector<operation> r{transpose_row(), reshape_row(),   slice_row(), pad_row(),
                             pad_value_row(), broadcast_row(), concat_row()};
    r[0].weight = 2;
    r.push_back(cumulative(
        "cumulative_sum",
        [](const auto& x, const attributes& with) {
            return cumulative_sum(x, static_cast<int>(with.whole[0]), running(with));
        },
        false));
    r.push_back(cumulative(
        "cumulative_product",
        [](const auto& x, const attributes& with) {
            return cumulative_product(x, static_cast<int>(with.whole[0]), running(with));
        },
        true));
    r.push_back(one_operand<double>(
        "flatten", [](const auto& x, const attributes&) { return flatten(x); },
        [](choices&, const extents&, attributes&) { return true; },
        [](const attributes&) { return std::string("flatten($)"); }));
    r.push_back(one_operand<double>(
        "expand_dims",
        [](const auto& x, const attributes& with) { return expand_dims(x, static_cast<int>(with.whole[0])); },
        [](choices& random, const extents& x, attributes& with) {
            with.whole = {random.whole(-rank_of(x) - 1, rank_of(x))};
            return x.size() < 5;
        },
        [](const attributes& with) { return "expand_dims($, " + text_of(with.whole[0]) + ")"; }));
    r.push_back(one_operand<double>(
        "squeeze", [](const auto& x, const attributes& with) { return squeeze(x, static_cast<int>(with.whole[0])); },
        [](choices& random, const extents& x, attributes& with) {
            for (int attempt = 0; attempt < 8; ++attempt)
                if (draw_axis(random, x, with) && x[static_cast<std::size_t>(with.whole[0])] == 1) return true;
            return false;
        },
        [](const attributes& with) { return "squeeze($, " + text_of(with.whole[0]) + ")"; }));
    r.push_back(one_operand<double>(
        "swap_axes",
        [](const auto& x, const attributes& with) {
            return swap_axes(x, static_cast<int>(with.whole[0]), static_cast<int>(with.whole[1]));
        },
        [](choices& random, const extents& x, attributes& with) {
            if (!draw_axis(random, x, with)) return false;
            with.whole.push_back(random.whole(-rank_of(x), -1));
            return true;
        },
        [](const attributes& with) {
            return "swap_axes($, " + text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
        }));
    r.push_back(one_operand<double>(
        "move_axis",
        [](const auto& x, const attributes& with) {
            return move_axis(x, static_cast<int>(with.whole[0]), static_cast<int>(with.whole[1]));
        },
        [](choices& random, const extents& x, attributes& with) {
            if (!draw_axis(random, x, with)) return false;
            with.whole.push_back(random.whole(-rank_of(x), -1));
            return true;
        },
        [](const attributes& with) {
            return "move_axis($, " + text_of(with.whole[0]) + ", " + text_of(with.whole[1]) + ")";
        }));
    r.push_back(one_operand<double>(
        "ravel", [](const auto& x, const attributes&) { return ravel(x); },
        [](choices&, const extents&, attributes&) { return true; },
        [](const attributes&) { return std::string("ravel($)"); },
        [](const array& x, const attributes&) { return array({x.size()}, x.values); }));
    return r;
}

} // namespace tapegraph::fuzz
