#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/reference_files.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/philox.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/eigensolver/operator_states.hpp"
#include "workers/gw/solver/mean_field/empirical_pseudopotential.hpp"

// H as an operator against its matrix on random vectors (docs/theory/gw.md 9.1).
namespace quasi::gw {
namespace {

using test::ReferenceCase;

/// Rounding of transforms and products of a few thousand terms stays below 1e-14 of the norm.
constexpr double kTolerance = 1e-12;

double random_number(std::size_t i, std::uint32_t row) {
  return Philox::at(static_cast<std::uint32_t>(i), row, 7, 0, 1, 2).unit() - 0.5;
}

/// Norm of the difference of H x and matrix·x, relative to the norm of H x, the largest of 11
/// random vectors. A batch holds eight, so that the last one is not full.
double deviation_from(const std::vector<Cplx>& matrix, const HamiltonianOperator& h) {
  constexpr std::int64_t kRows = 11;
  const std::int64_t n = h.size();
  std::vector<Cplx> x(static_cast<std::size_t>(kRows * n)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = {random_number(i, 0), random_number(i, 1)};
  h.apply(view<const Cplx>(x, kRows, n), view<Cplx>(y, kRows, n));
  const auto states = view<const Cplx>(x, kRows, n), result = view<const Cplx>(y, kRows, n);
  double worst = 0.0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    double difference = 0.0, norm = 0.0;
    for (std::int64_t i = 0; i < n; ++i) {
      Cplx sum;
      for (std::int64_t j = 0; j < n; ++j)
        sum += matrix[static_cast<std::size_t>(i * n + j)] * states(row, j);
      difference += std::norm(sum - result(row, i));
      norm += std::norm(sum);
    }
    worst = std::max(worst, std::sqrt(difference / norm));
  }
  return worst;
}

/// The matrix |k+G|² δ + V(G − G') by its definition.
std::vector<Cplx> local_matrix_of(const GSphere& sphere, const PotentialElements& potential) {
  const auto n = static_cast<std::size_t>(sphere.size());
  std::vector<Cplx> h(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      for (const auto& [g, value] : potential)
        if (sphere.g[i] - sphere.g[j] == g) h[i * n + j] += value;
    h[i * n + i] += sphere.kinetic_ry[i];
  }
  return h;
}

/// Crystal, sphere and potential of a built-in crystal at one k.
struct LocalCase {
  Crystal crystal;
  GSphere sphere;
  PotentialElements potential;
  HamiltonianParts parts() const { return local_parts(crystal, sphere.q, sphere.g, potential); }
};
LocalCase local_case(EmpiricalCrystal wanted, const Vec3& k) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  wanted.bands = wanted.cubic_cell ? 40 : 8;
  wanted.by_velocity = true;
  const double cutoff_ry = wanted.wavefunction_cutoff_ry;
  LocalCase c{.crystal = empirical_mean_field(wanted, *kernels, silent).crystal(),
              .sphere = {},
              .potential = empirical_potential(wanted)};
  c.sphere = make_g_sphere(c.crystal.bdot, k, cutoff_ry);
  return c;
}

class LocalOperator : public testing::TestWithParam<Vec3> {};

TEST_P(LocalOperator, IsTheMatrixOfSilicon) {
  EmpiricalCrystal crystal;
  crystal.wavefunction_cutoff_ry = 6.0;
  const LocalCase c = local_case(crystal, GetParam());
  const HamiltonianOperator h(c.parts());
  EXPECT_TRUE(h.is_real()) << "inversion about the origin makes V(G) real";
  EXPECT_LT(deviation_from(local_matrix_of(c.sphere, c.potential), h), kTolerance);
}

TEST_P(LocalOperator, IsTheMatrixOfACrystalWithoutInversion) {
  EmpiricalCrystal crystal;
  crystal.name = "gaas";
  crystal.cubic_cell = true;
  crystal.wavefunction_cutoff_ry = 4.0;
  crystal.origin_shift = {0.013, 0.02, -0.031};
  const LocalCase c = local_case(crystal, GetParam());
  const HamiltonianOperator h(c.parts());
  EXPECT_FALSE(h.is_real());
  EXPECT_LT(deviation_from(local_matrix_of(c.sphere, c.potential), h), kTolerance);
}

// Points inside the zone, on its edge and outside it.
INSTANTIATE_TEST_SUITE_P(Points, LocalOperator,
                         testing::Values(Vec3{0, 0, 0}, Vec3{0.5, 0.5, 0.0}, Vec3{0.13, -0.27, 0.4},
                                         Vec3{1.25, 0.0, -2.5}));

// Two real states share a transform: the result is that of each alone, an odd number included.
TEST(LocalOperatorOnRealStates, IsThatOnComplexStates) {
  const LocalCase c = local_case({}, {0.25, 0.0, 0.0});
  const HamiltonianOperator h(c.parts());
  ASSERT_TRUE(h.is_real());
  constexpr std::int64_t kRows = 19;
  const std::int64_t n = h.size();
  std::vector<double> x(static_cast<std::size_t>(kRows * n)), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_number(i, 3);
  std::vector<Cplx> x_complex(x.begin(), x.end()), y_complex(x.size());
  h.apply(view<const double>(x, kRows, n), view<double>(y, kRows, n));
  h.apply(view<const Cplx>(x_complex, kRows, n), view<Cplx>(y_complex, kRows, n));
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_LT(std::abs(y[i] - y_complex[i]), 1e-13) << i;
}

/// VSC and VKB of BerkeleyGW: two atoms at all eight k, and eight atoms at Γ.
class FileOperator : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { QUASI_NEED_REFERENCE(std::string("gw/") + GetParam()); }
};

TEST_P(FileOperator, IsTheMatrixOfVscAndVkb) {
  ReferenceCase files(GetParam());
  const Wavefunctions waves = read_wavefunctions(files.file("WFN"));
  const PlaneWaveField vsc = read_field(files.file("VSC"), "VSC");
  const Projectors vkb = read_projectors(files.file("VKB"));
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    const HamiltonianOperator h(hamiltonian_parts(waves, ik, 0, vsc, vkb));
    EXPECT_LT(deviation_from(dense_hamiltonian(waves, ik, 0, vsc, vkb), h), kTolerance) << ik;
  }
}

TEST_P(FileOperator, IsTheMatrixBetweenThePointsOfVkb) {
  ReferenceCase files(GetParam());
  const Wavefunctions waves = read_wavefunctions(files.file("WFN"));
  const PlaneWaveField vsc = read_field(files.file("VSC"), "VSC");
  const RadialProjectors fitted(read_projectors(files.file("VKB")));
  const Crystal& crystal = waves.header.crystal;
  const Vec3 k{0.11, -0.2, 0.37};
  const GSphere sphere = make_g_sphere(crystal.bdot, k, waves.wavefunction_cutoff_ry);
  const HamiltonianOperator h(hamiltonian_parts_at(crystal, k, sphere.g, 0, vsc, fitted));
  EXPECT_LT(deviation_from(dense_hamiltonian_at(crystal, k, sphere.g, 0, vsc, fitted), h),
            kTolerance);
}

INSTANTIATE_TEST_SUITE_P(References, FileOperator, testing::Values("si2", "si8"));

// A potential that is not Hermitian is refused, because its operator has no real spectrum.
TEST(LocalOperatorOfABrokenPotential, IsRefused) {
  LocalCase c = local_case({}, {});
  c.potential[3].second += Cplx{0.0, 0.01};
  EXPECT_THROW(HamiltonianOperator{c.parts()}, InvalidInput);
}

}  // namespace
}  // namespace quasi::gw
