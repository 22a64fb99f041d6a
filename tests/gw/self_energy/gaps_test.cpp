// Gaps by quasiparticle energy, of a list of states written down here.

#include <gtest/gtest.h>

#include "workers/gw/solver/self_energy/quasiparticle.hpp"

namespace quasi::gw {
namespace {

/// A mean field of `n_k` points whose spins have the given occupied bands.
MeanField points(int n_k, const std::vector<int>& occupied) {
  SymmetryOperation identity;
  for (int i = 0; i < 3; ++i) identity.rotation[i][i] = 1;
  MeanField field{.waves = {},
                  .zone = BrillouinZone({Vec3{}}, {identity}, 1, "test"),
                  .shifted = {},
                  .shifted_zone = {},
                  .q_zone = {},
                  .nonlocal = {},
                  .density = {},
                  .n_occupied = occupied.front(),
                  .n_occupied_of_spin = occupied};
  field.waves.k.resize(static_cast<std::size_t>(n_k));
  return field;
}

/// Appends the states of one k and spin, bands counted from `first_band`.
void add(std::vector<Quasiparticle>& list, int k_index, int spin, int first_band,
         const std::vector<double>& mean_field_ev, const std::vector<double>& quasiparticle_ev) {
  for (std::size_t n = 0; n < mean_field_ev.size(); ++n) {
    Quasiparticle qp;
    qp.k_index = k_index;
    qp.spin = spin;
    qp.band = first_band + static_cast<int>(n);
    qp.mean_field_ev = mean_field_ev[n];
    qp.qp1_ev = quasiparticle_ev[n];
    list.push_back(qp);
  }
}

// Levels reorder within the empty and within the occupied bands: edges are the outermost energies,
// not those of the outermost band numbers.
TEST(Gaps, FollowEnergiesAndNotBandNumbers) {
  std::vector<Quasiparticle> list;
  add(list, 0, 1, 1, {-3.0, -1.0, 2.0, 2.4, 2.6}, {-2.0, -2.5, 2.653, 2.653, 2.541});
  const Gaps found = gaps(points(1, {2}), list);
  EXPECT_NEAR(*found.direct.at(0).quasiparticle_ev, 2.541 + 2.0, 1e-12);
  EXPECT_NEAR(*found.fundamental_ev, 2.541 + 2.0, 1e-12);
  EXPECT_NEAR(found.direct.at(0).mean_field_ev, 3.0, 1e-12);
  EXPECT_FALSE(found.direct.at(0).inverted);
}

// An occupied band that rises above an empty one leaves a positive gap between sorted energies, and
// says that the occupations of the mean field contradict it.
TEST(Gaps, AnInvertedBandIsReported) {
  std::vector<Quasiparticle> list;
  add(list, 0, 1, 3, {-1.0, -0.5, 0.2, 1.0}, {-1.0, 0.9, 0.3, 1.4});
  const Gaps found = gaps(points(1, {4}), list);
  EXPECT_TRUE(found.direct.at(0).inverted);
  EXPECT_NEAR(*found.direct.at(0).quasiparticle_ev, 0.6, 1e-12);
}

// Each spin has its own number of occupied bands and its own gap.
TEST(Gaps, OfEachSpin) {
  std::vector<Quasiparticle> list;
  add(list, 0, 1, 1, {-4, -3, 2, 5}, {-4, -3, 2, 5});
  add(list, 0, 2, 1, {-3.5, 1.0, 3, 6}, {-3.5, 1.0, 3, 6});
  const Gaps found = gaps(points(1, {2, 1}), list);
  ASSERT_EQ(found.fundamental_of_spin_ev.size(), 2u);
  EXPECT_NEAR(*found.fundamental_of_spin_ev[0], 5.0, 1e-12);
  EXPECT_NEAR(*found.fundamental_of_spin_ev[1], 4.5, 1e-12);
  EXPECT_NEAR(*found.fundamental_ev, 4.0, 1e-12);
}

// A list over some k-points says so, because other points may close the gap.
TEST(Gaps, StateTheirKPoints) {
  std::vector<Quasiparticle> list;
  add(list, 0, 1, 1, {-4, 2}, {-4, 2});
  add(list, 2, 1, 1, {-3, 1}, {-3, 1});
  const Gaps some = gaps(points(6, {1}), list);
  EXPECT_EQ(some.listed_k, 2);
  EXPECT_EQ(some.all_k, 6);
  EXPECT_FALSE(some.over_all_k());
  EXPECT_TRUE(gaps(points(2, {1}), list).over_all_k());
}

}  // namespace
}  // namespace quasi::gw
