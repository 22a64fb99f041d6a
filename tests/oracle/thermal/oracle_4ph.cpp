#include "tests/oracle/thermal/oracle_4ph.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::oracle {

namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.14159265358979323846;

std::array<int, 3> coordinates(const Crystal4ph& c, int point) {
  return {point % c.mesh[0], point / c.mesh[0] % c.mesh[1], point / (c.mesh[0] * c.mesh[1])};
}

}  // namespace

Complex matrix_element_4ph(const Crystal4ph& c, const std::array<int, 4>& q,
                           const std::array<int, 4>& s, const std::array<bool, 4>& created) {
  Complex v = 0.0;
  for (const Block4ph& block : c.block) {
    Complex factor = 1.0;
    for (int leg = 0; leg < 4; ++leg) {
      double phase = 0.0;
      for (int x = 0; x < 3; ++x)
        phase += 2.0 * kPi * coordinates(c, q[leg])[x] * block.cell[leg][x] / c.mesh[x];
      factor *=
          std::polar(1.0, created[leg] ? -phase : phase) / std::sqrt(c.mass_amu[block.atom[leg]]);
    }
    const auto component = [&](int leg, int axis) {
      const Complex value = c.e[q[leg]][s[leg]][3 * block.atom[leg] + axis];
      return created[leg] ? std::conj(value) : value;
    };
    for (int x = 0; x < 3; ++x)
      for (int y = 0; y < 3; ++y)
        for (int z = 0; z < 3; ++z)
          for (int w = 0; w < 3; ++w)
            v += factor * block.tensor[27 * x + 9 * y + 3 * z + w] * component(0, x) *
                 component(1, y) * component(2, z) * component(3, w);
  }
  return v;
}

std::array<Sums4ph, 3> four_phonon_sums(const Crystal4ph& c, const Settings4ph& set, int point,
                                        int branch, std::vector<double>* in_scattering) {
  const int nq = c.mesh[0] * c.mesh[1] * c.mesh[2];
  const int nb = 3 * c.n_atoms;
  const bool formal = set.convention == Convention::kFormal;
  const auto bose = [&](double omega) {
    return 1.0 / (std::exp(set.hbar_over_kb * omega / set.temperature_k) - 1.0);
  };
  std::array<Sums4ph, 3> sums{};
  for (int channel = 0; channel < 3; ++channel) {
    const int sign1 = channel == 2 ? -1 : 1;
    const int sign2 = channel == 0 ? 1 : -1;
    for (int q1 = 0; q1 < nq; ++q1)
      for (int q2 = 0; q2 < nq; ++q2) {
        int q3 = 0;
        for (int x = 2; x >= 0; --x) {
          int k = coordinates(c, point)[x] + sign1 * coordinates(c, q1)[x] +
                  sign2 * coordinates(c, q2)[x];
          k = ((k % c.mesh[x]) + c.mesh[x]) % c.mesh[x];
          q3 = q3 * c.mesh[x] + k;
        }
        for (int s1 = 0; s1 < nb; ++s1)
          for (int s2 = 0; s2 < nb; ++s2)
            for (int s3 = 0; s3 < nb; ++s3) {
              const int m1 = q1 * nb + s1, m2 = q2 * nb + s2, m3 = q3 * nb + s3;
              double weight = 1.0;
              if (formal) {
                weight = channel == 2 ? 1.0 / 6.0 : 0.5;
              } else if ((channel == 0 && m1 > m2) || (channel == 1 && m2 > m3) ||
                         (channel == 2 && (m1 > m2 || m2 > m3))) {
                continue;
              }
              const auto same_set = [&](int qa, int sa, int qb, int sb) {
                return qa == qb && c.set[qa][sa] == c.set[qb][sb];
              };
              if (channel == 1 &&
                  (same_set(q2, s2, point, branch) || same_set(q3, s3, point, branch) ||
                   same_set(q2, s2, q1, s1) || same_set(q3, s3, q1, s1)))
                continue;
              const double w0 = c.omega[point][branch], w1 = c.omega[q1][s1], w2 = c.omega[q2][s2],
                           w3 = c.omega[q3][s3];
              if (w0 <= 0 || w1 <= 0 || w2 <= 0 || w3 <= 0) continue;
              const double mismatch = w0 + sign1 * w1 + sign2 * w2 - w3;
              const std::array<std::array<double, 3>, 4> p = {c.p[point][branch], c.p[q1][s1],
                                                              c.p[q2][s2], c.p[q3][s3]};
              double sigma;
              if (formal) {
                double mean = 0.0;
                for (int a = 0; a < 4; ++a)
                  for (int b = a + 1; b < 4; ++b)
                    for (int x = 0; x < 3; ++x)
                      mean += (p[a][x] - p[b][x]) * (p[a][x] - p[b][x]) / 6.0;
                sigma = std::max(set.scale_broad * std::sqrt(mean / 6.0), set.least_sigma);
              } else {
                double largest = 0.0;
                for (int x = 0; x < 3; ++x)
                  largest = std::max(largest, std::abs(p[2][x] - p[3][x]));
                sigma = set.scale_broad * largest / std::sqrt(2.0);
              }
              if (std::abs(mismatch) > set.cut * sigma) continue;
              if (!formal && sigma <= set.reference_small_sigma) sigma = 1.0 / std::sqrt(kPi);
              sums[channel].tuples += weight;
              const bool two = channel == 1 ? m2 == m3 : m1 == m2;
              sums[channel].two_coincide += two ? 1 : 0;
              sums[channel].three_coincide += two && channel == 2 && m2 == m3 ? 1 : 0;
              if (std::min({w1, w2, w3}) <= set.slowest_partner) continue;
              const double n1 = bose(w1), n2 = bose(w2), n3 = bose(w3);
              const double n0 = bose(w0);
              const double b =
                  set.symmetric_occupation
                      ? std::sqrt(n1 * (n1 + 1) * n2 * (n2 + 1) * n3 * (n3 + 1) / (n0 * (n0 + 1)))
                  : channel == 0 ? n1 * n2 * (1 + n3) - (1 + n1) * (1 + n2) * n3
                  : channel == 1 ? n1 * (1 + n2) * (1 + n3) - (1 + n1) * n2 * n3
                                 : (1 + n1) * (1 + n2) * (1 + n3) - n1 * n2 * n3;
              const double w = b * std::exp(-mismatch * mismatch / sigma / sigma) /
                               (sigma * std::sqrt(kPi) * set.delta_divisor) / (w0 * w1 * w2 * w3);
              sums[channel].phase_space += weight * w;
              const double rate =
                  weight * w *
                  std::norm(matrix_element_4ph(c, {point, q1, q2, q3}, {branch, s1, s2, s3},
                                               {false, sign1 < 0, sign2 < 0, true}));
              sums[channel].rate += rate;
              bool normal = true;
              for (int x = 0; x < 3; ++x)
                normal =
                    normal && c.zone[point][x] + sign1 * c.zone[q1][x] + sign2 * c.zone[q2][x] ==
                                  c.zone[q3][x];
              if (normal) sums[channel].normal += rate;
              if (in_scattering) {
                (*in_scattering)[m1] -= sign1 * rate;
                (*in_scattering)[m2] -= sign2 * rate;
                (*in_scattering)[m3] += rate;
              }
            }
      }
  }
  return sums;
}

}  // namespace quasi::oracle
