#include "workers/gw/solver/bands/band_follower.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

/// Returns the first member of the multiplet of each state of a group.
std::vector<std::size_t> first_of_multiplet(const DenseStates& now, const BandGroup& bands) {
  std::vector<std::size_t> first(bands.size());
  for (std::size_t m = 1; m < first.size(); ++m)
    first[m] = now.energy_ry[bands.begin + m] - now.energy_ry[bands.begin + m - 1] < kDegenerate_ry
                   ? first[m - 1]
                   : m;
  return first;
}
/// The overlaps of the states of a group at one point with the rows of the point before.
struct GroupOverlaps {
  std::size_t n = 0;
  std::vector<Cplx> value;                ///< ⟨now_m|row_r⟩, [m][r]
  std::vector<std::size_t> multiplet_of;  ///< first member of the multiplet of each state
  std::vector<std::size_t> state_of;      ///< the state assigned to each row
};

/// Rotates the states of one multiplet to those that resemble its rows most: U = A (A†A)^−½ with
/// the projections A. Without this rotation the next point would be compared with an arbitrary
/// mixture of the states, and rows would be exchanged where bands meet.
/// @param turn  coefficients of the rows in the present states, [r][m]
void align_multiplet(const GroupOverlaps& overlap, std::size_t first, std::vector<Cplx>& turn) {
  const auto& [n, o, multiplet_of, to] = overlap;
  std::vector<std::size_t> members, rows;
  for (std::size_t m = 0; m < n; ++m)
    if (multiplet_of[m] == first) members.push_back(m);
  for (std::size_t r = 0; r < n; ++r)
    if (multiplet_of[to[r]] == first) rows.push_back(r);
  const std::size_t d = members.size();
  std::vector<Cplx> a(d * d), square(d * d);
  for (std::size_t r = 0; r < d; ++r)
    for (std::size_t m = 0; m < d; ++m) a[r * d + m] = o[members[m] * n + rows[r]];
  for (std::size_t r = 0; r < d; ++r)
    for (std::size_t s = 0; s < d; ++s)
      for (std::size_t m = 0; m < d; ++m)
        square[r * d + s] += a[r * d + m] * std::conj(a[s * d + m]);
  // Rows without overlap with the multiplet (a band that left the window) take its members
  // unrotated.
  if (eigensystem_of(square, d).value.front() < 1e-6) {
    for (std::size_t r = 0; r < d; ++r) turn[rows[r] * n + to[rows[r]]] = 1.0;
    return;
  }
  const auto u = product(inverse_root(square, d), a, d);
  for (std::size_t r = 0; r < d; ++r)
    for (std::size_t m = 0; m < d; ++m) turn[rows[r] * n + members[m]] = u[r * d + m];
}

/// Returns the states of a group that continue its rows: coefficients [r][m] in the present states.
/// @param rows   states of the group at the point before
/// @param state  gets the present state assigned to each row
std::vector<Cplx> continued_rows(const DenseStates& now, const BandGroup& bands,
                                 const PeriodicParts& rows, std::vector<std::size_t>& state) {
  const std::size_t n = bands.size();
  GroupOverlaps overlap{.n = n,
                        .value = overlaps(now, bands, rows),
                        .multiplet_of = first_of_multiplet(now, bands),
                        .state_of = {}};
  std::vector<double> score(n * n);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t other = 0; other < n; ++other)
        if (overlap.multiplet_of[other] == overlap.multiplet_of[m])
          score[r * n + m] += std::norm(overlap.value[other * n + r]);
  overlap.state_of = assigned_columns(score, n);
  std::vector<Cplx> turn(n * n);
  for (std::size_t first = 0; first < n; ++first)
    if (overlap.multiplet_of[first] == first) align_multiplet(overlap, first, turn);
  state = std::move(overlap.state_of);
  return turn;
}

}  // namespace

std::vector<std::size_t> BandFollower::follow(const DenseStates& now, std::size_t window_begin,
                                              std::size_t n_bands) {
  std::vector<std::size_t> band(n_bands);
  std::iota(band.begin(), band.end(), std::size_t{0});
  const std::size_t n_g = now.row(), before = rows_.size() / n_bands;
  std::vector<Cplx> rows(n_bands * n_g);
  for (const BandGroup& group : groups_) {
    const std::size_t n = group.size();
    const BandGroup absolute{window_begin + group.begin, window_begin + group.end};
    std::vector<Cplx> turn(n * n);  // rows in the present states
    for (std::size_t i = 0; i < n; ++i) turn[i * n + i] = 1.0;
    if (!g_.empty() && n > 0) {
      std::vector<std::size_t> state;
      turn = continued_rows(now, absolute, {g_, rows_.data() + group.begin * before, n}, state);
      for (std::size_t r = 0; r < n; ++r) band[group.begin + r] = group.begin + state[r];
    }
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t m = 0; m < n; ++m)
        if (turn[r * n + m] != Cplx{})
          for (std::size_t i = 0; i < n_g; ++i)
            rows[(group.begin + r) * n_g + i] +=
                turn[r * n + m] * now.coefficients[(absolute.begin + m) * n_g + i];
  }
  rows_ = std::move(rows);
  g_ = now.sphere.g;
  return band;
}

}  // namespace quasi::gw
