#pragma once

#include <filesystem>
#include <string>

namespace quasi::test {

/// Built-in silicon, 2 × 2 × 2, as files that an engine reads: WFN, WFNq, RHO, vxc.dat and
/// deck.toml, whose [sigma] ends with `more`. V_xc is a toy (SmallSilicon::toy_vxc) that opens the
/// gap by 0.3 eV in the first turn of a loop.
/// @return the deck
std::filesystem::path write_loop_job(const std::filesystem::path& directory,
                                     const std::string& more);

/// Of such jobs: an evGW₀ loop, a loop over states, and the full matrix after the diagonal with its
/// Dyson equation; each some turns or parts long.
inline constexpr const char* kEigenvalueLoop =
    "outer_loop = \"evgw0\"\nouter_tolerance_ev = 1e-7\n";
inline constexpr const char* kStateLoop = "outer_loop = \"qsgw0\"\nouter_tolerance_ev = 1e-4\n";
inline constexpr const char* kFullMatrix =
    "full_matrix = true\nsolution = \"dyson\"\nmatrix_step_ev = 2.0\n";

}  // namespace quasi::test
