#pragma once

#include <filesystem>
#include <vector>

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// eps0mat.h5 (the point q → 0 alone) and epsmat.h5 (every other q) as the field's programs write
/// and read them (spec 1.4): ε⁻¹, complex, in C order [q][1][frequency][column G'][row G][2].
/// Frequencies in the file's order: the real axis, then the imaginary one, in eV.
///
/// The rows of each q are in the order of our sphere, which gind_eps2rho records; a reader that
/// goes by that list, as the field's do, need not know it.
struct EpsilonFiles {
  std::filesystem::path gamma, others;  ///< eps0mat.h5, epsmat.h5; `others` may be empty (Γ alone)
};

/// @throws InvalidInput if ε's sphere leaves the density's plane waves; StorageError.
void write_epsilon(const EpsilonFiles& files, const MeanField& field,
                   const std::vector<DielectricMatrix>& epsilon, const EpsilonOptions& options,
                   const CoulombInteraction& coulomb);

/// What stored files say of themselves, read without their matrices.
struct StoredEpsilon {
  double cutoff_ry = 0.0;
  int bands = 0;
  std::vector<Cplx> frequencies_ry;  ///< in the order of DielectricMatrix::inverse
  int n_real = 0;
  std::vector<Vec3> q;  ///< q₀ first
};
StoredEpsilon describe_epsilon(const EpsilonFiles& files);

/// ε⁻¹ in the order of the irreducible points of `field`, Γ's from eps0mat.h5.
/// @throws InvalidInput naming file and point if the files belong to another crystal or lack a q.
std::vector<DielectricMatrix> read_epsilon(const EpsilonFiles& files, const MeanField& field,
                                           const CoulombInteraction& coulomb);

}  // namespace quasi::gw
