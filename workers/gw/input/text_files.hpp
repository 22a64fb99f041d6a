#pragma once

#include <complex>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

using Cplx = std::complex<double>;

/// Matrix elements of one k-point in vxc.dat, x.dat or kih.dat; bands and spins counted from 1.
struct KPointElements {
  Vec3 k{};
  std::map<std::pair<int, int>, Cplx> diagonal_ev;            ///< (spin, n)
  std::map<std::tuple<int, int, int>, Cplx> off_diagonal_ev;  ///< (spin, n, m)
};

/// Reads vxc.dat, x.dat or kih.dat. @throws InvalidInput with file and line.
std::vector<KPointElements> read_matrix_elements(const std::filesystem::path& path);

/// The entry of the k-point equal to `k` (to 1e-5), if there is one.
const KPointElements* find_k_point(const std::vector<KPointElements>& list, const Vec3& k);

/// One line of eqp0.dat or eqp1.dat.
struct QuasiparticleEntry {
  Vec3 k{};
  int spin = 1;
  int band = 1;
  double mean_field_ev = 0.0;
  double quasiparticle_ev = 0.0;
};

/// Writes eqp0.dat or eqp1.dat; entries of one k-point must be adjacent.
void write_quasiparticles(const std::filesystem::path& path,
                          const std::vector<QuasiparticleEntry>& entries);

/// v̄(q+G) by (q, G): q in reduced coordinates folded to six digits.
class CoulombTable {
 public:
  /// Rows "qx qy qz Gx Gy Gz value", Ry Bohr³.
  static CoulombTable read(const std::filesystem::path& path);
  /// @throws InvalidInput naming q and G if the table lacks them.
  double at(const Vec3& q, const IVec3& g) const;

 private:
  using Key = std::array<long, 6>;
  static Key key(const Vec3& q, const IVec3& g);
  std::map<Key, double> values_;
  std::string name_;
};

}  // namespace quasi::gw
