// ε⁻¹ at frequencies, and Σ made of it, within the static subspace of W(0). The truth is the full
// calculation (docs/theory/gw.md 4.2, 6.5).

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/reference_files.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

namespace quasi::gw {
namespace {

/// ε⁻¹ of GaAs at real and imaginary frequencies, with further keys of [epsilon].
Calculation epsilon_with(const std::string& subspace) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck = parse_deck(
      "stop_after = \"epsilon\"\n[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = "
      "6.0\nk_grid = [2, 2, 2]\nbands = 20\n"
      "[epsilon]\ncutoff_ry = 4.0\nfrequencies = \"both\"\nreal_max_ev = 6.0\nreal_step_ev = "
      "2.0\nimaginary_points = 8\n" +
          subspace,
      {}, "test", ".");
  return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
}

/// Largest ‖ε̃⁻¹ − ε̃⁻¹'‖ (Frobenius, which bounds the spectral norm) over q, at one frequency.
double distance(const Calculation& a, const Calculation& b, std::size_t f) {
  double worst = 0.0;
  for (std::size_t iq = 0; iq < a.epsilon.size(); ++iq) {
    const DielectricMatrix& m = a.epsilon[iq];
    const auto n = static_cast<std::size_t>(m.size());
    UnsetVector<Cplx> room, room_of_b;
    const UnsetVector<Cplx>&one = inverse_of(m, f, room),
          &other = inverse_of(b.epsilon[iq], f, room_of_b);
    double sum = 0.0;
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        sum +=
            std::norm((one[g * n + h] - other[g * n + h]) * std::sqrt(m.coulomb[h] / m.coulomb[g]));
    worst = std::max(worst, std::sqrt(sum));
  }
  return worst;
}

// With all vectors the subspace gives the whole ε⁻¹, to 1e-9: the wings at q₀ carry v(q₀) = 1e7,
// and the full calculation sums the wedge of the zone in another order.
TEST(Subspace, AllVectorsAreTheWhole) {
  const Calculation whole = epsilon_with("");
  for (const char* complement : {"true", "false"}) {
    const Calculation all = epsilon_with(
        std::string("subspace_vectors = 10000\nsubspace_complement = ") + complement + "\n");
    EXPECT_EQ(all.epsilon[0].subspace_vectors, static_cast<int>(all.epsilon[0].size()));
    EXPECT_LT(all.epsilon[0].subspace_error, 1e-9);
    for (std::size_t f = 0; f < whole.plan.epsilon.frequencies_ry.size(); ++f)
      EXPECT_LT(distance(whole, all, f), 1e-9) << f;
  }
}

// The error falls with the number of vectors, stays below the indicator of the job, and the
// complement recovers most of it.
TEST(Subspace, ErrorsDecayAndTheIndicatorBoundsThem) {
  const Calculation whole = epsilon_with("");
  double before = INFINITY, indicator_before = INFINITY;
  for (const int vectors : {6, 15, 30, 45}) {
    const std::string count = "subspace_vectors = " + std::to_string(vectors) + "\n";
    const Calculation plain = epsilon_with(count + "subspace_complement = false\n"),
                      with = epsilon_with(count);
    double indicator = 0.0;
    for (const DielectricMatrix& m : plain.epsilon)
      indicator = std::max(indicator, m.subspace_error);
    EXPECT_LT(indicator, indicator_before);
    indicator_before = indicator;
    // At frequency 0 the full matrix is always used.
    EXPECT_LT(distance(whole, plain, 0), 1e-9);
    // |δ − ε̃⁻¹(iu)| falls with u. At the first imaginary point the part left out is therefore at
    // most the part left out at 0, times the √n between the norms.
    const double error = distance(whole, plain, 1), corrected = distance(whole, with, 1);
    EXPECT_LT(error, before);
    EXPECT_LT(error, indicator * std::sqrt(static_cast<double>(whole.epsilon[0].size())));
    EXPECT_LT(corrected, 0.5 * error) << "the complement recovers most of it";
    // The complement adds one matrix with a pole at ω_c = 2.5 Ry. Multiplied by ω_c² − ω² it is
    // equal at every frequency.
    const auto& frequency = whole.plan.epsilon.frequencies_ry;
    for (std::size_t iq = 0; iq < with.epsilon.size(); ++iq) {
      if (vectors >= with.epsilon[iq].size()) continue;
      std::vector<UnsetVector<Cplx>> of_with(frequency.size()), of_plain(frequency.size());
      for (std::size_t f = 1; f < frequency.size(); ++f) {
        inverse_of(with.epsilon[iq], f, of_with[f]);
        inverse_of(plain.epsilon[iq], f, of_plain[f]);
      }
      const auto added = [&](std::size_t f, std::size_t i) {
        return (of_with[f][i] - of_plain[f][i]) * (6.25 - frequency[f] * frequency[f]);
      };
      double size = 0.0, difference = 0.0;
      // At q → 0 by k·p this holds for the matrix with three heads only; the matrix of one
      // direction is no linear function of it.
      for (std::size_t f = 2; f < frequency.size(); ++f)
        for (std::size_t i = 0; i < of_with[f].size(); ++i) {
          size += std::norm(added(1, i));
          difference += std::norm(added(f, i) - added(1, i));
        }
      EXPECT_GT(size, 0.0);
      if (with.epsilon[iq].long_wave.empty()) {
        EXPECT_LT(difference, 1e-20 * size);
      }
      // At q → 0 the plane wave G = 0 is one more vector.
      EXPECT_EQ(with.epsilon[iq].subspace_vectors, vectors + (with.epsilon[iq].at_gamma ? 1 : 0));
    }
    before = error;
  }
}

// A smaller tolerance keeps more vectors, and the stated error stays below the tolerance.
TEST(Subspace, ToleranceChoosesTheVectors) {
  const Calculation coarse = epsilon_with("subspace_tolerance = 0.2\n"),
                    fine = epsilon_with("subspace_tolerance = 0.02\n");
  for (std::size_t iq = 0; iq < coarse.epsilon.size(); ++iq) {
    EXPECT_LT(coarse.epsilon[iq].subspace_vectors, fine.epsilon[iq].subspace_vectors);
    EXPECT_LT(fine.epsilon[iq].subspace_vectors, fine.epsilon[iq].size());
    // The largest omitted eigenvalue is below the tolerance. The coupling between kept and omitted
    // eigenvectors vanishes, and the exact head at q → 0 adds little.
    EXPECT_LT(fine.epsilon[iq].subspace_error, 0.02 * (1.0 + 1e-6));
  }
}

/// Σ of GaAs, 8 bands, by a method that uses ε⁻¹ at frequencies, with further keys of [sigma].
Calculation sigma_with(const std::string& subspace, const std::string& method = "contour") {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const Deck deck = parse_deck(
      "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 6.0\nk_grid = [2, 2, "
      "2]\nbands = 20\n"
      "[epsilon]\ncutoff_ry = 4.0\nreal_max_ev = 6.0\nreal_step_ev = 1.0\nimaginary_points = "
      "8\n[sigma]\nmethod = \"" +
          method + "\"\nband_max = 8\n" + subspace,
      {}, "test", ".");
  return run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
}

/// Largest |ΔΣ| of all states in eV.
double difference_ev(const Calculation& a, const Calculation& b) {
  double worst = 0.0;
  for (std::size_t i = 0; i < a.quasiparticles.size(); ++i)
    worst = std::max(worst, std::abs(a.quasiparticles[i].sigma_ev - b.quasiparticles[i].sigma_ev));
  return worst;
}

/// Largest error of Σ that the job states, in eV.
double stated_ev(const Calculation& run) {
  double worst = 0.0;
  for (const SelfEnergyAtK& sum : run.sigma)
    for (const double error : sum.subspace_error_ry) worst = std::max(worst, error * kRydberg_ev);
  return worst;
}

// With all vectors Σ summed in the subspace of W(0) equals the sum over plane waves, to rounding.
// With fewer vectors the error falls, and the stated bound, which the worst frequency alone gives,
// holds. The contour and the imaginary-axis method share this code.
TEST(Subspace, SigmaInTheSubspaceGoesToTheFullSum) {
  for (const char* method : {"contour", "imaginary-axis"}) {
    SCOPED_TRACE(method);
    const Calculation full = sigma_with("", method),
                      all = sigma_with("subspace_vectors = 10000\n", method);
    EXPECT_EQ(all.statistics.subspace_vectors, all.statistics.plane_waves);
    EXPECT_GT(all.statistics.plane_waves, 100);
    // A continued fraction magnifies rounding; the contour's sum does not.
    EXPECT_LT(difference_ev(full, all), method == std::string("contour") ? 1e-10 : 1e-6);
    if (method != std::string("contour")) continue;
    EXPECT_LT(stated_ev(all), 1e-9);
    double before = INFINITY;
    for (const int vectors : {4, 12, 25, 45}) {
      const Calculation some =
          sigma_with("subspace_vectors = " + std::to_string(vectors) + "\n", method);
      const double error = difference_ev(full, some);
      EXPECT_LT(error, before) << vectors;
      EXPECT_LT(error, stated_ev(some)) << vectors;
      EXPECT_GT(error, 1e-3 * stated_ev(some)) << vectors << ": a bound that far off says nothing";
      before = error;
    }
    EXPECT_LT(before, 2e-3);
  }
}

/// C·inner·C† with the basis C of a subspace: [n][n].
std::vector<Cplx> spread_out(const SubspaceOfW& s, const std::vector<Cplx>& inner) {
  const auto n = static_cast<std::size_t>(s.n), n_b = static_cast<std::size_t>(s.n_b);
  std::vector<Cplx> left(n * n_b), full(n * n);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t a = 0; a < n_b; ++a)
      for (std::size_t b = 0; b < n_b; ++b)
        left[g * n_b + b] += s.basis[g * n_b + a] * inner[a * n_b + b];
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h)
      for (std::size_t b = 0; b < n_b; ++b)
        full[g * n + h] += left[g * n_b + b] * std::conj(s.basis[h * n_b + b]);
  return full;
}

