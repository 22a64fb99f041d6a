#include "workers/gw/solver/bands/band_character.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"

namespace quasi::gw {
namespace {

constexpr double kNoWeight = 1e-12;
constexpr int kMore = 6;  ///< states asked for above the window, so that no multiplet of a path's
                          ///< point is cut: a cut one would be a choice of basis
/// Share of the outermost band's correction in what lies outside of the window. Small: within the
/// window nothing is to be seen of it, where S = 1 it is 0.
constexpr double kOutside = 1e-3;

struct Range {
  std::size_t begin = 0, end = 0;  // of the window's bands
  bool upward = false;             // what lies outside lies above
  std::size_t size() const { return end - begin; }
};

/// Eigenvalues and, in rows, eigenvectors of a small Hermitian matrix: A = Σ_i value_i conj(row_i)
/// ⊗ row_i in row-major terms.
struct Eigen {
  std::vector<double> value;
  std::vector<Cplx> column;  // [element][i]
};
Eigen eigen_of(std::vector<Cplx> matrix, std::size_t n) {
  Eigen e{std::vector<double>(n), std::move(matrix)};
  if (n > 0 && LAPACKE_zheev(LAPACK_ROW_MAJOR, 'V', 'L', static_cast<lapack_int>(n),
                             reinterpret_cast<lapack_complex_double*>(e.column.data()),
                             static_cast<lapack_int>(n), e.value.data()) != 0)
    throw NotConverged("the corrections along the band path could not be diagonalised");
  return e;
}

std::vector<Cplx> product(const std::vector<Cplx>& a, const std::vector<Cplx>& b, std::size_t n) {
  std::vector<Cplx> c(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  return c;
}

/// A^−½ of a positive definite matrix.
std::vector<Cplx> inverse_root(const std::vector<Cplx>& a, std::size_t n) {
  const Eigen e = eigen_of(a, n);
  std::vector<Cplx> root(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t x = 0; x < n; ++x)
        root[i * n + j] +=
            e.column[i * n + x] * std::conj(e.column[j * n + x]) / std::sqrt(e.value[x]);
  return root;
}

/// ⟨a_n|b_m⟩ of periodic parts: [n][m]; both on lists of G of their own.
std::vector<Cplx> overlaps(const DenseStates& a, Range bands, const std::vector<IVec3>& g_b,
                           const Cplx* b, std::size_t n_b) {
  const std::size_t n_a = bands.size(), n_g = a.sphere.g.size();
  const GIndex index(a.sphere.g);
  std::vector<Cplx> gathered(n_b * n_g);
  for (std::size_t i = 0; i < g_b.size(); ++i)
    if (const std::int32_t at = index.find(g_b[i]); at >= 0)
      for (std::size_t m = 0; m < n_b; ++m)
        gathered[m * n_g + static_cast<std::size_t>(at)] = b[m * g_b.size() + i];
  std::vector<Cplx> conjugate(n_a * n_g);
  for (std::size_t i = 0; i < conjugate.size(); ++i)
    conjugate[i] = std::conj(a.coefficients[bands.begin * n_g + i]);
  std::vector<Cplx> result(n_a * n_b);
  const Cplx one{1.0, 0.0}, zero{};
  if (n_a > 0 && n_b > 0)
    cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(n_a),
                static_cast<int>(n_b), static_cast<int>(n_g), &one, conjugate.data(),
                static_cast<int>(n_g), gathered.data(), static_cast<int>(n_g), &zero, result.data(),
                static_cast<int>(n_b));
  return result;
}

/// Pairs of (row, column) of largest score, each once: to[row] = column.
std::vector<std::size_t> assign(const std::vector<double>& score, std::size_t n) {
  std::vector<std::size_t> order(n * n), to(n, n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Scores that rounding alone tells apart are ties, which the order of rows and columns decides.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::round(score[a] * 1e9) > std::round(score[b] * 1e9);
  });
  std::vector<char> taken(n, 0);
  for (const std::size_t at : order)
    if (to[at / n] == n && !taken[at % n]) {
      to[at / n] = at % n;
      taken[at % n] = 1;
    }
  return to;
}

/// Corrections averaged over the multiplets of the mean field: [irreducible k][band].
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

/// The bands of a range and what else belongs to its outermost multiplets.
Range with_whole_multiplets(const DenseStates& s, Range bands) {
  while (bands.upward && bands.end < s.energy_ry.size() &&
         s.energy_ry[bands.end] - s.energy_ry[bands.end - 1] < kDegenerate_ry)
    ++bands.end;
  while (bands.begin > 0 &&
         s.energy_ry[bands.begin] - s.energy_ry[bands.begin - 1] < kDegenerate_ry)
    --bands.begin;
  return bands;
}

/// States of the grid's points near the present one, each rotated once.
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
  /// What the last two points did not use is forgotten.
  void next_point() { before_ = std::exchange(now_, {}); }

