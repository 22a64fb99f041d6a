#pragma once

#include <vector>

#include "workers/mosfet/model/structure.hpp"

namespace quasi::mosfet {

/// Nodes with a given potential, and its values.
struct PotentialBoundary {
  std::vector<char> fixed;      ///< [nx][nz]
  std::vector<double> value_v;  ///< [nx][nz], read where fixed
};

/// Returns the residual P[V] of Poisson's equation (docs/theory/mosfet.md 9.1, PoissonStencil),
/// [nx][nz]. It is zero on fixed nodes.
std::vector<double> poisson_residual(const Structure& s, const PotentialBoundary& boundary,
                                     const std::vector<double>& potential_v,
                                     const std::vector<double>& density_nm3);

/// Symmetric block-tridiagonal matrix with dense blocks along z and diagonal couplings along x. It
/// holds the Newton matrix (−∇·ε_R∇ + (e/ε0)A) times the control volume (docs/theory/mosfet.md
/// 9.2). Rows of fixed nodes are the identity.
class ColumnMatrix {
 public:
  /// @param responses  [nx][nz][nz] of column_response()
  ColumnMatrix(const Structure& s, const PotentialBoundary& boundary,
               const std::vector<double>& responses);

  /// Factorises by forward block elimination with explicit inverses of the Schur complements. LU
  /// with pivoting inverts them, so an indefinite block is allowed. @throws NotConverged for a
  /// singular block.
  void factorise();
  /// Sets x ← M⁻¹x, [nx][nz]. Needs factorise().
  void solve(double* x) const;
  /// Returns M x with the unfactorised matrix.
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