/// The rest of W(ω) outside of the subspace enters with the share that leaves the smallest
/// residual: the residual is orthogonal to the rest. The subspace states the relative norm of the
/// residual.
void expect_smallest_residual(const SubspaceOfW& sub, std::size_t f, const UnsetVector<Cplx>& w,
                              const std::vector<Cplx>& inside) {
  Cplx against_rest;
  double left = 0.0, size = 0.0, of_rest = 0.0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const Cplx out = w[i] - inside[i] - sub.share[f] * sub.rest[i];
    against_rest += std::conj(sub.rest[i]) * out;
    left += std::norm(out);
    size += std::norm(w[i]);
    of_rest += std::norm(sub.rest[i]);
  }
  EXPECT_GT(of_rest, 1e-6 * size);
  EXPECT_LT(std::abs(against_rest), 1e-11 * std::sqrt(of_rest * size));
  EXPECT_NEAR(sub.residual[f], std::sqrt(left / size), 1e-10);
  if (f == 0) {
    EXPECT_LT(left, 1e-20 * size);
  }
}

/// The forms `found` equal m (inside + s·R) m† of the products m.
void expect_forms_of_parts(const SubspaceOfW& sub, std::size_t f, const std::vector<Cplx>& inside,
                           const std::vector<Cplx>& m, const std::vector<Cplx>& found) {
  const auto n = static_cast<std::size_t>(sub.n);
  for (std::size_t p = 0; p < m.size() / n; ++p) {
    Cplx expected;
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        expected += m[p * n + g] * (inside[g * n + h] + sub.share[f] * sub.rest[g * n + h]) *
                    std::conj(m[p * n + h]);
    EXPECT_LT(std::abs(found[p] - expected), 1e-10 * (1.0 + std::abs(expected)));
  }
}

