#include "workers/gw/solver/screening/long_wave.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/backend/unset_vector.hpp"
#include "workers/gw/solver/screening/coulomb/mini_zone.hpp"

namespace quasi::gw {
namespace {

constexpr int kMaxL = 3;
constexpr int kPolynomials[] = {6, 8, 10, 12, 14, 16, 20};
constexpr int kHoldOut = 4;  // every fourth shell is predicted, not fitted

/// Real solid harmonics, not normalised.
void solid_harmonics(int l, const Vec3& k, double* values) {
  const double x = k[0], y = k[1], z = k[2], r2 = dot(k, k);
  switch (l) {
    case 0:
      values[0] = 1.0;
      break;
    case 1:
      values[0] = x;
      values[1] = y;
      values[2] = z;
      break;
    case 2:
      values[0] = x * y;
      values[1] = y * z;
      values[2] = z * x;
      values[3] = x * x - y * y;
      values[4] = 3.0 * z * z - r2;
      break;
    default:
      values[0] = x * y * z;
      values[1] = z * (x * x - y * y);
      values[2] = x * (5.0 * z * z - r2);
      values[3] = y * (5.0 * z * z - r2);
      values[4] = z * (5.0 * z * z - 3.0 * r2);
      values[5] = x * (x * x - 3.0 * y * y);
      values[6] = y * (3.0 * x * x - y * y);
  }
}

/// Row of the design matrix: R_lm(K) T_j(2K²/K²_max − 1), [m][j], K in units of K_max.
void basis_row(int l, int n_polynomials, const Vec3& k, double* row) {
  double harmonic[2 * kMaxL + 1];
  solid_harmonics(l, k, harmonic);
  const double x = 2.0 * dot(k, k) - 1.0;
  for (int m = 0; m < 2 * l + 1; ++m) {
    double before = 1.0, now = x;
    for (int j = 0; j < n_polynomials; ++j) {
      row[m * n_polynomials + j] = harmonic[m] * (j == 0 ? 1.0 : now);
      if (j == 0) continue;
      const double next = 2.0 * x * now - before;
      before = now;
      now = next;
    }
  }
}

}  // namespace

std::vector<int> first_projectors(const Projectors& p) {
  std::vector<int> first(p.species.size());
  int next = 0;
  for (int species = 0; species < static_cast<int>(p.projectors_of_species.size()); ++species)
    for (std::size_t atom = 0; atom < p.species.size(); ++atom)
      if (p.species[atom] == species) {
        first[atom] = next;
        next += p.projectors_of_species[static_cast<std::size_t>(species)];
      }
  return first;
}

std::vector<Cplx> apply_d(const Projectors& projectors, const std::vector<Cplx>& b, std::size_t n,
                          int spin) {
  const std::vector<int> first = first_projectors(projectors);
  std::vector<Cplx> result(b.size());
  const auto edge = static_cast<std::size_t>(projectors.max_projectors);
  for (std::size_t atom = 0; atom < first.size(); ++atom) {
    const auto count = static_cast<std::size_t>(
        projectors.projectors_of_species[static_cast<std::size_t>(projectors.species[atom])]);
    const double* d = projectors.d_ry.data() +
                      (static_cast<std::size_t>(spin) * first.size() + atom) * edge * edge;
    for (std::size_t p = 0; p < count; ++p)
      for (std::size_t q = 0; q < count; ++q) {
        const double value = d[q * edge + p];
        if (value == 0.0) continue;
        const Cplx* from = b.data() + (static_cast<std::size_t>(first[atom]) + q) * n;
        Cplx* to = result.data() + (static_cast<std::size_t>(first[atom]) + p) * n;
        for (std::size_t i = 0; i < n; ++i) to[i] += value * from[i];
      }
  }
  return result;
}

RadialProjectors::Channel RadialProjectors::fit(const std::vector<Vec3>& k,
                                                const std::vector<Cplx>& value,
                                                double* residual) const {
  // Whole shells of |K| are left out, so that the fit predicts a radius and not a direction.
  std::vector<std::size_t> order(k.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return dot(k[a], k[a]) < dot(k[b], k[b]); });
  std::vector<int> shell(k.size());
  int current = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && dot(k[order[i]], k[order[i]]) - dot(k[order[i - 1]], k[order[i - 1]]) > 1e-9)
      ++current;
    shell[order[i]] = current;
  }
  const int n_shells = current + 1;
  double largest = 0.0;
  for (const Cplx& v : value) largest = std::max(largest, std::abs(v));
  const auto solve = [&](int l, int n_polynomials, bool all) {
    const auto n = static_cast<std::size_t>((2 * l + 1) * n_polynomials);
    std::vector<std::size_t> used;
    for (std::size_t i = 0; i < k.size(); ++i)
      if (all || shell[i] % kHoldOut != kHoldOut - 1) used.push_back(i);
    std::vector<double> a(used.size() * n), b(2 * std::max(used.size(), n));
    for (std::size_t i = 0; i < used.size(); ++i) {
      basis_row(l, n_polynomials, k[used[i]], a.data() + i * n);
      b[2 * i] = value[used[i]].real();
      b[2 * i + 1] = value[used[i]].imag();
    }
    std::vector<double> singular(std::min(used.size(), n));
    lapack_int rank = 0;
    const lapack_int info = LAPACKE_dgelsd(
        LAPACK_ROW_MAJOR, static_cast<lapack_int>(used.size()), static_cast<lapack_int>(n), 2,
        a.data(), static_cast<lapack_int>(n), b.data(), 2, singular.data(), 1e-13, &rank);
    if (info != 0)
      throw NotConverged("the fit of a projector of VKB failed, LAPACK info " +
                         std::to_string(info));
    Channel channel{.l = l, .n_polynomials = n_polynomials, .coefficient = std::vector<Cplx>(n)};
    for (std::size_t j = 0; j < n; ++j) channel.coefficient[j] = {b[2 * j], b[2 * j + 1]};
    return channel;
  };
  *residual = INFINITY;
  Channel best;
  for (int l = 0; l <= kMaxL; ++l)
    for (const int n_polynomials : kPolynomials) {
      if (n_polynomials > n_shells / 2) continue;
      const Channel trial = solve(l, n_polynomials, false);
      double worst = 0.0;
      for (std::size_t i = 0; i < k.size(); ++i)
        // The outermost shells cannot be interpolated once they are left out.
        if (shell[i] % kHoldOut == kHoldOut - 1 && shell[i] < n_shells - kHoldOut)
          worst = std::max(worst, std::abs(radial(trial, k[i]) - value[i]));
      if (worst / largest < *residual) {
        *residual = worst / largest;
        best = trial;
      }
      if (l > 0 && *residual < 1e-6 && worst / largest > 0.1)
        break;  // plainly another angular momentum
    }
  if (best.n_polynomials == 0)
    throw InvalidInput(
        "VKB has only " + std::to_string(n_shells) +
        " lengths |k+G|, too few to know its projectors between them; give meanfield.wfnq");
  return solve(best.l, best.n_polynomials, true);
}

