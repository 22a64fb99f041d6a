// Tests the static bubble of the third order: a closed form, an independent program, and its laws
// (docs/theory/thermal.md 14.1).

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/support/every_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/kernels/renormalisation/on_cpu.hpp"
#include "workers/thermal/kernels/renormalisation/static_bubble_flow.hpp"
#include "workers/thermal/solver/harmonic/canonical_vectors.hpp"
#include "workers/thermal/solver/harmonic/harmonic.hpp"
#include "workers/thermal/solver/renormalisation/static_bubble.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

using Complex64 = std::complex<double>;

constexpr double kSpring_ev_a2 = 5.0;
constexpr double kCubic_ev_a3 = -30.0;

/// Two atoms with V = k|d|²/2 + g d_x³/6, where d is the vector between them.
LatticeModel oscillator() {
  LatticeModel model;
  Crystal& c = model.crystal;
  c.lattice_nm = {Vec3{0.5, 0, 0}, Vec3{0, 0.6, 0}, Vec3{0, 0, 0.7}};
  c.position = {Vec3{0, 0, 0}, Vec3{0.3, 0, 0}};
  c.type = {0, 0};
  c.element = {"Si"};
  c.mass_amu = {28.0855, 28.0855};
  c.g_factor = {0.0, 0.0};
  model.second_order.n_atoms = 2;
  for (const int pair : {1, -1, -1, 1})
    for (int e = 0; e < 9; ++e)
      model.second_order.value.push_back(
          e % 4 == 0 ? pair * kSpring_ev_a2 * kCodata2018.ev_per_a2_amu_to_omega2 : 0.0);
  model.third_order.order = 3;
  for (int ends = 0; ends < 8; ++ends) {
    int sign = 1;
    std::vector<int> key;
    for (int slot = 0; slot < 3; ++slot) {
      key.push_back(ends >> slot & 1);
      if (key.back() == 0) sign = -sign;
    }
    key.resize(9, 0);
    std::vector<double> block(27, 0.0);
    block[0] = sign * kCubic_ev_a3;
    model.third_order.append(key, block);
  }
  SymmetryOptions one_point;
  one_point.mesh = {1, 1, 1};
  model.symmetry = find_symmetry(c, one_point);
  return model;
}

// One oscillator Q = d√(m/2) with ω² = 2k/m and V = ω²Q²/2 + g'Q³/6. The second derivative of its
// self-consistent free energy by the mean position is ω² + D^B with
//   D^B = −ħg'²/(4ω²) [(1 + 2n)/2ω + (ħ/k_BT) n(n + 1)].
// An independent program gives D^B ω³/ħg'² at ħω/k_BT = 5 and 1, printed to eight digits.
TEST(StaticBubble, OneOscillatorHasItsClosedForm) {
  const LatticeModel model = oscillator();
  const double unit = kCodata2018.ev_per_a2_amu_to_omega2, mass = 28.0855;
  const double omega = std::sqrt(2.0 * kSpring_ev_a2 * unit / mass);
  const double hbar = kCodata2018.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10;
  const double cubic = kCubic_ev_a3 * std::pow(2.0 / mass, 1.5) * unit;
  for (const auto& [x, printed] :
       {std::pair{5.0, -0.01217097 / 0.09}, {1.0, -0.04505963 / 0.09}, {INFINITY, -0.125}}) {
    const double temperature_k = std::isinf(x) ? 0.0 : kCodata2018.hbar_over_kb_k_ps() * omega / x;
    const StaticBubble bubble = static_bubble(model, model.symmetry, {}, temperature_k, Device{});
    const double n = std::isinf(x) ? 0.0 : 1.0 / std::expm1(x);
    const double occupied = std::isinf(x) ? 0.0 : x / omega * n * (n + 1.0);
    const double expected = -0.25 * hbar * cubic * cubic / (omega * omega) *
                            ((1.0 + 2.0 * n) / (2.0 * omega) + occupied);
    const double found =
        0.5 * (bubble.matrix[0] - bubble.matrix[3] - bubble.matrix[18] + bubble.matrix[21]).real();
    EXPECT_NEAR(found / expected, 1.0, 1e-12);
    EXPECT_NEAR(found * std::pow(omega, 3) / (hbar * cubic * cubic) / printed, 1.0, 1e-6);
    // Nothing else is coupled: the trace is that of the oscillator.
    double trace = 0.0;
    for (int i = 0; i < 6; ++i) trace += bubble.matrix[static_cast<std::size_t>(7 * i)].real();
    EXPECT_NEAR(trace / expected, 1.0, 1e-12);
  }
}