/// A tolerance keeps the fewest eigenvectors of W(0) that omit at most that part of Σ|λ|.
void expect_fewest_vectors(const MatrixOfFrequency& w, std::size_t n_frequencies,
                           GwKernels& kernels) {
  const SubspaceOfW all =
      subspace_of_w(w, n_frequencies, {.tolerance = 0.0, .vectors = 100000}, kernels);
  ASSERT_EQ(all.n_b, all.n);
  const auto n = static_cast<std::size_t>(all.n);
  std::vector<double> magnitude;
  for (std::size_t b = 0; b < n; ++b) magnitude.push_back(std::abs(all.inner[0][b * n + b]));
  double total = 0.0;
  for (const double value : magnitude) total += value;
  for (const double tolerance : {0.3, 0.1, 0.02}) {
    const SubspaceOfW chosen =
        subspace_of_w(w, n_frequencies, {.tolerance = tolerance, .vectors = 0}, kernels);
    double left = 0.0;
    for (std::size_t b = static_cast<std::size_t>(chosen.n_b); b < n; ++b) left += magnitude[b];
    EXPECT_LE(left, tolerance * total * (1.0 + 1e-9));
    EXPECT_GT(left + magnitude[static_cast<std::size_t>(chosen.n_b) - 1], tolerance * total)
        << "one vector too many";
  }
}

