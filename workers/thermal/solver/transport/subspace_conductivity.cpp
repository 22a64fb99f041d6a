#include "workers/thermal/solver/transport/subspace_conductivity.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

#include "workers/thermal/physics/occupation.hpp"
#include "workers/thermal/physics/wigner.hpp"
#include "workers/thermal/solver/transport/coherence.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

/// Elements Δ of a pair whose square is below this share of the highest squared speed are rounding.
constexpr double kRounding = 1e-16;

double largest_squared_speed(const Modes& modes) {
  double largest = 0.0;
  for (std::size_t at = 0; at < modes.velocity_km_s.size(); at += 3) {
    const double* v = &modes.velocity_km_s[at];
    largest = std::max(largest, v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  }
  return largest;
}

/// Finds the pairs of one irreducible point, in the order of their rows.
class PointPairs {
 public:
  PointPairs(const Transport& transport, const DynamicalMatrixBuilder& builder, std::int64_t i,
             double negligible)
      : modes_(transport.modes),
        nb_(modes_.n_branches),
        point_(transport.symmetry.irreducible[static_cast<std::size_t>(i)]),
        first_row_(i * nb_),
        negligible_(negligible),
        velocity_(velocity_operator(transport, builder, point_)) {
    // The mean velocity of a mode is no part of Δ.
    for (int g = 0; g < 3; ++g)
      for (int s = 0; s < nb_; ++s)
        element(g, s, s) -=
            modes_.velocity_km_s[static_cast<std::size_t>((point_ * nb_ + s) * 3 + g)];
  }

  void add_to(std::vector<SubspacePair>& pairs, std::vector<Mat3>& variance) {
    const std::int32_t* subspace = &modes_.subspace[static_cast<std::size_t>(point_ * nb_)];
    for (int first = 0, last = 0; first < nb_; first = last) {
      for (last = first + 1; last < nb_ && subspace[last] == subspace[first];) ++last;
      Mat3 mean{};
      for (int a = first; a < last; ++a)
        for (int b = first; b <= a; ++b) {
          const Mat3 product = product_of(a, b);
          if (product[0][0] + product[1][1] + product[2][2] <= negligible_) continue;
          pairs.push_back({first_row_ + a, first_row_ + b, product});
          const double share = (a == b ? 1.0 : 2.0) / (last - first);
          for (int x = 0; x < 3; ++x) mean[x] = mean[x] + share * product[x];
        }
      for (int s = first; s < last; ++s) variance[static_cast<std::size_t>(first_row_ + s)] = mean;
    }
  }

 private:
  Complex64& element(int g, int a, int b) {
    return velocity_[static_cast<std::size_t>((g * nb_ + a) * nb_ + b)];
  }
  /// Re Δ_ab ⊗ Δ_ba.
  Mat3 product_of(int a, int b) {
    Mat3 product;
    for (int x = 0; x < 3; ++x)
      for (int y = 0; y < 3; ++y) product[x][y] = (element(x, a, b) * element(y, b, a)).real();
    return product;
  }

  const Modes& modes_;
  int nb_;
  std::int64_t point_;
  std::int64_t first_row_;
  double negligible_;
  std::vector<Complex64> velocity_;  ///< [3][nb][nb]
};

}  // namespace

void set_subspace_velocities(const LatticeModel& model, const HarmonicOptions& options,
                             Modes& modes) {
  TransportOptions transport_options;
  transport_options.harmonic = options;
  const Transport transport{model.crystal, model.symmetry, modes, transport_options};
  const DynamicalMatrixBuilder builder(model.crystal, model.second_order, options);
  const std::int64_t n_irr = model.symmetry.n_irreducible();
  const double negligible = kRounding * largest_squared_speed(modes);
  std::vector<std::vector<SubspacePair>> by_point(static_cast<std::size_t>(n_irr));
  std::vector<Mat3> variance(static_cast<std::size_t>(transport.n_rows()), Mat3{});
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t i = 0; i < n_irr; ++i)
    PointPairs(transport, builder, i, negligible)
        .add_to(by_point[static_cast<std::size_t>(i)], variance);
  modes.subspace_pairs.clear();
  for (const std::vector<SubspacePair>& pairs : by_point)
    modes.subspace_pairs.insert(modes.subspace_pairs.end(), pairs.begin(), pairs.end());
  modes.velocity_variance_km2_s2 = std::move(variance);
}

