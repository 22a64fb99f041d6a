#include "workers/gw/solver/part_runner.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "workers/backend/team/kept_pieces.hpp"

namespace quasi::gw {
namespace {

constexpr int kPartTag = 65;

/// Passes all reports on except the counts of the parts, because the whole is reported by parts.
class PartProgress : public Progress {
 public:
  PartProgress(Progress& whole, const std::atomic<std::int64_t>& done, std::int64_t total)
      : whole_(whole), done_(done), total_(total) {}
  void metric(std::string_view name, double value) override { whole_.metric(name, value); }
  void log(std::string_view line) override { whole_.log(line); }
  void checkpoint_ready(const std::string& path, std::int64_t step) override {
    whole_.checkpoint_ready(path, step);
  }
  bool cancelled() const override { return whole_.cancelled(); }
  bool checkpoint_wanted() override { return whole_.checkpoint_wanted(); }

 protected:
  void on_report(std::string_view phase, std::int64_t, std::int64_t) override {
    whole_.report(phase, done_, total_);
  }

 private:
  Progress& whole_;
  const std::atomic<std::int64_t>& done_;
  std::int64_t total_;
};

}  // namespace

std::vector<Piece> run_parts(const PartedSum& sum, DeviceTeam& team, Checkpoint& checkpoint,
                             Progress& progress) {
  std::vector<Piece> results(static_cast<std::size_t>(sum.parts));
  std::atomic<std::int64_t> done{0};
  std::mutex mutex;
  std::vector<char> finished(results.size(), 0);  // guarded by the mutex
  PartProgress inside(progress, done, sum.parts);
  const auto key_of = [&](std::int64_t part) { return sum.name + "/" + std::to_string(part); };
  std::vector<std::string> names;
  for (std::int64_t part = 0; part < sum.parts; ++part) names.push_back(key_of(part));
  Ranks& ranks = team.ranks();
  const std::vector<Piece> kept = kept_pieces(ranks, checkpoint, names);
  const auto take_in = [&](const Ranks::Message& message) {
    const auto part = static_cast<std::int64_t>(message.values.at(0));
    Piece piece = piece_of(std::make_shared<const std::vector<double>>(message.values.begin() + 1,
                                                                       message.values.end()));
    checkpoint.put(key_of(part), piece);
    {
      const std::lock_guard lock(mutex);
      results[static_cast<std::size_t>(part)] = std::move(piece);
      finished[static_cast<std::size_t>(part)] = 1;
    }
    progress.report(sum.phase, ++done, sum.parts);
  };
  team.run(
      sum.parts,
      [&](std::int64_t part, GwKernels& kernels) {
        const auto at = static_cast<std::size_t>(part);
        Piece result = kept[at];
        if (result.data == nullptr) {
          result = piece_of(
              std::make_shared<const std::vector<double>>(sum.make(part, kernels, inside)));
          checkpoint.put(key_of(part), result);
        }
        if (!ranks.leads()) {
          std::vector<double> message{static_cast<double>(part)};
          message.insert(message.end(), result.data, result.data + result.count);
          ranks.send(0, kPartTag, std::move(message));
          progress.throw_if_cancelled();
          return;
        }
        while (auto message = ranks.receive(kPartTag)) take_in(*message);
        {
          const std::lock_guard lock(mutex);
          results[at] = std::move(result);
          finished[at] = 1;
          if (sum.running) sum.running(results, finished);
        }
        progress.report(sum.phase, ++done, sum.parts);
      },
      DeviceTeam::Order::kBalanced);
  if (ranks.size() == 1) return results;
  while (ranks.leads() && done < sum.parts) {
    if (auto message = ranks.receive(kPartTag))
      take_in(*message);
    else if (ranks.peer_failed())
      throw PeerFailed();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    progress.throw_if_cancelled();
  }
  for (Piece& result : results) {
    std::vector<double> values;
    if (ranks.leads()) values.assign(result.data, result.data + result.count);
    ranks.broadcast(values, 0);
    result = piece_of(std::make_shared<const std::vector<double>>(std::move(values)));
  }
  return results;
}

}  // namespace quasi::gw
