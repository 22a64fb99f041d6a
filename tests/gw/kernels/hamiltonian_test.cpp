// H as an operator on every device: products, functions of H and blocks of states against those of
// the processor's operator and against the equations that define them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/gw/kernels/gw_kernels_on_device.hpp"
#include "tests/gw/kernels/random_problem.hpp"
#include "workers/gw/kernels/gw_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using gw::HamiltonianOperator;
using gw::HamiltonianParts;

/// Selects a kind of H: real without projectors, complex without or with them, or with two
/// components that projectors couple.
enum class Kind { kReal, kComplex, kProjectors, kSpinors };

class HamiltonianOnDevice : public test::OnEveryDevice {
 protected:
  std::unique_ptr<gw::GwKernels> kernels_ = gw::make_gw_kernels(GetParam());
};

/// Adds three projectors to the parts, and a Hermitian matrix D between them and the components.
void couple_components(HamiltonianParts& parts) {
  constexpr std::size_t kProjectors = 3;
  parts.n_spinor = 2;
  parts.beta = test::random_complex(kProjectors * parts.box_index.size(), 6);
  for (Cplx& b : parts.beta) b *= 0.05;
  for (const Cplx& b : parts.beta) parts.right.push_back(std::conj(b));
  const auto d = test::random_complex(4 * kProjectors * kProjectors, 7);
  parts.coupling.begin.push_back(0);
  for (std::size_t row = 0; row < 2 * kProjectors; ++row) {
    for (std::size_t column = 0; column < 2 * kProjectors; ++column) {
      if ((row + column) % 3 == 1) continue;  // Rows get different numbers of elements.
      parts.coupling.column.push_back(static_cast<std::int32_t>(column));
      parts.coupling.value.push_back(d[row * 2 * kProjectors + column] +
                                     std::conj(d[column * 2 * kProjectors + row]));
    }
    parts.coupling.begin.push_back(static_cast<std::int32_t>(parts.coupling.value.size()));
  }
}

/// Returns a Hermitian operator on 343 plane waves of a box of 12 × 15 × 18 points. Its elements
/// are of order 1.
HamiltonianParts parts_of(Kind kind) {
  HamiltonianParts parts;
  parts.box = {12, 15, 18};
  const std::vector<int> sphere = test::frequencies_within({3, 3, 3});
  parts.box_index = test::box_indices(sphere, parts.box);
  for (std::size_t g = 0; g < parts.box_index.size(); ++g)
    parts.kinetic_ry.push_back(0.1 * (sphere[3 * g] * sphere[3 * g] +
                                      sphere[3 * g + 1] * sphere[3 * g + 1] +
                                      1.3 * sphere[3 * g + 2] * sphere[3 * g + 2]));
  const int terms[][3] = {{1, 0, 0}, {0, 2, -1}, {1, -1, 2}};
  const auto value = test::random_complex(3, 4);
  for (std::size_t i = 0; i < 3; ++i) {
    const int opposite[] = {-terms[i][0], -terms[i][1], -terms[i][2]};
    const Cplx v = kind == Kind::kReal ? value[i].real() : value[i];
    parts.potential_ry.emplace_back(test::fold(terms[i], parts.box), v);
    parts.potential_ry.emplace_back(test::fold(opposite, parts.box), std::conj(v));
  }
  if (kind == Kind::kSpinors) couple_components(parts);
  if (kind != Kind::kProjectors) return parts;
  // right = Σ_q D_pq β*_q with D = diag(1, −½) is Hermitian together with β.
  parts.beta = test::random_complex(2 * parts.box_index.size(), 5);
  for (Cplx& b : parts.beta) b *= 0.05;
  for (std::size_t i = 0; i < parts.beta.size(); ++i)
    parts.right.push_back((i < parts.box_index.size() ? 1.0 : -0.5) * std::conj(parts.beta[i]));
  return parts;
}

