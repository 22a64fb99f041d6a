#pragma once

#include <filesystem>
#include <vector>

#include "workers/gw/solver/screening/epsilon.hpp"

namespace quasi::gw {

/// Writes eps0mat.h5 (the point q → 0) and epsmat.h5 (every other q) in the format of BerkeleyGW
/// (docs/theory/gw.md 1.4): ε⁻¹, complex, [q][1][frequency][column G'][row G][2]. Frequencies are
/// in the order of that format, first the real axis, then the imaginary one, eV.
///
/// The rows of each q are in the order of our sphere. gind_eps2rho records that order, and readers
/// such as BerkeleyGW go by it.
/// @throws InvalidInput if ε's sphere leaves the density's plane waves; StorageError.
void write_epsilon(const EpsilonFiles& files, const MeanField& field,
                   const std::vector<DielectricMatrix>& epsilon, const EpsilonOptions& options,
                   const CoulombInteraction& coulomb);

/// The parameters of stored files.
struct StoredEpsilon {
  double epsilon_cutoff_ry = 0.0;
  int bands = 0;
  std::vector<Cplx> frequencies_ry;  ///< in the order of DielectricMatrix::inverse
  int n_real = 0;
  std::vector<Vec3> q;  ///< q₀ first
};
/// Reads the parameters without the matrices.
/// @throws InvalidInput if the files disagree or hold a matrix of a kind that is not supported
StoredEpsilon describe_epsilon(const EpsilonFiles& files);

/// Reads ε⁻¹ in the order of the irreducible points of `field`. The matrix of Γ comes from
/// eps0mat.h5.
/// @throws InvalidInput naming file and point if the files belong to another crystal or lack a q
std::vector<DielectricMatrix> read_epsilon(const EpsilonFiles& files, const MeanField& field,
                                           const CoulombInteraction& coulomb);

}  // namespace quasi::gw
