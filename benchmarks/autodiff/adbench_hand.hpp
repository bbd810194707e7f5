#pragma once

#include "adbench_problems.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

/// ADBench's hand tracking: vertices that follow the bones of a hand, compared with points.

namespace adbench {

/// A rotation and a translation: the first three rows of a matrix of 4 x 4.
template <class R>
using affine = std::array<R, 12>;

template <class A, class B>
auto composed(const affine<A>& a, const affine<B>& b) {
    using R = std::conditional_t<std::is_same_v<A, double>, B, A>;
    affine<R> c;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
            R sum = a[i * 4] * b[j] + a[i * 4 + 1] * b[4 + j] + a[i * 4 + 2] * b[8 + j];
            if (j == 3) sum += a[i * 4 + 3];
            c[i * 4 + j] = sum;
        }
    return c;
}

/// A skeleton, and vertices that its bones carry. Bones are the wrist, four for each of five fingers, and more that do
/// not bend; a parent comes before its children.
struct hand_model {
    struct bone {
        int parent;                       ///< -1: none
        affine<double> relative, inverse; ///< to the parent, and from the hand's coordinates, at rest
    };
    struct influence {
        std::size_t bone;
        double weight;
    };
    struct vertex {
        std::array<double, 3> position;
        std::vector<influence> bones;
    };
    std::vector<bone> bones;
    std::vector<vertex> vertices;
    std::vector<std::array<std::size_t, 3>> triangles;
};

/// The numbers are theta [26]: the hand's rotation [3] and translation [3], and for each finger the angles of its second
/// bone about x and z and those of its third and fourth about x. The results are points minus vertices, [count, 3].
struct hand {
    static constexpr std::size_t angles = 26, fingers = 5;
    hand_model model;
    std::vector<std::size_t> correspondences; ///< vertices, or triangles where `u` is given
    std::vector<double> points;               ///< [count, 3]

    template <class R>
    numbers<R> operator()(const numbers<R>& theta) const {
        const frame<R> at(*this, theta);
        numbers<R> errors(points.size());
        for (std::size_t i = 0; i < correspondences.size(); ++i) {
            const std::array<R, 3> place = at.place(correspondences[i]);
            for (std::size_t j = 0; j < 3; ++j) errors[i * 3 + j] = points[i * 3 + j] - place[j];
        }
        return errors;
    }
    /// The same for points within triangles, at u_0 a + u_1 b + (1 - u_0 - u_1) c; u [count, 2] are numbers, too.
    template <class R>
    numbers<R> operator()(const numbers<R>& theta, const numbers<R>& u) const {
        const frame<R> at(*this, theta);
        numbers<R> errors(points.size());
        for (std::size_t i = 0; i < correspondences.size(); ++i) {
            const auto& corners = model.triangles[correspondences[i]];
            const std::array<R, 3> a = at.place(corners[0]), b = at.place(corners[1]), c = at.place(corners[2]);
            const R &s = u[2 * i], &t = u[2 * i + 1];
            for (std::size_t j = 0; j < 3; ++j)
                errors[i * 3 + j] = points[i * 3 + j] - (s * a[j] + t * b[j] + (1 - s - t) * c[j]);
        }
        return errors;
    }

private:
    /// All bones at a pose.
    template <class R>
    struct frame {
        const hand_model& model;
        affine<R> whole;
        numbers<affine<R>> bones;

        frame(const hand& h, const numbers<R>& theta)
            : model(h.model), whole(rotation(theta)), bones(model.bones.size()) {
            for (std::size_t b = 0; b < bones.size(); ++b) {
                const affine<R> own = bent(model.bones[b].relative, b, theta);
                const int parent = model.bones[b].parent;
                bones[b] = parent < 0 ? own : composed(bones[static_cast<std::size_t>(parent)], own);
            }
            for (std::size_t b = 0; b < bones.size(); ++b) bones[b] = composed(bones[b], model.bones[b].inverse);
        }
        std::array<R, 3> place(std::size_t index) const {
            const hand_model::vertex& v = model.vertices[index];
            const auto& x = v.position;
            R sum[3]{R(0), R(0), R(0)};
            for (const auto& [bone, weight] : v.bones) {
                const affine<R>& m = bones[bone];
                for (std::size_t j = 0; j < 3; ++j)
                    sum[j] += weight * (m[j * 4] * x[0] + m[j * 4 + 1] * x[1] + m[j * 4 + 2] * x[2] + m[j * 4 + 3]);
            }
            std::array<R, 3> result;
            for (std::size_t j = 0; j < 3; ++j)
                result[j] =
                    whole[j * 4] * sum[0] + whole[j * 4 + 1] * sum[1] + whole[j * 4 + 2] * sum[2] + whole[j * 4 + 3];
            return result;
        }
    };

