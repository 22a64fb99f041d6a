#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"

namespace quasi::thermal {

/// A Γ-centred mesh (docs/theory/thermal.md 2): point (i,j,k) is q = (i/N1) b1 + (j/N2) b2 + (k/N3)
/// b3. Points are numbered from zero with the first axis fastest. Files of FourPhonon and ShengBTE
/// print this number plus one.
struct QMesh {
  int n[3] = {1, 1, 1};

  QUASI_HD std::int64_t size() const { return static_cast<std::int64_t>(n[0]) * n[1] * n[2]; }

  /// Returns i modulo the period, in [0, period).
  QUASI_HD static int wrap(int i, int period) {
    const int r = i % period;
    return r < 0 ? r + period : r;
  }
  /// Returns the number of a point. Indices of any sign are taken modulo the mesh.
  QUASI_HD std::int32_t index(int i, int j, int k) const {
    return (wrap(k, n[2]) * n[1] + wrap(j, n[1])) * n[0] + wrap(i, n[0]);
  }
  /// Writes the integer coordinates, 0 ≤ c[d] < n[d].
  QUASI_HD void coordinates(std::int64_t point, int c[3]) const {
    c[0] = static_cast<int>(point % n[0]);
    c[1] = static_cast<int>(point / n[0] % n[1]);
    c[2] = static_cast<int>(point / (static_cast<std::int64_t>(n[0]) * n[1]));
  }
  /// Returns q_a + sign·q_b modulo a reciprocal vector; sign is +1 or −1.
  QUASI_HD std::int32_t add(std::int64_t a, std::int64_t b, int sign) const {
    int ca[3];
    int cb[3];
    coordinates(a, ca);
    coordinates(b, cb);
    return index(ca[0] + sign * cb[0], ca[1] + sign * cb[1], ca[2] + sign * cb[2]);
  }
  /// Returns −q modulo a reciprocal vector.
  QUASI_HD std::int32_t minus(std::int64_t a) const { return add(0, a, -1); }
};

}  // namespace quasi::thermal