// The parts of W(ω) equal their definitions for a complex crystal and complex frequencies: C† W C,
// the rest of W(0) and its share. Forms made of the parts equal those of the matrices.
TEST(Subspace, PartsOfWAreWhatTheySay) {
  EmpiricalCrystal gaas = test::SmallSilicon::small_crystal();
  gaas.name = "gaas";
  test::SmallSilicon s(gaas);
  const std::vector<Cplx> frequencies{Cplx{}, Cplx{0.0, 1.5}, Cplx{0.6, 0.05}};
  const auto epsilon = s.screening(s.field, frequencies);
  const ScreeningAtQ at = screening_at(s.field, epsilon[1], 3.0, s.coulomb);
  const WingFactors wings = wing_factors(at.epsilon);
  const auto w_of = [&](std::size_t f) { return screened_matrix(at, f, wings); };
  SubspaceOfW sub =
      subspace_of_w(w_of, frequencies.size(), {.tolerance = 0.0, .vectors = 12}, *s.kernels);
  ASSERT_EQ(sub.n_b, 12);
  std::vector<Cplx> m(static_cast<std::size_t>(3 * sub.n));
  for (std::size_t i = 0; i < m.size(); ++i)
    m[i] = std::polar(1.0 / (1.0 + static_cast<double>(i % 5)), 0.7 * static_cast<double>(i));
  const auto block = s.kernels->pair_products().make_block();
  block->load({m.data(), {1, 3, sub.n}});
  std::vector<double> error_ry(1);
  const FormsOfBlock forms({at, wings, sub}, 1.0, *block, &error_ry);
  double smallest_share = 1.0;
  for (std::size_t f = 0; f < frequencies.size(); ++f) {
    SCOPED_TRACE(f);
    const std::vector<Cplx> inside = spread_out(sub, sub.inner[f]);
    expect_smallest_residual(sub, f, w_of(f), inside);
    expect_forms_of_parts(sub, f, inside, m, forms.at(f));
    smallest_share = std::min(smallest_share, std::abs(sub.share[f]));
  }
  EXPECT_LT(smallest_share, 0.9);
  EXPECT_GT(std::abs(sub.share[2].imag()), 1e-4) << "a share that is complex";
  expect_fewest_vectors(w_of, frequencies.size(), *s.kernels);
}

// A smaller tolerance keeps more vectors and states a smaller error. Keys that contradict each
// other, or that the method or BerkeleyGW's conventions exclude, are refused.
TEST(Subspace, SigmaToleranceChoosesTheVectors) {
  const Calculation coarse = sigma_with("subspace_tolerance = 0.1\n"),
                    fine = sigma_with("subspace_tolerance = 0.01\n");
  EXPECT_GT(coarse.statistics.subspace_vectors, 0);
  EXPECT_LT(coarse.statistics.subspace_vectors, fine.statistics.subspace_vectors);
  EXPECT_LT(fine.statistics.subspace_vectors, fine.statistics.plane_waves);
  EXPECT_LT(stated_ev(fine), stated_ev(coarse));
  const auto refused = [](const std::string& text) {
    return parse_deck("[meanfield]\nsource = \"epm\"\n[epsilon]\ncutoff_ry = 4.0\n" + text, {},
                      "test", ".");
  };
  EXPECT_THROW(refused("[sigma]\nsubspace_tolerance = 0.1\n"), InvalidInput);
  EXPECT_THROW(
      refused("[sigma]\nmethod = \"contour\"\nsubspace_tolerance = 0.1\nsubspace_vectors = 3\n"),
      InvalidInput);
  EXPECT_THROW(parse_deck("compat = \"bgw\"\n[meanfield]\nsource = \"epm\"\n[epsilon]\ncutoff_ry = "
                          "4.0\n[sigma]\nmethod = \"contour\"\nsubspace_vectors = 3\n",
                          {}, "test", "."),
               InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
