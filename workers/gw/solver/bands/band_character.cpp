#include "workers/gw/solver/bands/band_character.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/bands/band_follower.hpp"

namespace quasi::gw {
namespace {

/// Number of states calculated above the window. A multiplet that the window cuts would make the
/// result depend on the choice of its basis.
constexpr int kStatesAboveWindow = 6;
/// Share of the outermost band's correction in the part of a state outside of the window. It is
/// small, so that it does not show within the window. Where S = 1 the part outside is 0.
constexpr double kOutside = 1e-3;

/// Averages the corrections over the multiplets of the mean field; [irreducible k][band].
std::vector<std::vector<double>> averaged(const std::vector<std::vector<double>>& mean_field_ev,
                                          const std::vector<std::vector<double>>& correction_ev) {
  const std::size_t n = correction_ev.size(), n_k = correction_ev.front().size();
  std::vector<std::vector<double>> result(n_k, std::vector<double>(n));
  for (std::size_t ik = 0; ik < n_k; ++ik)
    for (std::size_t begin = 0, end = 0; begin < n; begin = end) {
      for (end = begin + 1;
           end < n && std::abs(mean_field_ev[end][ik] - mean_field_ev[end - 1][ik]) <
                          kDegenerate_ry * kRydberg_ev;)
        ++end;
      double sum = 0.0;
      for (std::size_t b = begin; b < end; ++b) sum += correction_ev[b][ik];
      for (std::size_t b = begin; b < end; ++b)
        result[ik][b] = sum / static_cast<double>(end - begin);
    }
  return result;
}

/// The states of the grid points near the present point of the path. Each is rotated once.
class GridStates {
 public:
  GridStates(const MeanField& field, int spin, int begin, int end)
      : field_(field), spin_(spin), begin_(begin), end_(end) {}
  struct Entry {
    int irreducible = 0;
    RotatedWaves waves;
  };
  const Entry& at(const Vec3& k) {
    const std::array<long, 3> key{std::lround(k[0] * 1e6), std::lround(k[1] * 1e6),
                                  std::lround(k[2] * 1e6)};
    if (const auto known = now_.find(key); known != now_.end()) return known->second;
    if (auto before = before_.extract(key); !before.empty())
      return now_.insert(std::move(before)).position->second;
    const Rotation rotation = field_.zone.rotation_to(k);
    Entry entry{rotation.irreducible, rotated_waves(field_.waves, field_.zone.operations(),
                                                    rotation, spin_, begin_, end_)};
    return now_.emplace(key, std::move(entry)).first->second;
  }
  /// Forgets the states that neither of the last two points has used.
  void next_point() { before_ = std::exchange(now_, {}); }

 private:
  const MeanField& field_;
  int spin_, begin_, end_;
  std::map<std::array<long, 3>, Entry> now_, before_;
};

/// Carries the corrections of a window of bands to the points of a path.
class CharacterCarrier {
 public:
  CharacterCarrier(const MeanField& field, const BandWindow& window, const StatesAt& states);
  CharacterBands along(const BandPath& path, Progress& progress);

 private:
  /// Σ_j w_j Σ_n |n k_j⟩ f_n(k_j) ⟨n k_j| between the states of a group at k.
  struct CarriedOperators {
    std::vector<Cplx> norm;   ///< f = 1, [m][m]
    std::vector<Cplx> delta;  ///< f = Δ, eV, [m][m]
    double outside_ev = 0.0;  ///< Δ of the outermost band of the window
  };
  /// Corrected energies and shares of the window at one point, [n_bands].
  struct CorrectedPoint {
    std::vector<double> energy_ev, share;
  };

  DenseStates states_at(const Vec3& k) const;
  CarriedOperators carried_operators(const Vec3& k, const DenseStates& now, const BandGroup& group,
                                     const BandGroup& whole);
  void correct_group(const Vec3& k, const DenseStates& now, const BandGroup& group,
                     CorrectedPoint& point);