    /// By the angle |theta_0..2| about their axis; the translation is theta_3..5.
    template <class R>
    static affine<R> rotation(const numbers<R>& theta) {
        using std::cos, std::sin, std::sqrt;
        const R angle = sqrt(theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2]);
        if (angle < 1e-4) return {R(1), R(0), R(0), theta[3], R(0), R(1), R(0), theta[4], R(0), R(0), R(1), theta[5]};
        const R x = theta[0] / angle, y = theta[1] / angle, z = theta[2] / angle, s = sin(angle), c = cos(angle),
                d = 1 - c;
        return {x * x + (1 - x * x) * c, x * y * d - z * s,       x * z * d + y * s,       theta[3],
                x * y * d + z * s,       y * y + (1 - y * y) * c, y * z * d - x * s,       theta[4],
                x * z * d - y * s,       y * z * d + x * s,       z * z + (1 - z * z) * c, theta[5]};
    }
    /// `at rest` times the rotation of a finger's bone about z and, before it, x.
    template <class R>
    static affine<R> bent(const affine<double>& at_rest, std::size_t bone, const numbers<R>& theta) {
        using std::cos, std::sin;
        const std::size_t finger = bone == 0 ? fingers : (bone - 1) / 4, joint = (bone + 3) % 4;
        if (finger >= fingers || joint == 0) {
            affine<R> same;
            for (std::size_t i = 0; i < 12; ++i) same[i] = at_rest[i];
            return same;
        }
        const R* const own = &theta[6 + 4 * finger];
        const R x = own[joint == 1 ? 0 : joint], c = cos(x), s = sin(x), zero = 0, one = 1;
        if (joint != 1) return composed(at_rest, affine<R>{one, zero, zero, zero, zero, c, -s, zero, zero, s, c, zero});
        const R cz = cos(own[1]), sz = sin(own[1]);
        return composed(at_rest, affine<R>{cz, -sz * c, sz * s, zero, sz, cz * c, -cz * s, zero, zero, s, c, zero});
    }
};

/// ADBench's files: FOLDER/model/bones.txt, vertices.txt and triangles.txt, numbers between colons.
inline hand_model read_hand_model(const std::string& folder) {
    const auto lines = [&](const char* name, const auto& each) {
        std::ifstream file(folder + "/model/" + name);
        if (!file) throw std::runtime_error("adbench: cannot read " + folder + "/model/" + name);
        for (std::string line; std::getline(file, line);) {
            std::vector<std::string> fields;
            std::istringstream in(line);
            for (std::string field; std::getline(in, field, ':');) fields.push_back(field);
            if (!fields.empty()) each(fields);
        }
    };
    hand_model model;
    lines("bones.txt", [&](const std::vector<std::string>& f) { // name, parent, two matrices of 4 x 4
        hand_model::bone b{std::stoi(f.at(1)), {}, {}};
        for (std::size_t i = 0; i < 12; ++i)
            b.relative[i] = std::stod(f.at(2 + i)), b.inverse[i] = std::stod(f.at(18 + i));
        model.bones.push_back(b);
    });
    lines("vertices.txt", [&](const std::vector<std::string>& f) { // position, 5 others, count, (bone, weight) ...
        hand_model::vertex v{{std::stod(f.at(0)), std::stod(f.at(1)), std::stod(f.at(2))}, {}};
        for (std::size_t i = 0, n = std::stoul(f.at(8)); i < n; ++i)
            v.bones.push_back({std::stoul(f.at(9 + 2 * i)), std::stod(f.at(10 + 2 * i))});
        model.vertices.push_back(v);
    });
    lines("triangles.txt", [&](const std::vector<std::string>& f) {
        model.triangles.push_back({std::stoul(f.at(0)), std::stoul(f.at(1)), std::stoul(f.at(2))});
    });
    return model;
}

/// A hand by rule, of the same size: 22 bones, 544 vertices, 1,084 triangles. Fingers are rows of four bones of lengths
/// 4, 3, 2 and 1 side by side, vertices stand around bones and follow the neighbouring one, too.
inline hand_model made_hand_model() {
    hand_model model;
    const auto moved = [](double x, double y) { return affine<double>{1, 0, 0, x, 0, 1, 0, y, 0, 0, 1, 0}; };
    std::vector<std::array<double, 2>> starts;
    const auto add = [&](int parent, double x, double y) {
        if (parent >= 0)
            x += starts[static_cast<std::size_t>(parent)][0], y += starts[static_cast<std::size_t>(parent)][1];
        const auto* const from = parent >= 0 ? &starts[static_cast<std::size_t>(parent)] : nullptr;
        model.bones.push_back({parent, moved(from ? x - (*from)[0] : x, from ? y - (*from)[1] : y), moved(-x, -y)});
        starts.push_back({x, y});
    };
    add(-1, 0, 0);
    for (int finger = 0; finger < 5; ++finger) {
        add(0, finger - 2, 1);
        for (int joint = 1; joint < 4; ++joint) add(static_cast<int>(model.bones.size()) - 1, 0, 5 - joint);
    }
    add(0, 0, -4); // the forearm
    for (std::size_t i = 0; i < 544; ++i) {
        const std::size_t bone = i % model.bones.size();
        const double turn = 2.4 * static_cast<double>(i), along = static_cast<double>(i % 7) / 7;
        const auto& [x, y] = starts[bone];
        const int parent = model.bones[bone].parent;
        hand_model::vertex v{{x + 0.4 * std::cos(turn), y + along, 0.4 * std::sin(turn)},
                             {{bone, 0.25 + 0.75 * along}}};
        v.bones.push_back({parent < 0 ? 1 : static_cast<std::size_t>(parent), 0.75 - 0.75 * along});
        model.vertices.push_back(v);
    }
    for (std::size_t i = 0; i < 1084; ++i) model.triangles.push_back({i % 544, (i + 22) % 544, (i * 7 + 1) % 544});
    return model;
}

} // namespace adbench
