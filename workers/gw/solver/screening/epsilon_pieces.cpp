#include "workers/gw/solver/screening/epsilon_pieces.hpp"

#include <algorithm>

namespace quasi::gw {
namespace {

/// Calls visit(values, count) for every array of a subspace, always in one order.
template <typename Reduced, typename Visit>
void for_each_array(Reduced& reduced, const Visit& visit) {
  visit(reduced.basis.data(), reduced.basis.size());
  for (auto& inner : reduced.inner) visit(inner.data(), inner.size());
  visit(reduced.share.data(), reduced.share.size());
  visit(reduced.rest.data(), reduced.rest.size());
}

/// Returns the header of a subspace: its sizes, its error and its direction.
std::vector<Cplx> header_of(const DielectricMatrix& m) {
  const ReducedFrequencies& r = m.reduced;
  if (!r.used()) return {};
  return {{static_cast<double>(r.n), static_cast<double>(r.n_b)},
          {static_cast<double>(m.subspace_vectors), m.subspace_error},
          {r.direction[0], r.direction[1]},
          {r.direction[2], 0.0}};
}

}  // namespace

Piece packed(const DielectricMatrix& m) {
  const std::size_t n = m.inverse[0].size(), n_f = m.inverse.size();
  const std::size_t wave_size = m.long_wave.empty() ? 0 : 9 + 6 * m.epsilon_diagonal.size();
  const std::vector<Cplx> header = header_of(m);
  std::size_t count =
      n_f * n + m.epsilon_diagonal.size() + m.long_wave.size() * wave_size + header.size();
  if (m.reduced.used())
    for_each_array(m.reduced, [&](const Cplx*, std::size_t more) { count += more; });
  std::shared_ptr<double[]> values(
      new double[2 * count]);  // not set to 0, so that the copies touch the memory first
  auto* to = reinterpret_cast<Cplx*>(values.get());
  for (std::size_t f = 0; f < n_f; ++f) {
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < n; ++i) to[f * n + i] = m.inverse[f][i];
  }
  to = std::copy(m.epsilon_diagonal.begin(), m.epsilon_diagonal.end(), to + n_f * n);
  for (const LongWaveLimit& wave : m.long_wave) {
    for (const auto& row : wave.epsilon) to = std::copy(row.begin(), row.end(), to);
    for (const auto* wings : {&wave.left, &wave.right})
      for (const auto& wing : *wings) to = std::copy(wing.begin(), wing.end(), to);
  }
  to = std::copy(header.begin(), header.end(), to);
  if (m.reduced.used())
    for_each_array(m.reduced, [&](const Cplx* from, std::size_t more) {
      to = std::copy(from, from + more, to);
    });
  return {values, values.get(), 2 * count};
}

void unpack(const Piece& piece, bool with_waves, bool with_subspace, DielectricMatrix& m) {
  const auto n = static_cast<std::size_t>(m.size()), n_f = m.frequencies_ry.size(),
             n_whole = with_subspace ? 1 : n_f;
  const auto* values = reinterpret_cast<const Cplx*>(piece.data);
  for (std::size_t f = 0; f < n_whole; ++f)
    m.inverse.emplace_back(values + f * n * n, values + (f + 1) * n * n);
  values += n_whole * n * n;
  m.epsilon_diagonal.assign(values, values + n);
  values += n;
  for (std::size_t f = 0; with_waves && f < n_f; ++f) {
    LongWaveLimit& wave = m.long_wave.emplace_back();
    for (auto& row : wave.epsilon)
      for (Cplx& value : row) value = *values++;
    for (auto* wings : {&wave.left, &wave.right})
      for (auto& wing : *wings) {
        wing.assign(values, values + n);
        values += n;
      }
  }
  if (!with_subspace) return;
  ReducedFrequencies& r = m.reduced;
  r.n = static_cast<std::int64_t>(values[0].real());
  r.n_b = static_cast<std::int64_t>(values[0].imag());
  m.subspace_vectors = static_cast<int>(values[1].real());
  m.subspace_error = values[1].imag();
  r.direction = {values[2].real(), values[2].imag(), values[3].real()};
  values += 4;
  r.basis.resize(static_cast<std::size_t>(r.n * r.n_b));
  r.inner.assign(n_f, std::vector<Cplx>(static_cast<std::size_t>(r.n_b * r.n_b)));
  r.share.resize(n_f);
  r.rest.resize(static_cast<std::size_t>(r.n * r.n));
  for_each_array(r, [&](Cplx* to, std::size_t count) {
    std::copy(values, values + count, to);
    values += count;
  });
}

}  // namespace quasi::gw
