// Tests volumes, areas and faces of the cells of the beam scheme.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "workers/mosfet/model/beam/beam_grid.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kKt_ev = 0.025851999786435;
constexpr double kAlpha_per_ev = 0.5;

// The sum over κ is the density of states of one sign of k_x: ∫ω (π/4)(1+2αw) dH.
TEST(BeamCell, VolumesAddUpToTheDensityOfStates) {
  const BeamShape shape{.kt_ev = kKt_ev};
  const BeamGrid grid{.n_h = 40,
                      .n_kappa = 16,
                      .dh_ev = 0.0125,
                      .dkappa = 0.06,
                      .alpha_per_ev = kAlpha_per_ev,
                      .shape = shape};
  for (const double edge : {0.1, 0.1031, 0.1124}) {
    for (int k = 7; k < 30; ++k) {
      double volume = 0.0, exact = 0.0;
      for (int j = 0; j < grid.n_kappa; ++j)
        volume += beam_volume(grid.cell(k, j), shape, kAlpha_per_ev, edge);
      const double low = std::max(edge, grid.h_low_ev(k)), high = grid.h_low_ev(k + 1);
      constexpr int kPoints = 4000;
      for (int p = 0; p < kPoints && high > low; ++p) {
        const double h = low + (high - low) * (p + 0.5) / kPoints;
        exact += shape.at(h, grid.centre_ev(k)) * units::kPi / 4.0 *
                 (1.0 + 2.0 * kAlpha_per_ev * (h - edge)) * (high - low) / kPoints;
      }
      EXPECT_NEAR(volume, exact, 1e-6 * exact + 1e-18) << edge << ' ' << k;
    }
  }
}

TEST(BeamCell, AreasAddUpToTheMomentaAndOpenCellsAreEqualToTheBit) {
  for (const bool fermi : {false, true}) {
    const BeamShape shape{.kt_ev = kKt_ev, .fermi_ev = 0.2, .fermi = fermi};
    const BeamGrid grid{.n_h = 40,
                        .n_kappa = 16,
                        .dh_ev = 0.0125,
                        .dkappa = 0.06,
                        .alpha_per_ev = kAlpha_per_ev,
                        .shape = shape};
    const double edge = 0.1031;
    for (int k = 7; k < 30; ++k) {
      double area = 0.0, exact = 0.0;
      for (int j = 0; j < grid.n_kappa; ++j) {
        const BeamCell cell = grid.cell(k, j);
        area += beam_area(cell, shape, kAlpha_per_ev, edge);
        if (edge + beam_least_energy(cell.kappa_high, kAlpha_per_ev) < cell.h_low_ev) {
          EXPECT_EQ(beam_area(cell, shape, kAlpha_per_ev, edge),
                    cell.full_ev * (cell.kappa_high - cell.kappa_low));
        }
      }
      const double low = std::max(edge, grid.h_low_ev(k)), high = grid.h_low_ev(k + 1);
      constexpr int kPoints = 20000;
      for (int p = 0; p < kPoints && high > low; ++p) {
        const double t = (p + 0.5) / kPoints, h = low + (high - low) * t * t;
        exact += 2.0 * t * shape.at(h, grid.centre_ev(k)) *
                 std::sqrt(beam_gamma(h - edge, kAlpha_per_ev)) * (high - low) / kPoints;
      }
      EXPECT_NEAR(area, exact, 1e-6 * exact + 1e-18) << k;
    }
  }
}

// The maximum of a parabola moves from node to node without a jump, and one face is at its top.
TEST(BeamFaces, TheTopIsThatOfTheParabolaAndContinuous) {
  std::vector<double> before;
  for (int step = 0; step <= 400; ++step) {
    const double place = 5.0 + step / 200.0;
    std::vector<double> nodes(12), faces(13);
    for (int i = 0; i < 12; ++i) nodes[i] = 0.3 - 0.01 * (i - place) * (i - place);
    face_energies(nodes.data(), 12, faces.data());
    EXPECT_NEAR(*std::max_element(faces.begin(), faces.end()), 0.3, 1e-12);
    for (std::size_t k = 0; k < before.size(); ++k)
      EXPECT_LT(std::fabs(faces[k] - before[k]), 1.5e-3) << step << ' ' << k;
    before = faces;
  }
}

}  // namespace
}  // namespace quasi::mosfet