  const MeanField& field_;
  const BandWindow& window_;
  const StatesAt& states_;
  std::size_t first_, n_;
  std::vector<std::vector<double>> correction_ev_;  ///< [irreducible k][band]
  std::vector<BandGroup> groups_;                   ///< occupied and empty bands of the window
  GridStates grid_;
};

CharacterCarrier::CharacterCarrier(const MeanField& field, const BandWindow& window,
                                   const StatesAt& states)
    : field_(field),
      window_(window),
      states_(states),
      first_(static_cast<std::size_t>(window.band_begin)),
      n_(static_cast<std::size_t>(window.n_bands)),
      grid_(field, window.spin, window.band_begin, window.band_begin + window.n_bands) {
  if (!window.correction_ev.empty())
    correction_ev_ = averaged(window.mean_field_ev, window.correction_ev);
  const auto n_occupied = static_cast<std::size_t>(std::clamp(
      field.n_occupied_of_spin[static_cast<std::size_t>(window.spin)] - window.band_begin, 0,
      window.n_bands));
  groups_ = {{0, n_occupied, false}, {n_occupied, n_, true}};
}

DenseStates CharacterCarrier::states_at(const Vec3& k) const {
  const auto available = static_cast<int>(
      make_g_sphere(field_.crystal().bdot, k, field_.waves.wavefunction_cutoff_ry).size() *
      field_.n_spinor());
  const int end = window_.band_begin + window_.n_bands;
  return states_(k, window_.spin, std::max(end, std::min(end + kStatesAboveWindow, available)));
}

/// @param group  bands of the window;  @param whole  bands of `now`, with whole multiplets
CharacterCarrier::CarriedOperators CharacterCarrier::carried_operators(const Vec3& k,
                                                                       const DenseStates& now,
                                                                       const BandGroup& group,
                                                                       const BandGroup& whole) {
  const std::size_t m = whole.size(), known = group.size();
  CarriedOperators carried{.norm = std::vector<Cplx>(m * m), .delta = std::vector<Cplx>(m * m)};
  for (const GridNeighbour& neighbour : grid_neighbours(field_, k)) {
    const GridStates::Entry& entry = grid_.at(neighbour.k);
    const std::vector<double>& delta = correction_ev_[static_cast<std::size_t>(entry.irreducible)];
    carried.outside_ev += neighbour.weight * delta[group.upward ? group.end - 1 : group.begin];
    const auto row = static_cast<std::size_t>(entry.waves.coefficients.extent[1]);
    const auto o = overlaps(
        now, whole, {entry.waves.g, entry.waves.coefficients.data + group.begin * row, known});
    for (std::size_t a = 0; a < m; ++a)
      for (std::size_t b = 0; b < m; ++b)
        for (std::size_t c = 0; c < known; ++c) {
          const Cplx term = neighbour.weight * o[a * known + c] * std::conj(o[b * known + c]);
          carried.norm[a * m + b] += term;
          carried.delta[a * m + b] += delta[group.begin + c] * term;
        }
  }
  return carried;
}

/// Diagonalises H + S^−½ Δ S^−½ between the states of one group, S = Σ_j w_j Σ_n |n k_j⟩⟨n k_j|.
void CharacterCarrier::correct_group(const Vec3& k, const DenseStates& now, const BandGroup& group,
                                     CorrectedPoint& point) {
  const BandGroup whole =
      with_whole_multiplets(now, {first_ + group.begin, first_ + group.end, group.upward});
  const std::size_t m = whole.size(), known = group.size(),
                    skipped = first_ + group.begin - whole.begin;
  auto [norm, delta, outside_ev] = carried_operators(k, now, group, whole);
  for (std::size_t a = 0; a < known; ++a)
    point.share[group.begin + a] = norm[(skipped + a) * m + skipped + a].real();
  for (std::size_t a = 0; a < m; ++a)
    for (std::size_t b = 0; b < m; ++b) {
      const Cplx missing = kOutside * ((a == b ? 1.0 : 0.0) - norm[a * m + b]);
      norm[a * m + b] += missing;
      delta[a * m + b] += outside_ev * missing;
    }
  const auto root = inverse_root(norm, m);
  auto h = product(product(root, delta, m), root, m);
  for (std::size_t a = 0; a < m; ++a) h[a * m + a] += now.energy_ry[whole.begin + a] * kRydberg_ev;
  const Eigensystem solved = eigensystem_of(std::move(h), m);
  std::vector<double> score(m * m);
  for (std::size_t a = 0; a < m; ++a)
    for (std::size_t x = 0; x < m; ++x) score[a * m + x] = std::norm(solved.column[a * m + x]);
  const auto state = assigned_columns(score, m);
  for (std::size_t a = 0; a < known; ++a)
    point.energy_ev[group.begin + a] = solved.value[state[skipped + a]];
}

CharacterBands CharacterCarrier::along(const BandPath& path, Progress& progress) {
  const bool corrected = !correction_ev_.empty();
  CharacterBands result{
      .mean_field = points_of(path, field_.crystal()), .corrected_ev = {}, .share = {}};
  const std::size_t n_points = result.mean_field.k.size();
  result.mean_field.energy_ev.assign(n_, std::vector<double>(n_points));
  if (corrected) result.corrected_ev = result.share = result.mean_field.energy_ev;
  BandFollower follower(groups_);
  for (std::size_t i = 0; i < n_points; ++i) {
    const Vec3& k = result.mean_field.k[i];
    const DenseStates now = states_at(k);
    const std::vector<std::size_t> band = follower.follow(now, first_, n_);
    CorrectedPoint point{std::vector<double>(n_), std::vector<double>(n_)};
    for (const BandGroup& group : groups_)
      if (corrected && group.size() > 0) correct_group(k, now, group, point);
    for (std::size_t row = 0; row < n_; ++row) {
      result.mean_field.energy_ev[row][i] = now.energy_ry[first_ + band[row]] * kRydberg_ev;
      if (!corrected) continue;
      result.corrected_ev[row][i] = point.energy_ev[band[row]];
      result.share[row][i] = point.share[band[row]];
    }
    grid_.next_point();
    progress.report("states along the path", static_cast<std::int64_t>(i) + 1,
                    static_cast<std::int64_t>(n_points));
  }
  return result;
}

}  // namespace

CharacterBands bands_by_character(const MeanField& field, const BandWindow& window,
                                  const BandPath& path, const StatesAt& states,
                                  Progress& progress) {
  return CharacterCarrier(field, window, states).along(path, progress);
}

}  // namespace quasi::gw
