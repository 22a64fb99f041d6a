// χ in packed host memory, and jobs whose sums do not fit their device (docs/theory/gw.md 4).

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"

namespace quasi::gw {
namespace {

constexpr ChiShape kShape{.n_static = 5, .n_frequencies = 2, .n = 3};

/// Returns values as PartialChi::read() gives them, with 0 below the diagonal of χ(0).
std::vector<Cplx> values_of(double seed, bool real) {
  std::vector<Cplx> values(static_cast<std::size_t>(kShape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = seed + static_cast<double>(i);
    if (i >= 25 || i / 5 <= i % 5) values[i] = {std::sin(x), real ? 0.0 : std::cos(x)};
  }
  return values;
}
std::vector<Cplx> read(const PartialChi& chi) {
  std::vector<Cplx> values(static_cast<std::size_t>(chi.shape().size()));
  chi.read(values.data());
  return values;
}

TEST(PackedChi, SumsHoldTheValuesOfWholeMatrices) {
  for (const bool first_real : {true, false})
    for (const bool second_real : {true, false}) {
      const std::vector<Cplx> a = values_of(1.0, first_real), b = values_of(2.0, second_real);
      PackedSum sum(kShape, a.data());
      EXPECT_EQ(sum.is_real(), first_real);
      EXPECT_EQ(read(sum), a);
      sum.add(PackedSum(kShape, b.data()));
      HostChi whole(kShape, a);
      whole.add(HostChi(kShape, b));
      EXPECT_EQ(read(sum), read(whole));
      EXPECT_EQ(sum.diagonal(), whole.diagonal());
      EXPECT_EQ(sum.corner(3), whole.corner(3));
    }
}

TEST(PackedChi, WeightedSumsMixRealAndComplexValues) {
  const std::vector<Cplx> a = values_of(1.0, true), b = values_of(2.0, false);
  const PackedChi one(HostChi(kShape, a)), other(PackedSum(kShape, b.data()));
  EXPECT_TRUE(one.is_real());
  EXPECT_EQ(one.piece().count, 1u + 15u + 18u);
  EXPECT_EQ(other.piece().count, 1u + 2u * 33u);
  const UnsetVector<Cplx> sum = weighted_sum({&one, &other}, {1.0, 0.25});
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], 1.0 * a[i] + 0.25 * b[i]);
  const PackedChi again(kShape, one.piece());
  EXPECT_EQ(weighted_sum({&again}, {1.0})[7], a[7]);
}

// A packed sum hands its values over, and other forms are packed.
TEST(PackedChi, ASumIsPackedWithoutACopy) {
  for (const bool real : {true, false}) {
    const std::vector<Cplx> a = values_of(1.0, real);
    auto sum = std::make_unique<PackedSum>(kShape, a.data());
    const double* const at = sum->values().data();
    const PackedChi taken = packed(std::move(sum)),
                    made = packed(std::make_unique<HostChi>(kShape, a));
    EXPECT_EQ(taken.piece().data, at);
    EXPECT_EQ(taken.shape(), kShape);
    for (const PackedChi* one : {&taken, &made}) {
      EXPECT_EQ(one->is_real(), real);
      EXPECT_EQ(weighted_sum({one}, {1.0})[7], a[7]);
    }
  }
}

TEST(PackedChi, OtherShapesAreRefused) {
  const std::vector<Cplx> a = values_of(1.0, true);
  PackedSum sum(kShape, a.data());
  EXPECT_THROW(sum.add(PackedSum({.n_static = 5}, a.data())), std::logic_error);
}

std::vector<double> energies(const std::string& keys, std::int64_t budget_bytes) {
  SilentProgress silent;
  const auto kernels = make_gw_kernels(find_device("cpu"));
  const Calculation run = run_calculation(
      parse_deck("[meanfield]\nsource = \"epm\"\ncell = \"cubic\"\ncutoff_ry = 5.0\nbands = 60\n" +
                     keys + "[epsilon]\ncutoff_ry = 3.0\n",
                 {}, "test", "."),
      *kernels, budget_bytes, silent);
  std::vector<double> list;
  for (const Quasiparticle& qp : run.quasiparticles) {
    list.push_back(qp.sigma_ev);
    list.push_back(qp.x_ev);
  }
  return list;
}

// A budget of 1.5 MiB has no room for sums of χ on the device, and cuts the exchange into blocks
// of bands. The terms are equal and are added in another order: 1e-10 eV of 10 eV.
TEST(SmallBudgets, GiveTheSameEnergies) {
  for (const char* keys : {"", "crystal = \"gaas\"\n", "k_grid = [2, 1, 1]\n"}) {
    const std::vector<double> whole = energies(keys, std::int64_t{1} << 30),
                              cut = energies(keys, std::int64_t{3} << 19);
    ASSERT_EQ(whole.size(), cut.size());
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], cut[i], 1e-10) << keys;
  }
}

}  // namespace
}  // namespace quasi::gw
