#include "workers/thermal/solver/three_phonon/running_sums.hpp"

#include <cstdio>
#include <memory>

namespace quasi::thermal {

namespace {

constexpr std::uint64_t kFormat =
    0x7468'6572'6d61'6c01;  ///< of the sums: another one is not taken up

}  // namespace

Checkpoint open_checkpoint(const CheckpointRule& rule, Progress& progress) {
  if (rule.directory.empty()) return {};
  return {rule.directory, kFormat, rule.interval_s, progress};
}

RunningSums::RunningSums(Checkpoint& checkpoint, const std::string& name, std::uint64_t digest,
                         std::size_t n_values, std::int64_t n_pieces)
    : checkpoint_(checkpoint), n_pieces_(n_pieces), total_(n_values, 0.0) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  key_ = name + " " + text;
  const auto found = checkpoint_.find(key_);
  if (!found || found->count != n_values + 1) return;
  finished_ = static_cast<std::int64_t>(found->data[0]);
  total_.assign(found->data + 1, found->data + 1 + n_values);
}

void RunningSums::add(const std::vector<double>& piece) {
  for (std::size_t i = 0; i < total_.size(); ++i) total_[i] += piece[i];
  ++finished_;
  if (!checkpoint_.keeps()) return;
  const auto state = [&] {
    std::vector<double> values{static_cast<double>(finished_)};
    values.insert(values.end(), total_.begin(), total_.end());
    return values;
  };
  if (finished_ == n_pieces_)
    checkpoint_.put(key_, piece_of(std::make_shared<const std::vector<double>>(state())));
  else
    checkpoint_.put_if_due(key_, state);
}

}  // namespace quasi::thermal
