// Tests one iteration of self-consistent phonons (docs/theory/thermal.md 14) on silicon with the
// Stillinger–Weber potential, against sums over the whole mesh that share no code with the
// kernels but the dynamical matrix and LAPACK.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <memory>

#include "tests/support/every_device.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/kernels/renormalisation/on_cpu.hpp"
#include "workers/thermal/kernels/renormalisation/self_consistency_flow.hpp"
#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/renormalisation/self_consistency_problem.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal::test {
namespace {

using Complex64 = std::complex<double>;

/// Silicon on a mesh with divisions of its own on each axis.
struct Silicon {
  Silicon()
      : deck(read_deck(model("silicon-sw"),
                       {parse_setting("renormalise=T"), parse_setting("four_phonon=T")})),
        harmonic(deck.control.case_options().transport.harmonic),
        problem(make_self_consistency_problem(deck.crystal, deck.second_order,
                                              *deck.renormalising_order, harmonic, mesh, pairs)) {}
  Deck deck;
  HarmonicOptions harmonic;
  QMesh mesh{{3, 2, 4}};
  std::vector<PairCorrection> pairs;
  SelfConsistencyProblem problem;
};

const Silicon& silicon() {
  static const Silicon one;
  return one;
}

/// A smooth amplitude, in Å² amu, so that the choice of vectors inside degenerate sets is
/// irrelevant.
double amplitude_of(double omega2) { return 1.0 / (1.0 + omega2 / 500.0); }

std::vector<double> amplitudes_of(const std::vector<double>& omega2) {
  std::vector<double> amplitude;
  for (const double value : omega2) amplitude.push_back(amplitude_of(value));
  return amplitude;
}

std::vector<PairCorrection> with_values(std::vector<PairCorrection> pairs,
                                        const std::vector<double>& values) {
  for (std::size_t e = 0; e < values.size(); ++e) pairs[e / 9].value_ev_a2[e % 9] = values[e];
  return pairs;
}

struct Modes2 {
  std::vector<double> omega2;
  std::vector<Complex64> vectors;
};

Modes2 modes_at(const std::vector<PairCorrection>& correction, const Vec3& q) {
  const Silicon& s = silicon();
  const SecondOrder second = with_correction(s.deck.second_order, correction, s.harmonic.constants);
  const auto nb = static_cast<std::size_t>(s.deck.crystal.n_branches());
  Modes2 modes{std::vector<double>(nb), std::vector<Complex64>(nb * nb)};
  diagonalise_hermitian(static_cast<int>(nb),
                        DynamicalMatrixBuilder(s.deck.crystal, second, s.harmonic).at(q, false).d,
                        modes.omega2.data(), modes.vectors.data());
  return modes;
}

/// ½ Σ Φ₄ ⟨uu⟩ with the modes of a correction at every point of the mesh, [pair][9].
std::vector<double> whole_mesh_target(const std::vector<PairCorrection>& correction) {
  const Silicon& s = silicon();
  const SparseForceConstants& fourth = *s.deck.renormalising_order;
  const std::vector<double>& mass = s.deck.crystal.mass_amu;
  const auto nb = static_cast<std::size_t>(s.deck.crystal.n_branches());
  std::vector<double> target(9 * s.pairs.size(), 0.0);
  for (std::int64_t point = 0; point < s.mesh.size(); ++point) {
    int c[3];
    s.mesh.coordinates(point, c);
    Vec3 q{};
    for (int d = 0; d < 3; ++d) q[d] = static_cast<double>(c[d]) / s.mesh.n[d];
    const Modes2 modes = modes_at(correction, q);
    std::vector<Complex64> sum(nb * nb);
    for (std::size_t mode = 0; mode < nb; ++mode)
      for (std::size_t x = 0; x < nb; ++x)
        for (std::size_t y = 0; y < nb; ++y)
          sum[x * nb + y] += amplitude_of(modes.omega2[mode]) * modes.vectors[mode * nb + x] *
                             std::conj(modes.vectors[mode * nb + y]);
    for (std::int64_t b = 0; b < fourth.n_blocks(); ++b) {
      const int* atom = &fourth.atom[static_cast<std::size_t>(4 * b)];
      const int* cell = &fourth.cell[static_cast<std::size_t>(9 * b)];
      const auto pair = std::find_if(s.pairs.begin(), s.pairs.end(), [&](const auto& p) {
        return p.atom == atom[0] && p.other == atom[1] &&
               p.cell == Index3{cell[0], cell[1], cell[2]};
      });
      EXPECT_NE(pair, s.pairs.end());
      double turns = 0.0;
      for (int d = 0; d < 3; ++d) turns += q[d] * (cell[3 + d] - cell[6 + d]);
      const Complex64 wave =
          std::polar(1.0, 2.0 * units::kPi * turns) /
          (std::sqrt(mass[atom[2]] * mass[atom[3]]) * static_cast<double>(s.mesh.size()));
      for (std::size_t ab = 0; ab < 9; ++ab)
        for (std::size_t cd = 0; cd < 9; ++cd) {
          const std::size_t x = 3 * static_cast<std::size_t>(atom[2]) + cd / 3;
          const std::size_t y = 3 * static_cast<std::size_t>(atom[3]) + cd % 3;
          target[9 * static_cast<std::size_t>(pair - s.pairs.begin()) + ab] +=
              0.5 * fourth.tensor[static_cast<std::size_t>(81 * b) + 9 * ab + cd] *
              std::real(sum[x * nb + y] * wave);
        }
    }
  }
  return target;
}

double largest(const std::vector<double>& values) {
  double result = 0.0;
  for (const double value : values) result = std::max(result, std::fabs(value));
  return result;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_GT(largest(b), 0.0);
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], relative * largest(b)) << "at " << i;
}

