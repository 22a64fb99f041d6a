#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "workers/gw/solver/ordered_sum.hpp"
#include "workers/gw/solver/sigma.hpp"
#include "workers/gw/solver/sigma_sum.hpp"

// Σ over several devices and over interruptions.
namespace quasi::gw {
namespace {

/// Parts wanted in all: enough for the devices of one host and for a checkpoint now and then. Each part prepares
/// the plasmon poles of its q anew, so there are no more than that.
constexpr std::int64_t kParts = 8;
constexpr int kPartTag = 65;
constexpr std::int64_t kSmallestBlock = 64;  // bands of a part; fewer leave a device idle

std::vector<SigmaPart> parts_of(std::size_t n_q, const SigmaOptions& options) {
  const std::int64_t wanted = std::max<std::int64_t>(1, kParts / static_cast<std::int64_t>(n_q));
  const std::int64_t blocks = std::clamp<std::int64_t>(options.bands / kSmallestBlock, 1, wanted);
  std::vector<SigmaPart> parts;
  for (std::size_t iq = 0; iq < n_q; ++iq)
    for (std::int64_t b = 0; b < blocks; ++b) parts.push_back({iq, iq + 1, b * options.bands / blocks, (b + 1) * options.bands / blocks});
  return parts;
}

/// Calls visit(values, count) for every array of the sums, in one order, as doubles.
template <typename Sums, typename Visit>
void for_each_array(Sums& sums, const Visit& visit) {
  const auto complex = [&](auto& list) { visit(list.data(), 2 * list.size()); };
  for (auto& sum : sums) {
    visit(sum.x_ry.data(), sum.x_ry.size());
    for (auto& list : sum.sx_ry) complex(list);
    for (auto& list : sum.ch_ry) complex(list);
    complex(sum.slope);
    complex(sum.ch_static_ry);
    complex(sum.ch_exact_ry);
    for (auto& list : sum.axis_ry) complex(list);
  }
}

std::vector<double> packed(const std::vector<SelfEnergyAtK>& sums, const SigmaStatistics& statistics) {
  std::vector<double> values;
  for_each_array(sums, [&](const auto* data, std::size_t count) {
    const auto* flat = reinterpret_cast<const double*>(data);
    values.insert(values.end(), flat, flat + count);
  });
  for (const std::int64_t count : {statistics.elements, statistics.skipped, statistics.invalid}) values.push_back(static_cast<double>(count));
  return values;
}

/// sums += factor · what packed() made of a part of the same shape.
void add_packed(const Piece& values, double factor, std::vector<SelfEnergyAtK>& sums, SigmaStatistics* statistics) {
  std::size_t at = 0;
  for_each_array(sums, [&](auto* data, std::size_t count) {
    auto* flat = reinterpret_cast<double*>(data);
    for (std::size_t i = 0; i < count; ++i) flat[i] += factor * values.data[at++];
  });
  if (statistics == nullptr) return;
  statistics->elements += static_cast<std::int64_t>(values.data[at]);
  statistics->skipped += static_cast<std::int64_t>(values.data[at + 1]);
  statistics->invalid += static_cast<std::int64_t>(values.data[at + 2]);
}

/// Σ as RunningSums has it; nothing before there is enough.
std::optional<std::vector<SelfEnergyAtK>> estimated(const MeanField& field, const std::vector<DielectricMatrix>& epsilon, const SigmaOptions& options,
                                                    const std::vector<SigmaPart>& parts, const std::vector<Piece>& results, const std::vector<char>& finished) {
  std::vector<double> points(epsilon.size());
  for (const ZonePoint& point : field.transfers().points()) points[static_cast<std::size_t>(point.irreducible)] += 1.0;
  std::vector<char> complete(epsilon.size(), 1);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (finished[i] == 0) complete[parts[i].q_begin] = 0;
  double done = 0.0, all = 0.0;
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq) {
    if (epsilon[iq].at_gamma) continue;
    all += points[iq];
    if (complete[iq] != 0) done += points[iq];
  }
  const bool one_q = epsilon.size() == 1;
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t iq = parts[i].q_begin;
    const bool gamma = epsilon[iq].at_gamma;
    if (gamma && (one_q ? parts[i].band_begin == 0 && finished[i] == 0 : complete[iq] == 0)) return std::nullopt;
    if (one_q ? finished[i] != 0 : complete[iq] != 0) add_packed(results[i], gamma || one_q ? 1.0 : all / done, sums, nullptr);
  }
  if (!one_q && done == 0.0) return std::nullopt;
  finish_self_energy(field, options, sums);
  return sums;
}

