#include <fuzz/shrink.hpp>

#include <tapegraph/core/error.hpp>

#include <algorithm>

namespace tapegraph::fuzz {

namespace {

instruction& at(program& p, int i) { return p.code[static_cast<std::size_t>(i)]; }

/// Without the instructions no output needs.
program without_dead(const program& p) {
    std::vector<char> needed(p.code.size(), 0);
    for (const int output : p.outputs) needed[static_cast<std::size_t>(output)] = 1;
    for (std::size_t i = p.code.size(); i-- > 0;)
        if (needed[i] != 0)
            for (const int operand : p.code[i].operands) needed[static_cast<std::size_t>(operand)] = 1;
    program smaller;
    std::vector<int> moved(p.code.size(), -1);
    for (std::size_t i = 0; i < p.code.size(); ++i) {
        if (needed[i] == 0) continue;
        instruction c = p.code[i];
        for (int& operand : c.operands) operand = moved[static_cast<std::size_t>(operand)];
        moved[i] = smaller.size();
        smaller.code.push_back(c);
    }
    for (const int output : p.outputs) smaller.outputs.push_back(moved[static_cast<std::size_t>(output)]);
    return smaller;
}

/// Everything that used value `from` uses `to`, an earlier one.
program redirected(program p, int from, int to) {
    for (instruction& c : p.code) std::replace(c.operands.begin(), c.operands.end(), from, to);
    std::replace(p.outputs.begin(), p.outputs.end(), from, to);
    at(p, to).inner = false;
    std::sort(p.outputs.begin(), p.outputs.end());
    p.outputs.erase(std::unique(p.outputs.begin(), p.outputs.end()), p.outputs.end());
    return without_dead(p);
}

/// A leaf with the value's type and extents in its place.
program replaced_by_leaf(program p, int i) {
    instruction& c = at(p, i);
    attributes with{{i + 1}, {}};
    if (c.type == dtype::i32) with.whole.push_back(1);
    with.whole.insert(with.whole.end(), c.dims.begin(), c.dims.end());
    if (c.type == dtype::f64) with.real = {0.5, 1.5};
    c = {c.type == dtype::i32 ? "indices" : c.type == dtype::boolean ? "conditions" : "input",
         {},
         with,
         false,
         c.type,
         c.dims};
    return without_dead(p);
}

class shrinker {
public:
    shrinker(const program& p, const std::function<bool(program&)>& fails, int attempts)
        : best_(p), fails_(fails), left_(attempts) {}

    program run() {
        if (!take(without_dead(best_))) // what fails is not needed by any output: it becomes one
            for (int i = 0; i < best_.size(); ++i) {
                program cut = best_;
                cut.outputs = {i};
                at(cut, i).inner = false;
                if (take(without_dead(cut))) break;
            }
        while (left_ > 0 && (fewer_outputs() || fewer_instructions() || plainer())) {}
        return best_;
    }

private:
    bool take(program candidate) {
        if (left_-- <= 0) return false;
        try {
            if (!fails_(candidate)) return false;
        } catch (const error&) {
            return false;
        }
        best_ = std::move(candidate);
        return true;
    }

    bool fewer_outputs() {
        for (std::size_t k = 0; best_.outputs.size() > 1 && k < best_.outputs.size(); ++k) {
            program smaller = best_;
            smaller.outputs = {best_.outputs[k]};
            if (take(without_dead(smaller))) return true;
        }
        for (std::size_t k = 0; best_.outputs.size() > 1 && k < best_.outputs.size(); ++k) {
            program smaller = best_;
            smaller.outputs.erase(smaller.outputs.begin() + static_cast<std::ptrdiff_t>(k));
            if (take(without_dead(smaller))) return true;
        }
        return false;
    }

