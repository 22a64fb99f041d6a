// Tests ∂V^L, the part of ∂V that the dipoles of displaced ions make in a polar crystal. Its
// values are those of the written-out dipole formula. Its matrix elements obey the laws of ∂V.
// Decks with wrong charges or a wrong dielectric tensor are refused.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/gw/support/planned_deck.hpp"
#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/perturbation/wave_vector/long_range.hpp"

namespace quasi::gw {
namespace {

/// Born charge of one of two atoms, e, which is no multiple of the unit tensor.
const Mat3 kCharge{{{2.1, 0.3, 0.0}, {0.1, 1.9, 0.2}, {0.0, -0.2, 2.0}}};
const Mat3 kEpsilon{{{9.0, 0.5, 0.0}, {0.5, 11.0, 1.0}, {0.0, 1.0, 10.0}}};

Mat3 negative(Mat3 tensor) {
  for (Vec3& row : tensor) row = -1.0 * row;
  return tensor;
}

PerturbationRequest polar_request() {
  PerturbationRequest request;
  request.wanted = true;
  request.born_charges = {kCharge, negative(kCharge)};
  request.dielectric_tensor = kEpsilon;
  return request;
}

/// Returns the field of displaced ions at one plane wave, written out: the charge −∇·P of the
/// dipoles, its screened potential, and the energy of an electron in it.
Cplx literal_element(const Crystal& crystal, const Vec3& k_per_bohr, int atom, std::size_t axis) {
  Vec3 dipole{};
  for (std::size_t i = 0; i < 3; ++i) dipole[i] = (atom == 0 ? 1.0 : -1.0) * kCharge[i][axis];
  double screened = 0.0;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) screened += k_per_bohr[i] * kEpsilon[i][j] * k_per_bohr[j];
  const Vec3 tau = crystal.alat_bohr * crystal.atoms[static_cast<std::size_t>(atom)].position_alat;
  const Cplx charge = Cplx(0.0, -dot(k_per_bohr, dipole)) / crystal.volume_bohr3 *
                      std::polar(1.0, -dot(k_per_bohr, tau));
  const double alpha = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
  constexpr double kSquaredCharge_ry_bohr = 2.0;
  return -kSquaredCharge_ry_bohr * 4.0 * kPi / screened * charge *
         std::exp(-screened / (4.0 * alpha));
}

// The part must be the energy of an electron in the field of the dipoles, which literal_element()
// writes out. Elements are about 7e-4 Ry/Bohr and agree to their rounding, below 1e-14.
TEST(LongRange, IsTheFieldOfDipoles) {
  test::SmallSilicon silicon;
  const Crystal& crystal = silicon.field.crystal();
  const std::vector<Displacement> list{{1, 'x'}, {2, 'y'}, {2, 'z'}};
  const Vec3 q{0.25, -0.5, 0.125};
  const auto parts = long_range_parts(polar_request(), list, crystal, q);
  ASSERT_EQ(parts.size(), 3u);
  const std::vector<IVec3> bra{{0, 0, 0}, {1, 0, 0}, {-1, 2, 0}, {0, 1, -1}},
      ket{{0, 0, 0}, {1, 1, 0}};
  double largest = 0.0;
  for (std::size_t d = 0; d < 3; ++d) {
    const auto matrix = parts[d].potential({}, bra, ket);
    for (std::size_t i = 0; i < bra.size(); ++i)
      for (std::size_t j = 0; j < ket.size(); ++j) {
        Vec3 k{};
        for (std::size_t axis = 0; axis < 3; ++axis)
          k = k +
              crystal.blat_per_bohr * (q[axis] + bra[i][axis] - ket[j][axis]) * crystal.bvec[axis];
        const Cplx expected = literal_element(crystal, k, list[d].atom - 1,
                                              static_cast<std::size_t>(list[d].direction - 'x'));
        EXPECT_LT(std::abs(matrix[i * ket.size() + j] - expected), 1e-14);
        largest = std::max(largest, std::abs(expected));
      }
  }
  EXPECT_GT(largest, 5e-4);
}

const std::string kChain =
    "[meanfield]\nsource = \"epm\"\ncrystal = \"gaas\"\ncutoff_ry = 5.0\nk_grid = [3, 1, 1]\n"
    "bands = 14\n[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 5\n[perturbation]\n";
const std::string kTensor = "dielectric_tensor = [[10, 0, 0], [0, 10, 0], [0, 0, 10]]\n";
const std::string kCharges =
    "born_charges = [[2, 0, 0, 0, 2, 0, 0, 0, 2], "
    "[-2, 0, 0, 0, -2, 0, 0, 0, -2]]\n";

// The part is real in r, so that its elements are Hermitian between k and k + q. It does not change
// the elements themselves. Rounding: 1e-12.
TEST(LongRange, ElementsOfAJobAreHermitian) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  SilentProgress silent;
  const std::string q = "q = [[0.3333, 0, 0], [-0.3333, 0, 0]]\n";
  const auto run_with = [&](const std::string& table) {
    return run_calculation(parse_deck(kChain + q + table, {}, "test", "."), *kernels,
                           std::int64_t{1} << 30, silent);
  };
  const Calculation run = run_with(kTensor + kCharges), without = run_with("");
  const WaveVectorElements &forth = run.wave_vectors[0], &back = run.wave_vectors[1];
  const auto n = static_cast<std::size_t>(forth.elements.band_max);
  double largest = 0.0;
  for (std::size_t d = 0; d < 6; ++d)
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t other = test::position_of_ket(run, back, forth.k_plus_q[k]);
      const ElementsAtK &at = forth.elements.at[d][k], &adjoint = back.elements.at[d][other];
      EXPECT_EQ(at.mean_field, without.wave_vectors[0].elements.at[d][k].mean_field);
      EXPECT_TRUE(without.wave_vectors[0].elements.at[d][k].long_range.empty());
      for (std::size_t l = 0; l < n; ++l)
        for (std::size_t m = 0; m < n; ++m) {
          const Cplx element = at.long_range[l * n + m];
          EXPECT_LT(std::abs(element - std::conj(adjoint.long_range[m * n + l])), 1e-12);
          largest = std::max(largest, std::abs(element));
        }
    }
  EXPECT_GT(largest, 1e-3);
}