 private:
  const MeanField& field_;
  int spin_, begin_, end_;
  std::map<std::array<long, 3>, Entry> now_, before_;
};

/// Rows follow states from point to point.
class Follower {
 public:
  explicit Follower(std::vector<Range> groups) : groups_(std::move(groups)) {}

  /// The band of the window in each row.
  std::vector<std::size_t> follow(const DenseStates& now, std::size_t window_begin,
                                  std::size_t n_bands) {
    std::vector<std::size_t> band(n_bands);
    std::iota(band.begin(), band.end(), std::size_t{0});
    const std::size_t n_g = now.sphere.g.size();
    std::vector<Cplx> rows(n_bands * n_g);
    for (const Range& group : groups_) {
      const std::size_t n = group.size();
      const Range absolute{window_begin + group.begin, window_begin + group.end};
      std::vector<Cplx> turn(n * n);  // rows in the states now
      for (std::size_t i = 0; i < n; ++i) turn[i * n + i] = 1.0;
      if (!g_.empty() && n > 0) {
        const auto o = overlaps(now, absolute, g_, rows_.data() + group.begin * g_.size(),
                                n);  // ⟨now_m|row_r⟩: [m][r]
        const auto multiplet_of = multiplets_of(now, absolute);
        std::vector<double> score(n * n);
        for (std::size_t r = 0; r < n; ++r)
          for (std::size_t m = 0; m < n; ++m)
            for (std::size_t other = 0; other < n; ++other)
              if (multiplet_of[other] == multiplet_of[m])
                score[r * n + m] += std::norm(o[other * n + r]);
        const auto to = assign(score, n);
        std::fill(turn.begin(), turn.end(), Cplx{});
        for (std::size_t first = 0; first < n; ++first)
          if (multiplet_of[first] == first) align(o, to, multiplet_of, first, n, turn);
        for (std::size_t r = 0; r < n; ++r) band[group.begin + r] = group.begin + to[r];
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

 private:
  /// First member of each state's multiplet, within the group.
  static std::vector<std::size_t> multiplets_of(const DenseStates& now, Range bands) {
    std::vector<std::size_t> first(bands.size());
    for (std::size_t m = 1; m < first.size(); ++m)
      first[m] =
          now.energy_ry[bands.begin + m] - now.energy_ry[bands.begin + m - 1] < kDegenerate_ry
              ? first[m - 1]
              : m;
    return first;
  }
  /// The states of a multiplet that resemble its rows most: U = A (A†A)^−½, A their projections.
  /// Else the next point would be compared with states that are mixed at will, and rows would be
  /// exchanged where bands meet.
  static void align(const std::vector<Cplx>& o, const std::vector<std::size_t>& to,
                    const std::vector<std::size_t>& multiplet_of, std::size_t first, std::size_t n,
                    std::vector<Cplx>& turn) {
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
    // Rows that do not reach the multiplet at all (a band that left the window) take its members as
    // they are.
    if (eigen_of(square, d).value.front() < 1e-6) {
      for (std::size_t r = 0; r < d; ++r) turn[rows[r] * n + to[rows[r]]] = 1.0;
      return;
    }
    const auto u = product(inverse_root(square, d), a, d);
    for (std::size_t r = 0; r < d; ++r)
      for (std::size_t m = 0; m < d; ++m) turn[rows[r] * n + members[m]] = u[r * d + m];
  }

  std::vector<Range> groups_;
  std::vector<IVec3> g_;  // of the rows' states at the point before; empty: none yet
  std::vector<Cplx> rows_;
};

}  // namespace

std::vector<GridNeighbour> grid_neighbours(const MeanField& field, const Vec3& k) {
  const IVec3& grid = field.waves.k_grid;
  // The shortest diagonal of a cell: which axes it runs backwards.
  std::array<bool, 3> backwards{};
  double shortest = 1e300;
  for (int bits = 0; bits < 4; ++bits) {
    const Vec3 d{1.0 / grid[0], (bits & 1 ? -1.0 : 1.0) / grid[1],
                 (bits & 2 ? -1.0 : 1.0) / grid[2]};
    const double length2 = metric_dot(field.crystal().bdot, d, d);
    if (length2 > shortest - 1e-9) continue;
    shortest = length2;
    backwards = {false, (bits & 1) != 0, (bits & 2) != 0};
  }
  const auto& operations = field.zone.operations();
  std::map<std::array<long, 3>, double> weight;
  for (const SymmetryOperation& s : operations) {
    const Vec3 turned = multiply(s.rotation, k);
    IVec3 base{};
    Vec3 t{};
    for (int i = 0; i < 3; ++i) {
      const double x = turned[i] * grid[i] - field.waves.k_shift[i];
      base[i] = static_cast<int>(std::floor(x + 1e-9));
      t[i] = std::max(0.0, x - base[i]);
      if (backwards[static_cast<std::size_t>(i)]) t[i] = 1.0 - t[i];
    }
    std::array<int, 3> axis{0, 1, 2};
    std::stable_sort(axis.begin(), axis.end(), [&](int a, int b) { return t[a] > t[b]; });
    IVec3 corner{};
    const IMat3 back = inverse(s.rotation);
    for (int step = 0; step <= 3; ++step) {
      if (step > 0) corner[axis[static_cast<std::size_t>(step - 1)]] = 1;
      const double share = (step == 0 ? 1.0 : t[axis[static_cast<std::size_t>(step - 1)]]) -
                           (step == 3 ? 0.0 : t[axis[static_cast<std::size_t>(step)]]);
      if (share < kNoWeight) continue;
      Vec3 point{};
      for (int i = 0; i < 3; ++i) {
        const int c = backwards[static_cast<std::size_t>(i)] ? 1 - corner[i] : corner[i];
        point[i] = (base[i] + c + field.waves.k_shift[i]) / grid[i];
      }
      point = multiply(back, point);
      weight[{std::lround(point[0] * 1e6), std::lround(point[1] * 1e6),
              std::lround(point[2] * 1e6)}] += share / static_cast<double>(operations.size());
    }
  }
  std::vector<GridNeighbour> result;
  for (const auto& [key, value] : weight) {
    Vec3 at{};
    for (int i = 0; i < 3; ++i)
      at[i] = (std::round(static_cast<double>(key[static_cast<std::size_t>(i)]) * 1e-6 * grid[i] -
                          field.waves.k_shift[i]) +
               field.waves.k_shift[i]) /
              grid[i];
    result.push_back({at, value});
  }
  return result;
}

CharacterBands bands_by_character(const MeanField& field, int spin, int band_begin, int n_bands,
                                  const std::vector<std::vector<double>>& mean_field_ev,
                                  const std::vector<std::vector<double>>& correction_ev,
                                  const BandPath& path, const StatesAt& states,
                                  Progress& progress) {
  const auto n = static_cast<std::size_t>(n_bands), first = static_cast<std::size_t>(band_begin);
  const bool corrected = !correction_ev.empty();
  const auto correction =
      corrected ? averaged(mean_field_ev, correction_ev) : std::vector<std::vector<double>>{};
  const auto n_occupied = static_cast<std::size_t>(std::clamp(
      field.n_occupied_of_spin[static_cast<std::size_t>(spin)] - band_begin, 0, n_bands));
  const std::vector<Range> groups{{0, n_occupied, false}, {n_occupied, n, true}};
  CharacterBands result{
      .mean_field = points_of(path, field.crystal()), .corrected_ev = {}, .share = {}};
  const std::size_t n_points = result.mean_field.k.size();
  result.mean_field.energy_ev.assign(n, std::vector<double>(n_points));
  if (corrected) result.corrected_ev = result.share = result.mean_field.energy_ev;
  GridStates grid(field, spin, band_begin, band_begin + n_bands);
  Follower follower(groups);
  for (std::size_t i = 0; i < n_points; ++i) {
    const Vec3& k = result.mean_field.k[i];
    const auto available = static_cast<int>(
        make_g_sphere(field.crystal().bdot, k, field.waves.wavefunction_cutoff_ry).size());
    const DenseStates now = states(
        k, spin, std::max(band_begin + n_bands, std::min(band_begin + n_bands + kMore, available)));
    const std::vector<std::size_t> band = follower.follow(now, first, n);
    std::vector<double> energy_ev(n), moved_ev(n), share(n);
    for (std::size_t b = 0; b < n; ++b) energy_ev[b] = now.energy_ry[first + b] * kRydberg_ev;
    for (const Range& group : groups) {
      if (!corrected || group.size() == 0) continue;
      const Range whole =
          with_whole_multiplets(now, {first + group.begin, first + group.end, group.upward});
      const std::size_t m = whole.size(), known = group.size(),
                        skipped = first + group.begin - whole.begin;
      std::vector<Cplx> norm(m * m), sum(m * m);
      double outside_ev = 0.0;
      for (const GridNeighbour& neighbour : grid_neighbours(field, k)) {
        const GridStates::Entry& entry = grid.at(neighbour.k);
        const std::vector<double>& delta = correction[static_cast<std::size_t>(entry.irreducible)];
        outside_ev += neighbour.weight * delta[group.upward ? group.end - 1 : group.begin];
        const auto n_pw = entry.waves.g.size();
        const auto o = overlaps(now, whole, entry.waves.g,
                                entry.waves.coefficients.data + group.begin * n_pw, known);
        for (std::size_t a = 0; a < m; ++a)
          for (std::size_t b = 0; b < m; ++b)
            for (std::size_t c = 0; c < known; ++c) {
              const Cplx term = neighbour.weight * o[a * known + c] * std::conj(o[b * known + c]);
              norm[a * m + b] += term;
              sum[a * m + b] += delta[group.begin + c] * term;
            }
      }
      for (std::size_t a = 0; a < known; ++a)
        share[group.begin + a] = norm[(skipped + a) * m + skipped + a].real();
      for (std::size_t a = 0; a < m; ++a)
        for (std::size_t b = 0; b < m; ++b) {
          const Cplx missing = kOutside * ((a == b ? 1.0 : 0.0) - norm[a * m + b]);
          norm[a * m + b] += missing;
          sum[a * m + b] += outside_ev * missing;
        }
      const auto root = inverse_root(norm, m);
      auto h = product(product(root, sum, m), root, m);
      for (std::size_t a = 0; a < m; ++a)
        h[a * m + a] += now.energy_ry[whole.begin + a] * kRydberg_ev;
      const Eigen solved = eigen_of(std::move(h), m);
      std::vector<double> score(m * m);
      for (std::size_t a = 0; a < m; ++a)
        for (std::size_t x = 0; x < m; ++x) score[a * m + x] = std::norm(solved.column[a * m + x]);
      const auto to = assign(score, m);
      for (std::size_t a = 0; a < known; ++a)
        moved_ev[group.begin + a] = solved.value[to[skipped + a]];
    }
    for (std::size_t row = 0; row < n; ++row) {
      result.mean_field.energy_ev[row][i] = energy_ev[band[row]];
      if (!corrected) continue;
      result.corrected_ev[row][i] = moved_ev[band[row]];
      result.share[row][i] = share[band[row]];
    }
    grid.next_point();
    progress.report("states along the path", static_cast<std::int64_t>(i) + 1,
                    static_cast<std::int64_t>(n_points));
  }
  return result;
}

}  // namespace quasi::gw