Cplx RadialProjectors::radial(const Channel& channel, const Vec3& k) const {
  double row[(2 * kMaxL + 1) * 20];
  basis_row(channel.l, channel.n_polynomials, k, row);
  Cplx sum;
  for (std::size_t j = 0; j < channel.coefficient.size(); ++j)
    sum += channel.coefficient[j] * row[j];
  return sum;
}

RadialProjectors::RadialProjectors(const Projectors& p)
    : description_{.header = p.header,
                   .wavefunction_cutoff_ry = p.wavefunction_cutoff_ry,
                   .k = {},
                   .species = p.species,
                   .projectors_of_species = p.projectors_of_species,
                   .n_projectors = p.n_projectors,
                   .max_projectors = p.max_projectors,
                   .d_ry = p.d_ry,
                   .g = {},
                   .beta = {}},
      first_(first_projectors(p)) {
  description_.header.g.clear();
  const Crystal& crystal = p.header.crystal;
  for (const Atom& atom : crystal.atoms)
    position_.push_back(crystal.alat_bohr * atom.position_alat);
  std::vector<Vec3> k;  // Cartesian, every k+G of the file
  for (std::size_t ik = 0; ik < p.k.size(); ++ik)
    for (const IVec3& g : p.g[ik])
      k.push_back(to_cartesian(crystal.bvec, crystal.blat_per_bohr, p.k[ik] + to_real(g)));
  for (const Vec3& v : k) k_max_ = std::max(k_max_, std::sqrt(dot(v, v)));
  std::vector<Vec3> scaled(k.size());
  for (std::size_t i = 0; i < k.size(); ++i) scaled[i] = (1.0 / k_max_) * k[i];
  const auto values_of = [&](std::size_t atom, int h, double sign) {
    std::vector<Cplx> values;
    for (std::size_t ik = 0; ik < p.k.size(); ++ik) {
      const Cplx* beta =
          p.beta[ik].data() + static_cast<std::size_t>(first_[atom] + h) * p.g[ik].size();
      values.insert(values.end(), beta, beta + p.g[ik].size());
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] *= std::polar(1.0, -sign * dot(k[i], position_[atom]));
    return values;
  };
  channel_.resize(p.projectors_of_species.size());
  for (std::size_t s = 0; s < channel_.size(); ++s)
    for (std::size_t atom = 0; atom < first_.size(); ++atom) {
      if (description_.species[atom] != static_cast<int>(s)) continue;
      for (int h = 0; h < p.projectors_of_species[s]; ++h) {
        if (channel_[s].size() < static_cast<std::size_t>(p.projectors_of_species[s])) {
          double residual = 0.0, other = INFINITY;
          Channel channel = fit(scaled, values_of(atom, h, sign_), &residual);
          if (residual > 1e-2 && channel_[s].empty()) {
            // Both signs of the phase of the structure factor are conventions in use.
            sign_ = -sign_;
            const Channel turned = fit(scaled, values_of(atom, h, sign_), &other);
            if (other < residual)
              channel = turned;
            else
              sign_ = -sign_;
            residual = std::min(residual, other);
          }
          channel_[s].push_back(channel);
          residual_ = std::max(residual_, residual);
        }
        // Every atom of the species follows the first one's function.
        const auto values = values_of(atom, h, sign_);
        double largest = 0.0, worst = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          largest = std::max(largest, std::abs(values[i]));
          worst = std::max(
              worst,
              std::abs(radial(channel_[s][static_cast<std::size_t>(h)], scaled[i]) - values[i]));
        }
        residual_ = std::max(residual_, worst / largest);
      }
    }
}