// Each mistake is refused by `run` and `validate` with the key, the value and the remedy.
TEST(LongRange, BrokenTensorsAreRefused) {
  const std::string q = "q = [[0.3333, 0, 0]]\n";
  for (const auto& [table, words] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {q + kCharges, {"dielectric_tensor", "is missing"}},
           {q + kTensor, {"born_charges", "is missing"}},
           {kTensor + kCharges, {"born_charges", "perturbation.q"}},
           {q + kTensor + "born_charges = [[2, 0, 0, 0, 2, 0, 0, 0, 2]]\n",
            {"born_charges", "1 tensors", "2 atoms"}},
           {q + kTensor +
                "born_charges = [[2, 0, 0, 0, 2, 0, 0, 0, 2], "
                "[-2, 0, 0, 0, -2, 0, 0, 0, -1]]\n",
            {"born_charges", "row 3, column 3", "0.1 e"}},
           {q + kCharges + "dielectric_tensor = [[10, 0, 0], [0, 10, 0]]\n",
            {"dielectric_tensor", "2 rows"}},
           {q + kCharges + "dielectric_tensor = [[10, 1, 0], [0, 10, 0], [0, 0, 10]]\n",
            {"dielectric_tensor", "symmetric"}},
           {q + kCharges + "dielectric_tensor = [[10, 0, 0], [0, 10, 0], [0, 0, -10]]\n",
            {"dielectric_tensor", "positive"}}}) {
    const std::string message = test::refusal_of_deck(kChain + table, ".");
    for (const std::string& word : words)
      EXPECT_NE(message.find(word), std::string::npos) << table << message;
  }
}

}  // namespace
}  // namespace quasi::gw
