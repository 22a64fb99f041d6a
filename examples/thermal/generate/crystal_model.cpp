#include "examples/thermal/generate/crystal_model.hpp"

#include <algorithm>
#include <cmath>

namespace quasi::model {

namespace {

/// Advances an odometer over `digits` digits of base `base`; false after the last value.
bool advance(std::vector<int>& digit, int base) {
  for (auto d = digit.rbegin(); d != digit.rend(); ++d) {
    if (++*d < base) return true;
    *d = 0;
  }
  return false;
}

/// All derivatives of one order with respect to the relative coordinates, in quanta, last index
/// fastest. Each set of indices is differentiated once and copied to its permutations.
std::vector<std::int64_t> relative_derivatives(const Structure& structure, const EnergyTerm& term,
                                               int order) {
  const int n_coordinates = 3 * (static_cast<int>(term.site.size()) - 1);
  std::vector<double> at(n_coordinates);
  const Vector3 origin = structure.site(term.site[0].atom, term.site[0].cell);
  for (std::size_t m = 1; m < term.site.size(); ++m) {
    const Vector3 r = structure.site(term.site[m].atom, term.site[m].cell);
    for (int x = 0; x < 3; ++x) at[3 * (m - 1) + x] = r[x] - origin[x];
  }
  std::size_t size = 1;
  for (int slot = 0; slot < order; ++slot) size *= n_coordinates;
  std::vector<std::int64_t> tensor(size);
  std::map<std::vector<int>, std::int64_t> done;
  std::vector<int> index(order, 0);
  std::size_t flat = 0;
  do {
    std::vector<int> sorted = index;
    std::sort(sorted.begin(), sorted.end());
    auto [entry, fresh] = done.try_emplace(sorted, 0);
    if (fresh) {
      std::vector<Nilpotent> coordinate(at.begin(), at.end());
      for (int slot = 0; slot < order; ++slot) coordinate[sorted[slot]].seed(slot);
      const double value = term.energy_ev(coordinate).derivative((1u << order) - 1);
      entry->second = std::llround(value / ForceConstants::kQuantum);
    }
    tensor[flat++] = entry->second;
  } while (advance(index, n_coordinates));
  return tensor;
}

}  // namespace

Vector3 Structure::cartesian(const Vector3& fractional) const {
  Vector3 r{};
  for (int i = 0; i < 3; ++i)
    for (int x = 0; x < 3; ++x) r[x] += fractional[i] * lattice_angstrom[i][x];
  return r;
}

Vector3 Structure::site(int atom, const Cell& cell) const {
  Vector3 f = position[atom];
  for (int i = 0; i < 3; ++i) f[i] += cell[i];
  return cartesian(f);
}

double Structure::volume() const {
  const Matrix3& a = lattice_angstrom;
  return std::abs(a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
                  a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
                  a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]));
}

ForceConstants derivatives(const Structure& structure, const std::vector<EnergyTerm>& terms,
                           int order) {
  ForceConstants result{.order = order};
  std::size_t tensor_size = 1;
  for (int slot = 0; slot < order; ++slot) tensor_size *= 3;

  for (const EnergyTerm& term : terms) {
    const int n_sites = static_cast<int>(term.site.size());
    const int n_relative = n_sites - 1;
    const int n_coordinates = 3 * n_relative;
    const std::vector<std::int64_t> relative = relative_derivatives(structure, term, order);

    std::vector<int> who(order, 0);  // site of the term in each slot
    do {
      ForceConstants::Key key;
      for (int slot = 0; slot < order; ++slot) {
        Site site = term.site[who[slot]];
        for (int i = 0; i < 3; ++i) site.cell[i] -= term.site[who[0]].cell[i];
        key.push_back(site);
      }
      std::vector<std::int64_t>& block =
          result.block.try_emplace(key, std::vector<std::int64_t>(tensor_size, 0)).first->second;

      // Site m > 0 moves its own coordinates. Site 0 moves all of them in the opposite direction.
      std::vector<int> mover(order, 0);
      do {
        bool contributes = true;
        int sign = 1;
        for (int slot = 0; slot < order && contributes; ++slot) {
          if (who[slot] == 0)
            sign = -sign;
          else
            contributes = mover[slot] == who[slot] - 1;
        }
        if (!contributes) continue;
        std::vector<int> axis(order, 0);
        std::size_t flat = 0;
        do {
          std::size_t from = 0;
          for (int slot = 0; slot < order; ++slot)
            from = from * n_coordinates + 3 * mover[slot] + axis[slot];
          block[flat++] += sign * relative[from];
        } while (advance(axis, 3));
      } while (advance(mover, n_relative));
    } while (advance(who, n_sites));
  }
  std::erase_if(result.block, [](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(), [](auto v) { return v == 0; });
  });
  return result;
}

std::vector<Site> neighbours(const Structure& structure, int atom, double cutoff_angstrom) {
  // A box of cells that contains the sphere, from the heights of the cell over its faces.
  Cell reach{};
  const Matrix3& a = structure.lattice_angstrom;
  for (int i = 0; i < 3; ++i) {
    const Vector3 &u = a[(i + 1) % 3], &v = a[(i + 2) % 3];
    const double area =
        std::hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]);
    reach[i] = static_cast<int>(std::ceil(cutoff_angstrom * area / structure.volume())) + 1;
  }
  const Vector3 here = structure.site(atom, {});
  std::vector<Site> found;
  for (int i = -reach[0]; i <= reach[0]; ++i)
    for (int j = -reach[1]; j <= reach[1]; ++j)
      for (int k = -reach[2]; k <= reach[2]; ++k)
        for (int other = 0; other < structure.n_atoms(); ++other) {
          const Vector3 r = structure.site(other, {i, j, k});
          const double d = std::hypot(r[0] - here[0], r[1] - here[1], r[2] - here[2]);
          if (d > 1e-6 && d < cutoff_angstrom) found.push_back({other, {i, j, k}});
        }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace quasi::model