std::vector<Cplx> RadialProjectors::at(const std::vector<Vec3>& k) const {
  std::vector<Cplx> beta(static_cast<std::size_t>(description_.n_projectors) * k.size());
  for (std::size_t s = 0; s < channel_.size(); ++s)
    for (std::size_t h = 0; h < channel_[s].size(); ++h) {
      std::vector<Cplx> value(k.size());
      for (std::size_t i = 0; i < k.size(); ++i)
        value[i] = radial(channel_[s][h], (1.0 / k_max_) * k[i]);
      for (std::size_t atom = 0; atom < first_.size(); ++atom) {
        if (description_.species[atom] != static_cast<int>(s)) continue;
        Cplx* row = beta.data() + (static_cast<std::size_t>(first_[atom]) + h) * k.size();
        for (std::size_t i = 0; i < k.size(); ++i)
          row[i] = value[i] * std::polar(1.0, sign_ * dot(k[i], position_[atom]));
      }
    }
  return beta;
}

namespace {

/// The states of BandPairs, [n_v][n_pw] and [n_c][n_pw]; n_pw counts both components of spinors.
struct PairStates {
  const KPointWaves& at;
  int n_v, n_c;
  std::size_t n_pw;
  const Cplx* of_v;
  const Cplx* of_c;

  PairStates(const Wavefunctions& waves, const BandPairs& pairs)
      : at(waves.waves[static_cast<std::size_t>(pairs.k_index)]),
        n_v(static_cast<int>(pairs.left.size())),
        n_c(static_cast<int>(pairs.right.size())),
        n_pw(at.g.size() * static_cast<std::size_t>(waves.header.n_spinor)) {
    const StateCoefficients& all = at.coefficients[static_cast<std::size_t>(pairs.spin)];
    const auto n = static_cast<std::int64_t>(n_pw);
    of_v = all.part(pairs.left.begin * n, pairs.left.size() * n);
    of_c = all.part(pairs.right.begin * n, pairs.right.size() * n);
  }
  int edge() const { return static_cast<int>(n_pw); }
};

/// Returns 2 (k+G)·d, [n_spinor][n_pw].
std::vector<double> kinetic_slope(const Wavefunctions& waves, const BandPairs& pairs,
                                  const Vec3& direction) {
  const Vec3& k = waves.k[static_cast<std::size_t>(pairs.k_index)];
  const auto& g = waves.waves[static_cast<std::size_t>(pairs.k_index)].g;
  std::vector<double> slope(g.size() * static_cast<std::size_t>(waves.header.n_spinor));
  for (std::size_t i = 0; i < slope.size(); ++i)
    slope[i] = 2.0 * metric_dot(waves.header.crystal.bdot, k + to_real(g[i % g.size()]), direction);
  return slope;
}

/// Copies the conjugate of `n` states times a slope into `to`, [n][n_pw].
void copy_times_slope(const Cplx* states, int n, const std::vector<double>& slope, Cplx* to) {
  const std::size_t n_pw = slope.size();
#pragma omp parallel for schedule(static)
  for (std::size_t m = 0; m < static_cast<std::size_t>(n); ++m)
    for (std::size_t i = 0; i < n_pw; ++i)
      to[m * n_pw + i] = slope[i] * std::conj(states[m * n_pw + i]);
}

/// Calculates the kinetic parts of all directions, [direction][n_v][n_c]. The device receives both
/// sets of states once, which costs more than the product if there are few empty states.
std::vector<Cplx> kinetic_parts_together(const Wavefunctions& waves, const BandPairs& pairs,
                                         const std::vector<Vec3>& directions, GwKernels& kernels) {
  const PairStates s(waves, pairs);
  const std::size_t n_d = directions.size(), each = static_cast<std::size_t>(s.n_c) * s.n_pw;
  UnsetVector<Cplx> right(n_d * each);
  for (std::size_t d = 0; d < n_d; ++d)
    copy_times_slope(s.of_c, s.n_c, kinetic_slope(waves, pairs, directions[d]),
                     right.data() + d * each);
  const int columns = static_cast<int>(n_d) * s.n_c;
  std::vector<Cplx> conjugate(static_cast<std::size_t>(s.n_v) * static_cast<std::size_t>(columns));
  kernels.dense().multiply_transposed({s.of_v, {s.n_v, s.edge()}},
                                      {right.data(), {columns, s.edge()}},
                                      view<Cplx>(conjugate, s.n_v, columns));
  std::vector<Cplx> parts(conjugate.size());
  const auto n_c = static_cast<std::size_t>(s.n_c), n_v = static_cast<std::size_t>(s.n_v);
  for (std::size_t d = 0; d < n_d; ++d)
    for (std::size_t v = 0; v < n_v; ++v)
      for (std::size_t c = 0; c < n_c; ++c)
        parts[(d * n_v + v) * n_c + c] = std::conj(conjugate[(v * n_d + d) * n_c + c]);
  return parts;
}

/// Calculates the kinetic parts of one direction after the other, [direction][n_v][n_c].
std::vector<Cplx> kinetic_parts_in_turn(const Wavefunctions& waves, const BandPairs& pairs,
                                        const std::vector<Vec3>& directions, GwKernels& kernels) {
  const PairStates s(waves, pairs);
  const std::size_t each = static_cast<std::size_t>(s.n_v) * static_cast<std::size_t>(s.n_c);
  UnsetVector<Cplx> left(static_cast<std::size_t>(s.n_v) * s.n_pw);
  std::vector<Cplx> parts(directions.size() * each);
  for (std::size_t d = 0; d < directions.size(); ++d) {
    copy_times_slope(s.of_v, s.n_v, kinetic_slope(waves, pairs, directions[d]), left.data());
    kernels.dense().multiply_transposed({left.data(), {s.n_v, s.edge()}},
                                        {s.of_c, {s.n_c, s.edge()}},
                                        {parts.data() + d * each, {s.n_v, s.n_c}});
  }
  return parts;
}

/// Adds the difference of the non-local potential over λ = ±1e-4 along a direction to `matrix`,
/// [n_v][n_c].
void add_nonlocal_slope(const Wavefunctions& waves, const BandPairs& pairs, const Vec3& direction,
                        const RadialProjectors& nonlocal, Cplx* matrix) {
  const PairStates s(waves, pairs);
  const Crystal& crystal = waves.header.crystal;
  const Vec3& k = waves.k[static_cast<std::size_t>(pairs.k_index)];
  const Cplx one{1.0, 0.0}, zero{};
  constexpr double kStep = 1e-4;
  const int n_p = nonlocal.count();
  for (const double side : {1.0, -1.0}) {
    std::vector<Vec3> points;
    for (const IVec3& g : s.at.g)
      points.push_back(to_cartesian(crystal.bvec, crystal.blat_per_bohr,
                                    k + (side * kStep) * direction + to_real(g)));
    std::vector<Cplx> beta = nonlocal.at(points);
    for (Cplx& b : beta) b = std::conj(b);
    // b_pn = Σ_G β*_p(k+G) c_n(G)
    const auto project = [&](const Cplx* waves_of, int n) {
      std::vector<Cplx> b(static_cast<std::size_t>(n_p) * static_cast<std::size_t>(n));
      const ThreadedBlas threads(8.0 * n_p * static_cast<double>(n) * s.edge());
      cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n_p, n, s.edge(), &one, beta.data(),
                  s.edge(), waves_of, s.edge(), &zero, b.data(), n);
      return b;
    };
    const std::vector<Cplx> b_v = project(s.of_v, s.n_v),
                            b_c = nonlocal.apply_d(project(s.of_c, s.n_c),
                                                   static_cast<std::size_t>(s.n_c), pairs.spin);
    const Cplx scale{side / (2.0 * kStep), 0.0};
    cblas_zgemm(CblasRowMajor, CblasConjTrans, CblasNoTrans, s.n_v, s.n_c, n_p, &scale, b_v.data(),
                s.n_v, b_c.data(), s.n_c, &one, matrix, s.n_c);
  }
}

}  // namespace

std::vector<Cplx> velocity_matrices(const Wavefunctions& waves, const BandPairs& pairs,
                                    const std::vector<Vec3>& directions,
                                    const RadialProjectors* nonlocal, GwKernels& kernels) {
  const auto n_d = static_cast<std::int64_t>(directions.size());
  std::vector<Cplx> matrices = n_d > 1 && n_d * pairs.right.size() <= pairs.left.size()
                                   ? kinetic_parts_together(waves, pairs, directions, kernels)
                                   : kinetic_parts_in_turn(waves, pairs, directions, kernels);
  if (nonlocal == nullptr || nonlocal->count() == 0) return matrices;
  for (std::int64_t d = 0; d < n_d; ++d)
    add_nonlocal_slope(waves, pairs, directions[static_cast<std::size_t>(d)], *nonlocal,
                       matrices.data() + d * pairs.left.size() * pairs.right.size());
  return matrices;
}

}  // namespace quasi::gw
