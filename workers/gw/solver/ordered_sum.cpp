#include "workers/gw/solver/ordered_sum.hpp"

#include <algorithm>
#include <memory>

namespace quasi::gw {
namespace {

constexpr int kChainTag = 64;
constexpr std::size_t kPieceValues = std::size_t{1} << 19;  // 4 MiB: small enough to overlap, large enough to cost no latency

}  // namespace

std::vector<Cplx> ordered_sum(Ranks& ranks, std::vector<Piece>& parts) {
  std::size_t count = parts.empty() ? 0 : parts.front().count;
  for (const auto& of_rank : ranks.gather({static_cast<double>(count)})) count = std::max(count, static_cast<std::size_t>(of_rank.at(0)));
  std::vector<Cplx> sum(count / 2);
  auto* values = reinterpret_cast<double*>(sum.data());
  const int rank = ranks.rank(), last = ranks.size() - 1;
  for (std::size_t begin = 0; begin < count; begin += kPieceValues) {
    const std::size_t n = std::min(kPieceValues, count - begin);
    double* to = values + begin;
    std::size_t next = 0;  // part
    if (rank > 0) {
      const std::vector<double> before = ranks.wait_for(kChainTag).values;
      std::copy(before.begin(), before.end(), to);
    } else if (!parts.empty()) {
      std::copy_n(parts[next++].data + begin, n, to);
    }
    for (; next < parts.size(); ++next) {
      const double* part = parts[next].data + begin;
#pragma omp parallel for schedule(static)
      for (std::size_t i = 0; i < n; ++i) to[i] += part[i];
    }
    if (rank < last) ranks.send(rank + 1, kChainTag, {to, to + n});
  }
  parts.clear();
  ranks.broadcast(values, count * sizeof(double), last);
  return sum;
}

std::vector<Piece> kept_pieces(Ranks& ranks, const Checkpoint& checkpoint, const std::vector<std::string>& names) {
  std::vector<Piece> pieces(names.size());
  std::vector<double> counts(names.size(), 0.0);
  if (ranks.leads())
    for (std::size_t i = 0; i < names.size(); ++i)
      if (auto kept = checkpoint.find(names[i])) {
        counts[i] = static_cast<double>(kept->count);
        pieces[i] = std::move(*kept);
      }
  if (ranks.size() == 1) return pieces;
  ranks.broadcast(counts, 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (counts[i] == 0.0) continue;
    std::vector<double> values;
    if (ranks.leads()) values.assign(pieces[i].data, pieces[i].data + pieces[i].count);
    ranks.broadcast(values, 0);
    if (!ranks.leads()) pieces[i] = piece_of(std::make_shared<const std::vector<double>>(std::move(values)));
  }
  return pieces;
}

}  // namespace quasi::gw