Deck deck_of(const std::string& name, const std::string& mesh, bool folded) {
  return read_deck(test::model(name), test::settings_of({"ngrid=" + mesh, "T=300",
                                                         folded ? "symmetry=T" : "symmetry=F"}));
}

StaticBubble bubble_of(const Deck& deck, double temperature_k) {
  return static_bubble(deck, deck.symmetry, deck.control.harmonic_options(), temperature_k,
                       Device{});
}

double largest(const std::vector<Complex64>& values) {
  double result = 0.0;
  for (const Complex64& x : values) result = std::max(result, std::abs(x));
  return result;
}

void expect_close(const std::vector<Complex64>& found, const std::vector<Complex64>& expected,
                  double limit) {
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  EXPECT_LT(worst / largest(expected), limit);
}

/// D^B by the program tests/thermal/renormalisation/py/static_bubble.py.
std::vector<Complex64> by_definition(const Deck& deck, const std::string& name,
                                     double temperature_k) {
  const quasi::test::TemporaryDirectory place;
  Mat3 lattice = deck.crystal.lattice_nm;
  for (Vec3& a : lattice) a = 10.0 * a;
  std::ofstream(place.path() / "crystal.json")
      << nlohmann::json{{"deck", test::model(name).string()},
                        {"lattice_angstrom", lattice},
                        {"mass_amu", deck.crystal.mass_amu},
                        {"supercell", deck.second_order.supercell},
                        {"temperature_k", temperature_k}};
  const std::string command = std::string(QUASI_PYTHON) + " " + QUASI_STATIC_BUBBLE + " " +
                              (place.path() / "crystal.json").string() + " " +
                              (place.path() / "matrix.txt").string();
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::vector<Complex64> matrix;
  std::ifstream in(place.path() / "matrix.txt");
  for (double re = 0.0, im = 0.0; in >> re >> im;) matrix.emplace_back(re, im);
  return matrix;
}

// Silicon, and a hexagonal crystal of two masses whose operations move atoms by fractions of the
// cell. The limit 1e-8 leaves room for the difference of nearly equal frequencies in the other
// program.
TEST(StaticBubble, AgreesWithAnIndependentProgram) {
  for (const auto& [name, mesh, temperature_k] : {std::tuple{"silicon-sw", "3,3,3", 300.0},
                                                  {"wurtzite-sw", "3,3,2", 0.0},
                                                  {"wurtzite-sw", "3,3,2", 700.0}}) {
    SCOPED_TRACE(name);
    const Deck deck = deck_of(name, mesh, false);
    expect_close(bubble_of(deck, temperature_k).matrix, by_definition(deck, name, temperature_k),
                 1e-8);
  }
}

// The decks print nine digits, which break the symmetry of their constants by 1e-9: limit 1e-7.
TEST(StaticBubble, IrreduciblePointsGiveAllOthers) {
  for (const auto& [name, mesh] :
       {std::pair{"silicon-sw", "4,4,4"}, {"silicon-sw", "2,2,4"}, {"wurtzite-sw", "3,3,2"}}) {
    SCOPED_TRACE(std::string(name) + " " + mesh);
    const Deck folded = deck_of(name, mesh, true);
    ASSERT_LT(folded.symmetry.n_irreducible(), folded.symmetry.mesh.size() / 2);
    expect_close(bubble_of(folded, 300.0).matrix,
                 bubble_of(deck_of(name, mesh, false), 300.0).matrix, 1e-7);
  }
}

// In real space the constants obey the sum rule to rounding, and give back the matrices of the
// mesh.
TEST(StaticBubble, PairsGiveTheMatricesOfTheMesh) {
  const Deck deck = deck_of("wurtzite-sw", "3,3,2", true);
  const HarmonicOptions harmonic = deck.control.harmonic_options();
  const StaticBubble bubble = bubble_of(deck, 300.0);
  std::vector<std::array<double, 9>> sum(4);
  double size = 0.0;
  for (const PairCorrection& pair : bubble.correction)
    for (std::size_t e = 0; e < 9; ++e) {
      sum[static_cast<std::size_t>(pair.atom)][e] += pair.value_ev_a2[e];
      size = std::max(size, std::fabs(pair.value_ev_a2[e]));
    }
  for (const auto& block : sum)
    for (const double x : block) EXPECT_NEAR(x, 0.0, 1e-12 * size);
  const SecondOrder whole =
      with_correction(deck.second_order, bubble.correction, harmonic.constants);
  const DynamicalMatrixBuilder without(deck.crystal, deck.second_order, harmonic);
  const DynamicalMatrixBuilder with(deck.crystal, whole, harmonic);
  std::vector<Complex64> difference;
  for (std::int64_t point = 0; point < deck.symmetry.mesh.size(); ++point) {
    int c[3];
    deck.symmetry.mesh.coordinates(point, c);
    const Vec3 q{c[0] / 3.0, c[1] / 3.0, c[2] / 2.0};
    const auto a = with.at(q, false).d, b = without.at(q, false).d;
    for (std::size_t i = 0; i < a.size(); ++i) difference.push_back(a[i] - b[i]);
  }
  // The sum rule of the printed third order is broken by 1e-8, which the diagonal takes up.
  expect_close(difference, bubble.matrix, 1e-7);
}