    bool fewer_instructions() {
        for (int i = best_.size() - 1; i >= 0; --i) {
            const instruction c = at(best_, i);
            // By an operand: this instruction is taken out.
            for (const int operand : c.operands)
                if (at(best_, operand).type == c.type && take(redirected(best_, i, operand))) return true;
            // Output an operand instead: everything after it goes.
            for (const int operand : c.operands) {
                program cut = best_;
                cut.outputs = {operand};
                at(cut, operand).inner = false;
                if (take(without_dead(cut))) return true;
            }
            if (!c.leaf() && take(replaced_by_leaf(best_, i))) return true;
            // By any earlier value alike.
            for (int earlier = 0; earlier < i; ++earlier)
                if (at(best_, earlier).type == c.type && at(best_, earlier).dims == c.dims &&
                    take(redirected(best_, i, earlier)))
                    return true;
        }
        return false;
    }

    bool plainer() {
        for (int i = 0; i < best_.size(); ++i) {
            if (at(best_, i).inner) {
                program sealed = best_;
                at(sealed, i).inner = false;
                if (take(sealed)) return true;
            }
        }
        return lower_extents() || plainer_attributes();
    }

    // Where extents stand among a leaf's attributes.
    static std::size_t first_extent(const instruction& c) { return c.op == "indices" ? 2 : 1; }
    static bool has_extents(const instruction& c) { return c.leaf() && c.op != "constant"; }

    bool lower_extents() {
        std::vector<std::int64_t> extents;
        for (const instruction& c : best_.code)
            if (has_extents(c))
                extents.insert(extents.end(), c.with.whole.begin() + static_cast<std::ptrdiff_t>(first_extent(c)),
                               c.with.whole.end());
        std::sort(extents.rbegin(), extents.rend());
        extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
        // An extent everywhere it stands at once: operands keep fitting together.
        for (const std::int64_t extent : extents)
            for (const std::int64_t lower : {std::int64_t{1}, std::int64_t{2}, extent / 2, extent - 1}) {
                if (lower < 1 || lower >= extent) continue;
                program smaller = best_;
                for (instruction& c : smaller.code)
                    for (std::size_t k = first_extent(c); has_extents(c) && k < c.with.whole.size(); ++k)
                        if (c.with.whole[k] == extent) c.with.whole[k] = lower;
                if (take(smaller)) return true;
            }
        for (int i = 0; i < best_.size(); ++i) {
            if (!has_extents(at(best_, i))) continue;
            const instruction leaf = at(best_, i); // `best_` may be given another program while we look
            for (std::size_t k = first_extent(leaf); k < leaf.with.whole.size(); ++k) {
                program smaller = best_;
                at(smaller, i).with.whole.erase(at(smaller, i).with.whole.begin() + static_cast<std::ptrdiff_t>(k));
                if (take(smaller)) return true;
                for (const std::int64_t lower : {std::int64_t{1}, leaf.with.whole[k] - 1}) {
                    if (lower < 1 || lower >= leaf.with.whole[k]) continue;
                    smaller = best_;
                    at(smaller, i).with.whole[k] = lower;
                    if (take(smaller)) return true;
                }
            }
        }
        return false;
    }

    bool plainer_attributes() {
        for (int i = 0; i < best_.size(); ++i) {
            const instruction c = at(best_, i);
            for (std::size_t k = 0; !c.leaf() && k < c.with.whole.size(); ++k)
                for (const std::int64_t simple : {std::int64_t{0}, std::int64_t{1}, c.with.whole[k] / 2}) {
                    if (std::abs(simple) >= std::abs(c.with.whole[k])) continue;
                    program smaller = best_;
                    at(smaller, i).with.whole[k] = simple;
                    if (take(smaller)) return true;
                }
            for (std::size_t k = 0; !c.leaf() && k < c.with.real.size(); ++k) {
                if (c.with.real[k] == 1 || c.with.real[k] == 2) continue;
                program smaller = best_;
                at(smaller, i).with.real[k] = 2;
                if (take(smaller)) return true;
            }
        }
        return false;
    }

    program best_;
    const std::function<bool(program&)>& fails_;
    int left_;
};

} // namespace

program shrink(const program& p, const std::function<bool(program&)>& fails, int attempts) {
    return shrinker(p, fails, attempts).run();
}

} // namespace tapegraph::fuzz