/// Passes everything on but the parts' own counts: the whole is reported by parts.
class PartProgress : public Progress {
 public:
  PartProgress(Progress& whole, const std::atomic<std::int64_t>& done, std::int64_t total) : whole_(whole), done_(done), total_(total) {}
  void metric(std::string_view name, double value) override { whole_.metric(name, value); }
  void log(std::string_view line) override { whole_.log(line); }
  void checkpoint_ready(const std::string& path, std::int64_t step) override { whole_.checkpoint_ready(path, step); }
  bool cancelled() const override { return whole_.cancelled(); }
  bool checkpoint_wanted() override { return whole_.checkpoint_wanted(); }

 protected:
  void on_report(std::string_view phase, std::int64_t, std::int64_t) override { whole_.report(phase, done_, total_); }

 private:
  Progress& whole_;
  const std::atomic<std::int64_t>& done_;
  std::int64_t total_;
};

}  // namespace

std::vector<SelfEnergyAtK> self_energy(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options, const CoulombInteraction& coulomb,
                                       DeviceTeam& team, Checkpoint& checkpoint, Progress& progress, SigmaStatistics* statistics,
                                       const RunningSums& running) {
  const std::vector<SigmaPart> parts = parts_of(epsilon.size(), options);
  std::vector<Piece> results(parts.size());
  std::map<const GwKernels*, PreparedScreening> prepared;
  for (GwKernels* member : team.members()) prepared[member];
  std::atomic<std::int64_t> done{0};
  std::mutex mutex;
  std::vector<char> finished(parts.size(), 0);  // under the mutex
  PartProgress inside(progress, done, static_cast<std::int64_t>(parts.size()));
  const auto n_parts = static_cast<std::int64_t>(parts.size());
  const auto key_of = [](std::int64_t index) { return "sigma/" + std::to_string(index); };
  std::vector<std::string> names;
  for (std::int64_t index = 0; index < n_parts; ++index) names.push_back(key_of(index));
  Ranks& ranks = team.ranks();
  const std::vector<Piece> kept = kept_pieces(ranks, checkpoint, names);
  // Parts are small: another rank's go to rank 0 as they are finished, and into its checkpoint.
  const auto take_in = [&](const Ranks::Message& message) {
    const auto index = static_cast<std::int64_t>(message.values.at(0));
    Piece piece = piece_of(std::make_shared<const std::vector<double>>(message.values.begin() + 1, message.values.end()));
    checkpoint.put(key_of(index), piece);
    {
      const std::lock_guard lock(mutex);
      results[static_cast<std::size_t>(index)] = std::move(piece);
      finished[static_cast<std::size_t>(index)] = 1;
    }
    progress.report("self-energy", ++done, n_parts);
  };
  team.run(n_parts, [&](std::int64_t index, GwKernels& kernels) {
    auto& result = results[static_cast<std::size_t>(index)];
    if (kept[static_cast<std::size_t>(index)].data != nullptr) {
      result = kept[static_cast<std::size_t>(index)];
    } else {
      SigmaStatistics counted;
      result = piece_of(std::make_shared<const std::vector<double>>(packed(self_energy_part(field, epsilon, options, parts[static_cast<std::size_t>(index)], coulomb, kernels, inside, &counted,
                                       &prepared.at(&kernels)), counted)));
      checkpoint.put(key_of(index), result);
    }
    if (!ranks.leads()) {
      std::vector<double> message{static_cast<double>(index)};
      message.insert(message.end(), result.data, result.data + result.count);
      ranks.send(0, kPartTag, std::move(message));
      progress.throw_if_cancelled();
      return;
    }
    while (auto message = ranks.receive(kPartTag)) take_in(*message);
    if (running) {
      const std::lock_guard lock(mutex);
      finished[static_cast<std::size_t>(index)] = 1;
      if (const auto sums = estimated(field, epsilon, options, parts, results, finished)) running(*sums);
    }
    progress.report("self-energy", ++done, static_cast<std::int64_t>(parts.size()));
  });
  if (ranks.size() > 1) {
    while (ranks.leads() && done < n_parts) {
      if (auto message = ranks.receive(kPartTag)) take_in(*message);
      else if (ranks.peer_failed()) throw PeerFailed("another rank has failed");
      else std::this_thread::sleep_for(std::chrono::microseconds(100));
      progress.throw_if_cancelled();
    }
    for (Piece& result : results) {
      std::vector<double> values;
      if (ranks.leads()) values.assign(result.data, result.data + result.count);
      ranks.broadcast(values, 0);
      result = piece_of(std::make_shared<const std::vector<double>>(std::move(values)));
    }
  }
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  for (const auto& result : results) add_packed(result, 1.0, sums, statistics);
  finish_self_energy(field, options, sums);
  return sums;
}

}  // namespace quasi::gw
