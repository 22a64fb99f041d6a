#include "tests/oracle/thermal/oracle_3ph.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::oracle {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::array<int, 3> coordinates(const Crystal3ph& c, int point) {
  return {point % c.mesh[0], point / c.mesh[0] % c.mesh[1], point / (c.mesh[0] * c.mesh[1])};
}

double phase(const Crystal3ph& c, int point, const std::array<int, 3>& cell) {
  const auto i = coordinates(c, point);
  double sum = 0.0;
  for (int d = 0; d < 3; ++d) sum += 2.0 * kPi * i[d] * cell[d] / c.mesh[d];
  return sum;
}

double pair(const Settings3ph& s, const std::array<double, 3>& a, const std::array<double, 3>& b) {
  double sum = 0.0;
  double largest = 0.0;
  for (int d = 0; d < 3; ++d) {
    sum += (a[d] - b[d]) * (a[d] - b[d]);
    largest = std::max(largest, std::fabs(a[d] - b[d]));
  }
  return s.width == Width3ph::kMax ? largest * largest / 2.0 : sum / 6.0;
}

/// Returns the point that conserves momentum, q0 ± q1.
int third_point(const Crystal3ph& c, bool emission, int q0, int q1) {
  const auto a = coordinates(c, q0);
  const auto b = coordinates(c, q1);
  int q2 = 0;
  for (int d = 2; d >= 0; --d) {
    const int sum = a[d] + (emission ? -b[d] : b[d]);
    q2 = q2 * c.mesh[d] + (sum + c.mesh[d]) % c.mesh[d];
  }
  return q2;
}

/// Returns the weights of δ(ω0 ± ω'(q1) − ω''(q0 ± q1)) by tetrahedra, [s1 · branches +
/// s2][q1].
std::vector<std::vector<double>> tetrahedra(const Crystal3ph& c, bool emission, int q0, double w0) {
  std::vector<std::vector<double>> weights;
  const int nb = 3 * c.n_atoms;
  for (int s1 = 0; s1 < nb; ++s1)
    for (int s2 = 0; s2 < nb; ++s2) {
      std::vector<double> f;
      for (int q1 = 0; q1 < c.mesh[0] * c.mesh[1] * c.mesh[2]; ++q1)
        f.push_back(c.omega[third_point(c, emission, q0, q1)][s2] +
                    (emission ? c.omega[q1][s1] : -c.omega[q1][s1]));
      weights.push_back(mesh_weights(c.mesh, c.steps, w0, f));
    }
  return weights;
}

/// Returns δ of a process by its Gaussian, 0 outside the window.
/// @param p0, p1, p2  spread vectors of its phonons
double gaussian(const Settings3ph& s, double mismatch, const std::array<double, 3>& p0,
                const std::array<double, 3>& p1, const std::array<double, 3>& p2) {
  double width = pair(s, p1, p2);
  if (s.width == Width3ph::kSymmetric) width = (width + pair(s, p0, p1) + pair(s, p0, p2)) / 3.0;
  if (s.width == Width3ph::kFixed) width = 1.0;
  const double sigma = s.scale_broad * std::sqrt(width);
  if (std::fabs(mismatch) > s.cut * sigma) return 0.0;
  return s.delta_factor * std::exp(-mismatch * mismatch / (sigma * sigma)) /
         (sigma * std::sqrt(kPi));
}

}  // namespace

std::complex<double> matrix_element_3ph(const Crystal3ph& c, bool emission, int q0, int s0, int q1,
                                        int s1, int q2, int s2) {
  std::complex<double> v = 0.0;
  for (const Block3ph& block : c.block)
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        for (int g = 0; g < 3; ++g) {
          const std::complex<double> e0 = c.e[q0][s0][3 * block.atom[0] + a];
          std::complex<double> e1 =
              c.e[q1][s1][3 * block.atom[1] + b] * std::polar(1.0, phase(c, q1, block.cell[1]));
          if (emission) e1 = std::conj(e1);
          const std::complex<double> e2 = std::conj(c.e[q2][s2][3 * block.atom[2] + g] *
                                                    std::polar(1.0, phase(c, q2, block.cell[2])));
          v += block.tensor[9 * a + 3 * b + g] * e0 * e1 * e2 /
               std::sqrt(c.mass_amu[block.atom[0]] * c.mass_amu[block.atom[1]] *
                         c.mass_amu[block.atom[2]]);
        }
  return v;
}

Sums3ph three_phonon_sums(const Crystal3ph& c, const Settings3ph& s, int q0, int s0,
                          const std::vector<std::vector<std::array<double, 3>>>& f) {
  Sums3ph sums;
  const int n_q = c.mesh[0] * c.mesh[1] * c.mesh[2];
  const double w0 = c.omega[q0][s0];
  if (!(w0 > 0.0)) return sums;
  const auto bose = [&](double w) {
    return 1.0 / (std::exp(s.hbar_over_kb * w / s.temperature_k) - 1.0);
  };
  for (const bool emission : {false, true}) {
    const auto by_tetrahedra = s.width == Width3ph::kTetrahedra
                                   ? tetrahedra(c, emission, q0, w0)
                                   : std::vector<std::vector<double>>{};
    for (int q1 = 0; q1 < n_q; ++q1) {
      const int q2 = third_point(c, emission, q0, q1);
      for (int s1 = 0; s1 < 3 * c.n_atoms; ++s1)
        for (int s2 = 0; s2 < 3 * c.n_atoms; ++s2) {
          const double w1 = c.omega[q1][s1];
          const double w2 = c.omega[q2][s2];
          if (!(w1 > 0.0) || !(w2 > 0.0)) continue;
          const double mismatch = w0 + (emission ? -w1 : w1) - w2;
          const double delta = by_tetrahedra.empty()
                                   ? gaussian(s, mismatch, c.p[q0][s0], c.p[q1][s1], c.p[q2][s2])
                                   : by_tetrahedra[s1 * 3 * c.n_atoms + s2][q1];
          if (!(delta > 0.0)) continue;
          const double occupation = emission ? 1.0 + bose(w1) + bose(w2) : bose(w1) - bose(w2);
          const double weight = (emission ? 0.5 : 1.0) * occupation * delta / (w0 * w1 * w2) / n_q;
          const double rate = s.rate_constant * weight *
                              std::norm(matrix_element_3ph(c, emission, q0, s0, q1, s1, q2, s2));
          bool normal = true;
          for (int d = 0; d < 3; ++d)
            normal = normal && c.zone[q0][d] + (emission ? -1 : 1) * c.zone[q1][d] == c.zone[q2][d];
          (emission ? sums.emission : sums.absorption) += rate;
          (emission ? sums.weighted_emission : sums.weighted_absorption) += weight;
          (emission ? sums.phase_space_emission : sums.phase_space_absorption) += delta;
          ++(emission ? sums.n_emission : sums.n_absorption);
          if (normal) (emission ? sums.normal_emission : sums.normal_absorption) += rate;
          if (!f.empty())
            for (int d = 0; d < 3; ++d)
              sums.in_scattering[d] +=
                  rate * (f[q2][s2][d] + (emission ? 1.0 : -1.0) * f[q1][s1][d]);
        }
    }
  }
  return sums;
}

}  // namespace quasi::oracle
