#pragma once

#include <vector>

#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// Which nodes carry a given potential, and its value there.
struct PotentialBoundary {
  std::vector<char> fixed;      ///< [nx][nz]
  std::vector<double> value_v;  ///< [nx][nz], where fixed
};

/// Residual P[V] of Poisson's equation (PoissonStencil), [nx][nz]; zero on fixed nodes.
std::vector<double> poisson_residual(const Structure& s, const PotentialBoundary& boundary,
                                     const std::vector<double>& potential_v,
                                     const std::vector<double>& density_nm3);

/// Symmetric block-tridiagonal matrix: dense blocks along z, diagonal couplings along x. Holds the
/// Newton matrix (−∇·ε_R∇ + (e/ε0)A) times the control volume; rows of fixed nodes are the
/// identity.
class ColumnMatrix {
 public:
  /// @param responses  [nx][nz][nz] of column_response()
  ColumnMatrix(const Structure& s, const PotentialBoundary& boundary,
               const std::vector<double>& responses);

  /// Block elimination from both ends is not needed at these sizes: forward with explicit inverses
  /// of the Schur complements, LU with pivoting, so an indefinite block does no harm.
  /// @throws NotConverged for a singular block.
  void factorise();
  /// x ← M⁻¹x, [nx][nz]. Needs factorise().
  void solve(double* x) const;
  /// y ← M x with the unfactorised matrix.
  std::vector<double> multiply(const std::vector<double>& x) const;

  int nx() const { return nx_; }
  int nz() const { return nz_; }
  const std::vector<double>& blocks() const { return blocks_; }
  const std::vector<double>& couplings() const { return couplings_; }

 private:
  int nx_, nz_;
  std::vector<double> blocks_;     ///< [nx][nz][nz]
  std::vector<double> couplings_;  ///< [nx−1][nz], between columns i and i+1
  std::vector<double> inverse_;    ///< [nx][nz][nz] after factorise()
};

}  // namespace quasi::mosfet