double largest_difference(const std::vector<Cplx>& a, const std::vector<Cplx>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// 1e-12: transforms of 3,240 points and sums of 343 products of order 1.
TEST_P(HamiltonianOnDevice, AppliesTheOperator) {
  constexpr std::int64_t kRows = 131;  // two batches of 64 and a rest
  for (const Kind kind : {Kind::kReal, Kind::kComplex, Kind::kProjectors, Kind::kSpinors}) {
    const HamiltonianOperator h(parts_of(kind));
    EXPECT_EQ(h.is_real(), kind == Kind::kReal);
    const std::int64_t n = h.size();
    const auto x = test::random_complex(static_cast<std::size_t>(kRows * n), 11);
    std::vector<Cplx> expected(x.size()), found(x.size());
    h.apply(view<const Cplx>(x, kRows, n), view<Cplx>(expected, kRows, n));
    kernels_->hamiltonian().load(h)->apply(view<const Cplx>(x, kRows, n),
                                           view<Cplx>(found, kRows, n));
    EXPECT_LT(largest_difference(found, expected), 1e-12);
  }
}

// 1e-11: 60 steps of the recursion.
TEST_P(HamiltonianOnDevice, ExpandsFunctions) {
  constexpr std::int64_t kRows = 7, kFunctions = 3, kDegree = 60;
  for (const Kind kind : {Kind::kReal, Kind::kComplex, Kind::kProjectors, Kind::kSpinors}) {
    const HamiltonianOperator h(parts_of(kind));
    const auto loaded = kernels_->hamiltonian().load(h);
    const std::int64_t n = h.size();
    std::vector<double> coefficients;
    for (const Cplx& c : test::random_complex(kFunctions * (kDegree + 1), 12))
      coefficients.push_back(c.real());
    const gw::ChebyshevSeries series{2.0, 8.0,
                                     view<const double>(coefficients, kFunctions, kDegree + 1)};
    const auto x = test::random_complex(static_cast<std::size_t>(kRows * n), 13);
    std::vector<Cplx> expected(static_cast<std::size_t>(kFunctions * kRows * n)),
        found(expected.size());
    const double growth =
        h.expand(series, view<const Cplx>(x, kRows, n), view<Cplx>(expected, kFunctions, kRows, n));
    EXPECT_LE(growth, 1.0 + 1e-12) << "the interval holds the spectrum";
    EXPECT_LE(loaded->expand(series, view<const Cplx>(x, kRows, n),
                             view<Cplx>(found, kFunctions, kRows, n)),
              1.0 + 1e-12);
    EXPECT_LT(largest_difference(found, expected), 1e-11);
    if (kind != Kind::kReal) continue;
    std::vector<double> real;
    for (const Cplx& value : x) real.push_back(value.real());
    std::vector<double> of_real(expected.size());
    loaded->expand(series, view<const double>(real, kRows, n),
                   view<double>(of_real, kFunctions, kRows, n));
    for (std::size_t i = 0; i < of_real.size(); ++i)
      ASSERT_NEAR(of_real[i], expected[i].real(), 1e-11) << i;
  }
}

// An interval that lacks an eigenvalue lets the terms of the recursion grow.
// x = y + Σ_s c_s s with y orthogonal to every state s gives y. The states are unit vectors
// scaled by phases, so that all sums are known. 1e-14: one rounding of numbers of order 1.
template <typename T>
void check_remove(gw::LoadedHamiltonian& h, std::int64_t n, const std::vector<T>& random) {
  constexpr std::int64_t kStates = 37, kRows = 5;
  std::vector<T> states(static_cast<std::size_t>(kStates * n)),
      x(random.begin(), random.begin() + kRows * n);
  const auto place_of = [n](std::int64_t s) { return (s * 7) % n; };
  for (std::int64_t s = 0; s < kStates; ++s)
    states[static_cast<std::size_t>(s * n + place_of(s))] =
        random[static_cast<std::size_t>(s)] / std::abs(random[static_cast<std::size_t>(s)]);
  std::vector<T> expected = x;
  for (std::int64_t s = 0; s < kStates; ++s)
    for (std::int64_t row = 0; row < kRows; ++row)
      expected[static_cast<std::size_t>(row * n + place_of(s))] = 0.0;
  h.remove(view<const T>(states, kStates, n), view<T>(x, kRows, n));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LE(std::abs(x[i] - expected[i]), 1e-14) << i;
}

TEST_P(HamiltonianOnDevice, RemovesStates) {
  for (const Kind kind : {Kind::kReal, Kind::kComplex}) {
    const HamiltonianOperator h(parts_of(kind));
    const auto loaded = kernels_->hamiltonian().load(h);
    const auto random = test::random_complex(static_cast<std::size_t>(5 * h.size()), 77);
    std::vector<double> real;
    for (const Cplx& value : random) real.push_back(value.real());
    check_remove<Cplx>(*loaded, h.size(), random);
    check_remove<double>(*loaded, h.size(), real);
  }
}

TEST_P(HamiltonianOnDevice, NoticesAnIntervalThatIsTooSmall) {
  const HamiltonianOperator h(parts_of(Kind::kComplex));
  const std::int64_t n = h.size();
  const std::vector<double> coefficients(40, 1.0);
  const auto x = test::random_complex(static_cast<std::size_t>(n), 13);
  std::vector<Cplx> found(x.size());
  const double growth = kernels_->hamiltonian().load(h)->expand(
      {2.0, 1.0, view<const double>(coefficients, 1, 40)}, view<const Cplx>(x, 1, n),
      view<Cplx>(found, 1, 1, n));
  EXPECT_GT(growth, 10.0);
}

/// Returns a block of random states.
std::unique_ptr<gw::StateBlock> random_block(gw::LoadedHamiltonian& h, std::int64_t n,
                                             std::int64_t count) {
  auto block = h.make_block();
  std::vector<double> states;
  for (const Cplx& value : test::random_complex(static_cast<std::size_t>(count * n), 21))
    states.push_back(value.real());
  block->append(view<const double>(states, count - 5, n));
  block->append({states.data() + (count - 5) * n, {5, n}});
  return block;
}

/// Largest |⟨x_i|x_j⟩ − δ_ij|.
double distance_from_orthonormal(const std::vector<Cplx>& x, std::int64_t count, std::int64_t n) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      Cplx sum = i == j ? -1.0 : 0.0;
      for (std::int64_t g = 0; g < n; ++g) sum += std::conj(x[i * n + g]) * x[j * n + g];
      largest = std::max(largest, std::abs(sum));
    }
  return largest;
}