std::vector<Mat3> velocity_matrix_trace(const Symmetry& symmetry, const Modes& modes) {
  const std::int64_t nb = modes.n_branches;
  std::vector<Mat3> trace;
  if (modes.velocity_variance_km2_s2.empty()) return trace;
  for (std::int64_t i = 0; i < symmetry.n_irreducible(); ++i) {
    const std::int64_t first = symmetry.irreducible[static_cast<std::size_t>(i)] * nb;
    for (std::int64_t s = 0; s < nb; ++s) {
      Mat3 sum{};
      for (std::int64_t other = first; other < first + nb; ++other) {
        if (modes.subspace[static_cast<std::size_t>(other)] !=
            modes.subspace[static_cast<std::size_t>(first + s)])
          continue;
        const double* v = &modes.velocity_km_s[static_cast<std::size_t>(3 * other)];
        const Mat3& variance =
            modes.velocity_variance_km2_s2[static_cast<std::size_t>(i * nb + other - first)];
        for (int x = 0; x < 3; ++x)
          for (int y = 0; y < 3; ++y) sum[x][y] += v[x] * v[y] + variance[x][y];
      }
      trace.push_back(sum);
    }
  }
  return trace;
}

double subspace_pair_weight(const Transport& t, const SubspacePair& pair, double temperature_k,
                            double rate_per_ps, double other_rate_per_ps) {
  const std::int64_t mode = t.mode_of_row(pair.row);
  const std::int64_t other = t.mode_of_row(pair.other);
  if (!t.modes.active(mode, t.options.omega_max_rad_ps) ||
      !t.modes.active(other, t.options.omega_max_rad_ps))
    return 0.0;
  const double per_kelvin = t.options.constants().hbar_over_kb_k_ps();
  const double omega = t.modes.omega_rad_ps[mode];
  const double omega_other = t.modes.omega_rad_ps[other];
  const double n = bose_einstein(omega, temperature_k, per_kelvin);
  const double n_other = bose_einstein(omega_other, temperature_k, per_kelvin);
  return wigner_pair_weight(omega, omega_other, n * (n + 1.0), n_other * (n_other + 1.0),
                            rate_per_ps, other_rate_per_ps);
}

namespace {

/// Replaces κ of the modes of each subspace by their mean. Single shares would depend on the basis.
void share_equally(const Transport& t, std::vector<Mat3>& kappa) {
  const int nb = t.modes.n_branches;
  for (std::int64_t i = 0; i < t.symmetry.n_irreducible(); ++i) {
    const std::int32_t* subspace =
        &t.modes.subspace[static_cast<std::size_t>(t.symmetry.irreducible[i]) * nb];
    for (int first = 0, last = 0; first < nb; first = last) {
      Mat3 sum{};
      for (last = first; last < nb && subspace[last] == subspace[first]; ++last)
        for (int x = 0; x < 3; ++x) sum[x] = sum[x] + kappa[i * nb + last][x];
      for (int s = first; s < last; ++s)
        for (int x = 0; x < 3; ++x) kappa[i * nb + s][x] = (1.0 / (last - first)) * sum[x];
    }
  }
}

}  // namespace

std::vector<Mat3> subspace_conductivity(const Transport& t, double temperature_k,
                                        const std::vector<double>& rate_per_ps) {
  const double scale = conductivity_scale(t, temperature_k);
  std::vector<Mat3> kappa(static_cast<std::size_t>(t.n_rows()), Mat3{});
  for (const SubspacePair& pair : t.modes.subspace_pairs) {
    const double weight = scale * t.symmetry.multiplicity[pair.row / t.modes.n_branches] *
                          subspace_pair_weight(t, pair, temperature_k, rate_per_ps[pair.row],
                                               rate_per_ps[pair.other]);
    // A pair of two modes counts in both orders, once for each of them.
    for (int x = 0; x < 3; ++x) {
      kappa[pair.row][x] = kappa[pair.row][x] + weight * pair.product_km2_s2[x];
      if (pair.other != pair.row)
        kappa[pair.other][x] = kappa[pair.other][x] + weight * pair.product_km2_s2[x];
    }
  }
  share_equally(t, kappa);
  if (t.symmetry.folded)
    for (Mat3& tensor : kappa) tensor = t.symmetry.symmetrised(tensor);
  return kappa;
}

}  // namespace quasi::thermal
