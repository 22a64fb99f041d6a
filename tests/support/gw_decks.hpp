#pragma once

#include <string>

// Small gw decks for tests on several devices, on several processes and with interruptions.

namespace quasi::test {

/// Γ alone in an 8-atom cell: there is one q, so devices share its valence blocks and its inner
/// bands.
inline const std::string kGwGamma = R"(
kind = "gw"
checkpoint_interval_s = 0.0
[meanfield]
source = "epm"
cell = "cubic"
cutoff_ry = 5.0
bands = 130
[epsilon]
cutoff_ry = 2.5
[sigma]
band_min = 12
band_max = 20
static_remainder = true
)";

/// The common part of the decks on a grid: three irreducible q.
inline const std::string kGwGridBasis = R"(
kind = "gw"
checkpoint_interval_s = 0.0
[meanfield]
source = "epm"
crystal = "gaas"
cutoff_ry = 6.0
k_grid = [2, 2, 2]
bands = 20
[epsilon]
cutoff_ry = 3.0
)";

/// Real and imaginary frequencies.
inline const std::string kGwGrid = kGwGridBasis + R"(
real_step_ev = 1.0
imaginary_points = 6
[sigma]
method = "contour"
band_max = 8
)";

/// The full matrix, by parts of (k, q, block of bands) after the diagonal.
inline const std::string kGwMatrix = kGwGridBasis + R"(
[sigma]
band_max = 8
full_matrix = true
matrix_step_ev = 4.0
)";

/// First orders in displacements of two of eight atoms, by two parts of the bands at the one q.
inline const std::string kGwPerturbation = R"(
kind = "gw"
checkpoint_interval_s = 0.0
[meanfield]
source = "epm"
cell = "cubic"
cutoff_ry = 3.0
bands = 70
[epsilon]
cutoff_ry = 1.5
[sigma]
band_min = 15
band_max = 18
[perturbation]
atoms = [1, 2]
)";

}  // namespace quasi::test
