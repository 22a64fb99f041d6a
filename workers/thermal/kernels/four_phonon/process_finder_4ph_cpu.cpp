#include "workers/thermal/kernels/four_phonon/process_finder_4ph_cpu.hpp"

#include <algorithm>
#include <utility>

namespace quasi::thermal {

void ProcessFinder4phCpu::prepare(std::int32_t first_total, std::int32_t n_totals) {
  first_star_ = tables_.star_at(first_total);
  const std::int32_t n_stars = tables_.star_at(first_total + n_totals - 1) - first_star_ + 1;
  difference_.resize(static_cast<std::size_t>(n_stars));
  sum_.resize(static_cast<std::size_t>(n_stars));
#pragma omp parallel
  {
    std::vector<std::uint64_t> scratch;
#pragma omp for schedule(dynamic, 1)
    for (std::int32_t i = 0; i < 2 * n_stars; ++i) {
      const auto kind = i % 2 == 0 ? PairKind4ph::kDifference : PairKind4ph::kSum;
      fill(kind, tables_.representative_of(first_star_ + i / 2), scratch,
           (i % 2 == 0 ? difference_ : sum_)[static_cast<std::size_t>(i / 2)]);
    }
  }
}

void ProcessFinder4phCpu::fill(PairKind4ph kind, std::int32_t total,
                               std::vector<std::uint64_t>& scratch, PairTable& table) const {
  const int nb = tables_.n_branches;
  const std::int64_t n_pairs = tables_.n_modes() * nb;
  constexpr std::uint32_t kNone = static_cast<std::uint32_t>(PairKeys4ph::kClasses)
                                  << PairKeys4ph::kEnergyBits;
  scratch.clear();
  for (std::int64_t index = 0; index < n_pairs; ++index) {
    const std::uint32_t key = keys_.key(tables_, kind, total, 0, index);
    if (key < kNone)
      scratch.push_back(static_cast<std::uint64_t>(key) << 32 | static_cast<std::uint32_t>(index));
  }
  std::sort(scratch.begin(), scratch.end());
  table.key.resize(scratch.size());
  table.index.resize(scratch.size());
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    table.key[i] = static_cast<std::uint32_t>(scratch[i] >> 32);
    table.index[i] = static_cast<std::int32_t>(scratch[i] & 0xffffffffu);
  }
}

void ProcessFinder4phCpu::find(const Tables4ph& t, const ModePair4ph& pair, int weight,
                               std::vector<Found4ph>& found) const {
  const auto kind = sign_third(pair.channel) < 0 ? PairKind4ph::kSum : PairKind4ph::kDifference;
  const auto star = static_cast<std::size_t>(t.star_at(pair.position) - first_star_);
  const PairTable& table = kind == PairKind4ph::kSum ? sum_[star] : difference_[star];
  const double* p0 = t.p(pair.mode0);
  const double* p1 = t.p(pair.mode1);
  const double energy = t.omega[pair.mode0] + sign_second(pair.channel) * t.omega[pair.mode1];
  found.clear();
  if (kind == PairKind4ph::kSum && !(energy > 0.0)) return;
  for (int pair_class = 0; pair_class < PairKeys4ph::kClasses; ++pair_class) {
    const KeyInterval keys = keys_.interval(t.rules, kind, pair_class, energy, p0, p1);
    const auto begin =
        lower_bound_key(table.key.data(), static_cast<std::int64_t>(table.key.size()), keys.first);
    for (auto i = static_cast<std::size_t>(begin);
         i < table.key.size() && table.key[i] <= keys.last; ++i)
      test(t, pair, weight, table.index[i], found);
  }
}

void ProcessFinder4phCpu::test(const Tables4ph& t, const ModePair4ph& pair, int weight,
                               std::int32_t pair_index, std::vector<Found4ph>& found) const {
  const int nb = t.n_branches;
  const auto [channel, position, row, mode0, mode1, both] = pair;
  const bool sum = sign_third(channel) < 0;
  const std::int32_t q2 = t.rotate(position, pair_index / nb / nb);
  const std::int32_t q3 = t.mesh.add(t.total_at(position), q2, sum ? -1 : 1);
  std::int32_t mode2 = q2 * nb + pair_index / nb % nb;
  std::int32_t mode3 = q3 * nb + pair_index % nb;
  if (sum && mode2 > mode3) std::swap(mode2, mode3);  // the rotation reversed their order
  const double share = quartet_share_4ph(t, {channel, mode0, mode1, mode2, mode3});
  if (!(share > 0.0)) return;
  const Process4ph process = test_candidate_4ph(t, channel, mode0, mode1, mode2, mode3);
  if (process.multiplicity > 0.0)
    found.push_back(
        {mode2, mode3, share * process.multiplicity * weight, delta_4ph_ps(t.rules, process)});
}

}  // namespace quasi::thermal