// Rayleigh–Ritz gives orthonormal states with ⟨ψ|H|ψ⟩ = E, and the residuals are ‖Hψ − Eψ‖. States
// below `first` stay as they are.
TEST_P(HamiltonianOnDevice, ProjectsBlocks) {
  constexpr std::int64_t kCount = 41, kFirst = 6;
  for (const Kind kind : {Kind::kReal, Kind::kComplex, Kind::kProjectors, Kind::kSpinors}) {
    const HamiltonianOperator h(parts_of(kind));
    const auto loaded = kernels_->hamiltonian().load(h);
    const std::int64_t n = h.size();
    const auto block = random_block(*loaded, n, kCount);
    block->orthonormalise(0);
    const std::vector<Cplx> before = block->read(kFirst);
    const gw::RitzPairs pairs = block->project(kFirst);
    const std::vector<Cplx> x = block->read(kCount);
    EXPECT_LT(distance_from_orthonormal(x, kCount, n), 1e-12);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), x.begin()));
    std::vector<Cplx> hx(x.size());
    h.apply(view<const Cplx>(x, kCount, n), view<Cplx>(hx, kCount, n));
    ASSERT_EQ(pairs.energy_ry.size(), static_cast<std::size_t>(kCount - kFirst));
    EXPECT_TRUE(std::is_sorted(pairs.energy_ry.begin(), pairs.energy_ry.end()));
    for (std::int64_t i = kFirst; i < kCount; ++i) {
      const auto pair = static_cast<std::size_t>(i - kFirst);
      double residual2 = 0.0;
      for (std::int64_t j = kFirst; j < kCount; ++j) {
        Cplx element;
        for (std::int64_t g = 0; g < n; ++g) element += std::conj(x[j * n + g]) * hx[i * n + g];
        EXPECT_LT(std::abs(element - (i == j ? pairs.energy_ry[pair] : 0.0)), 1e-11);
      }
      for (std::int64_t g = 0; g < n; ++g)
        residual2 += std::norm(hx[i * n + g] - pairs.energy_ry[pair] * x[i * n + g]);
      EXPECT_NEAR(pairs.residual_ry[pair], std::sqrt(residual2), 1e-11);
    }
  }
}

// The filter is a polynomial of H: on an eigenstate of a diagonal H it is a number, T_20 scaled to
// 1 at the lowest energy.
TEST_P(HamiltonianOnDevice, FiltersByAPolynomial) {
  HamiltonianParts parts;
  parts.kinetic_ry = {0.3, 0.7, 1.0, 4.0, 9.9};
  const HamiltonianOperator h(parts);
  const auto loaded = kernels_->hamiltonian().load(h);
  const std::int64_t n = h.size();
  const auto block = loaded->make_block();
  const std::vector<double> states{1, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  block->append(view<const double>(states, 2, n));
  const gw::ChebyshevFilter filter{
      .lower_ry = 1.0, .upper_ry = 10.0, .lowest_ry = 0.3, .degree = 20};
  block->filter(filter, 1);
  const std::vector<Cplx> found = block->read(2);
  const auto polynomial = [](double e) {
    const double t = (e - 5.5) / 4.5;
    return std::abs(t) <= 1.0 ? std::cos(20.0 * std::acos(t))
                              : std::cosh(20.0 * std::acosh(std::abs(t)));
  };
  for (std::int64_t g = 0; g < n; ++g) {
    EXPECT_EQ(found[static_cast<std::size_t>(g)], Cplx(g == 0 ? 1.0 : 0.0));
    EXPECT_NEAR(found[static_cast<std::size_t>(n + g)].real(),
                polynomial(parts.kinetic_ry[static_cast<std::size_t>(g)]) / polynomial(0.3), 1e-12);
  }
}

QUASI_ON_EVERY_DEVICE(HamiltonianOnDevice);

}  // namespace