/// Two steps from the bare constants. The limits are those of rounding: 1e-12 of the largest ω²
/// and of the largest element.
void expect_sums_of_the_whole_mesh(SelfConsistencyKernels& kernels) {
  const Silicon& s = silicon();
  kernels.load(s.problem);
  EXPECT_GE(kernels.memory_bytes(),
            static_cast<std::int64_t>(8 * s.deck.renormalising_order->tensor.size()));
  std::vector<double> correction(9 * s.pairs.size(), 0.0);
  for (int iteration = 0; iteration < 2; ++iteration) {
    const std::vector<PairCorrection> pairs = with_values(s.pairs, correction);
    const MeshModes modes = kernels.diagonalise(correction);
    std::vector<double> expected;
    for (std::int64_t point = 0; point < s.problem.n_points(); ++point) {
      Vec3 q{};
      for (int d = 0; d < 3; ++d)
        q[d] = static_cast<double>(s.problem.point[static_cast<std::size_t>(3 * point + d)]) /
               s.mesh.n[d];
      const Modes2 own = modes_at(pairs, q);
      expected.insert(expected.end(), own.omega2.begin(), own.omega2.end());
    }
    expect_near(modes.omega2, expected, 1e-12);
    correction = kernels.contract(amplitudes_of(modes.omega2));
    expect_near(correction, whole_mesh_target(pairs), 1e-12);
  }
}

class SelfConsistencyKernelsOn : public quasi::test::OnEveryDevice {};

TEST_P(SelfConsistencyKernelsOn, SumsEqualThoseOverTheWholeMesh) {
  expect_sums_of_the_whole_mesh(*make_self_consistency_kernels(GetParam()));
}

// The GPU sums in 64 pieces, of which some are empty here.
TEST(SelfConsistencyKernels, SumsInPiecesEqualThoseOverTheWholeMesh) {
  SelfConsistencyFlow<RenormalisationOnCpu<64>> kernels{Device{}};
  expect_sums_of_the_whole_mesh(kernels);
}

// Eigenvectors at Γ are orthonormal rows, and those of the CPU solve the eigenvalue equation.
TEST_P(SelfConsistencyKernelsOn, VectorsAtGammaAreEigenvectors) {
  const Silicon& s = silicon();
  const auto kernels = make_self_consistency_kernels(GetParam());
  kernels->load(s.problem);
  const MeshModes modes = kernels->diagonalise(std::vector<double>(9 * s.pairs.size(), 0.0));
  const auto nb = static_cast<std::size_t>(s.deck.crystal.n_branches());
  const std::vector<Complex64> d =
      DynamicalMatrixBuilder(s.deck.crystal, s.deck.second_order, s.harmonic).at(Vec3{}, false).d;
  for (std::size_t mode = 0; mode < nb; ++mode) {
    const Complex64* e = &modes.gamma_vectors[mode * nb];
    double norm = 0.0;
    for (std::size_t x = 0; x < nb; ++x) {
      norm += std::norm(e[x]);
      Complex64 image = 0.0;
      for (std::size_t y = 0; y < nb; ++y) image += d[x * nb + y] * e[y];
      EXPECT_NEAR(std::abs(image - modes.omega2[mode] * e[x]), 0.0, 1e-12 * largest(modes.omega2));
    }
    EXPECT_NEAR(norm, 1.0, 1e-12);
  }
}

QUASI_ON_EVERY_DEVICE(SelfConsistencyKernelsOn);

}  // namespace
}  // namespace quasi::thermal::test