// The bubble lowers every frequency: −D^B is a positive matrix.
TEST(StaticBubble, IsNegative) {
  const Deck deck = deck_of("silicon-sw", "4,4,4", true);
  for (const double temperature_k : {0.0, 300.0, 1000.0}) {
    const StaticBubble bubble = bubble_of(deck, temperature_k);
    const double size = largest(bubble.matrix);
    for (std::size_t point = 0; point < 64; ++point) {
      double values[6];
      Complex64 vectors[36];
      diagonalise_hermitian(6,
                            {bubble.matrix.begin() + static_cast<std::ptrdiff_t>(36 * point),
                             bubble.matrix.begin() + static_cast<std::ptrdiff_t>(36 * point + 36)},
                            values, vectors);
      EXPECT_LT(values[5], 1e-9 * size);
    }
  }
}

/// D^B at all points of the mesh.
std::vector<Complex64> matrices_of(StaticBubbleKernels& kernels,
                                   const StaticBubbleProblem& problem) {
  std::vector<std::int64_t> points(static_cast<std::size_t>(problem.mesh.size()));
  std::iota(points.begin(), points.end(), 0);
  kernels.load(problem);
  return kernels.matrices(points);
}

StaticBubbleProblem problem_of(const std::string& name, const std::string& mesh,
                               double temperature_k) {
  const Deck deck = deck_of(name, mesh, false);
  return make_static_bubble_problem(deck, deck.symmetry.mesh, deck.control.harmonic_options(),
                                    temperature_k);
}

// The products of the GPU run on the host here, with one plane of the mesh in a batch, some, and
// all. The limit is that of rounding.
TEST(StaticBubble, BatchedProductsGiveTheSumOfTheCpu) {
  for (const auto& [name, mesh, temperature_k] :
       {std::tuple{"silicon-sw", "3,4,5", 300.0}, {"wurtzite-sw", "3,2,2", 0.0}}) {
    const StaticBubbleProblem problem = problem_of(name, mesh, temperature_k);
    const auto expected = matrices_of(*make_static_bubble_kernels(Device{}), problem);
    for (const std::int64_t work_bytes : {1, 500'000, 1 << 30}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(work_bytes) + " bytes");
      StaticBubbleFlow<RenormalisationOnCpu<64>> kernels(Device{}, work_bytes);
      expect_close(matrices_of(kernels, problem), expected, 1e-12);
    }
  }
}

class StaticBubbleOn : public quasi::test::OnEveryDevice {};

// Different orders of the sums differ by rounding.
TEST_P(StaticBubbleOn, EveryDeviceGivesTheMatricesOfTheCpu) {
  for (const auto& [name, mesh, temperature_k] : {std::tuple{"silicon-sw", "4,4,4", 300.0},
                                                  {"wurtzite-sw", "3,3,2", 0.0},
                                                  {"wurtzite-sw", "3,3,2", 700.0}}) {
    SCOPED_TRACE(name);
    const StaticBubbleProblem problem = problem_of(name, mesh, temperature_k);
    const auto found = matrices_of(*make_static_bubble_kernels(GetParam()), problem);
    expect_close(found, matrices_of(*make_static_bubble_kernels(Device{}), problem), 1e-11);
    EXPECT_EQ(found, matrices_of(*make_static_bubble_kernels(GetParam()), problem));
  }
}

QUASI_ON_EVERY_DEVICE(StaticBubbleOn);

TEST(StaticBubble, NeedsTheThirdOrder) {
  Deck deck = deck_of("silicon-sw", "2,2,2", true);
  deck.third_order = {};
  EXPECT_THROW(bubble_of(deck, 300.0), InvalidInput);
}

}  // namespace
}  // namespace quasi::thermal
