#include "workers/mosfet/solver/sweep/sweep_state.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/team/kept_pieces.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/sweep/point_report.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

/// Messages between ranks about a sweep.
enum SweepTag : int {
  kSweepNews = 1,   ///< to rank 0: packed SweepNews; an empty message: the rank is done
  kSweepDrain = 2,  ///< from rank 0: publish the state of the running points
};

// Points of the beam scheme start well from the quasi-equilibrium, too, so that long chains are cut
// for the sake of many devices.
constexpr std::size_t kLongestBeamChain = 6;

// Steady points of equal V_GS form a chain along V_DS. Every transient point is a chain by itself.
std::vector<std::vector<int>> make_chains(const Deck& deck) {
  const int count = static_cast<int>(deck.points.size());
  std::vector<std::vector<int>> chains;
  if (deck.run.mode == RunMode::kTransient) {
    for (int k = 0; k < count; ++k) chains.push_back({k});
    return chains;
  }
  std::map<double, std::vector<int>> by_gate;
  for (int k = 0; k < count; ++k) by_gate[deck.points[k].vgs_v].push_back(k);
  for (auto& [vgs, chain] : by_gate) {
    std::stable_sort(chain.begin(), chain.end(), [&](int a, int b) {
      return std::fabs(deck.points[a].vds_v) < std::fabs(deck.points[b].vds_v);
    });
    const std::size_t longest =
        deck.run.scheme == StreamingScheme::kBeam ? kLongestBeamChain : chain.size();
    for (std::size_t from = 0; from < chain.size(); from += longest)
      chains.emplace_back(
          chain.begin() + static_cast<std::ptrdiff_t>(from),
          chain.begin() + static_cast<std::ptrdiff_t>(std::min(from + longest, chain.size())));
  }
  return chains;
}

Piece piece_of_values(std::vector<double> values) {
  return piece_of(std::make_shared<const std::vector<double>>(std::move(values)));
}

}  // namespace

SweepState::SweepState(const Deck& deck_in, const SweepOptions& options_in, Progress& progress_in)
    : deck(deck_in),
      options(options_in),
      progress(progress_in),
      structure(make_structure(deck)),
      problem(make_transport_problem(deck, structure)),
      source(solve_contact(deck, structure, 0)),
      drain(solve_contact(deck, structure, structure.nx - 1)),
      chains(make_chains(deck)),
      ranks(*options.ranks),
      layout(options.devices.size(), ranks),
      checkpoint(ranks.leads() ? options.checkpoint_directory : std::filesystem::path{},
                 resume_digest(deck), deck.common.checkpoint_interval_s, progress) {
  ranks.require_same(resume_digest(deck), "the deck");
  resume();
  const auto n_chains = static_cast<int>(chains.size());
  for (int chain = 0; chain < n_chains; ++chain) {
    if (layout.owns(chain, n_chains) &&
        next_position_locked(chain) < static_cast<int>(chains[chain].size())) {
      queue.push_back(chain);
      continue;
    }
    resumed_running[static_cast<std::size_t>(chain)] = {};  // another rank continues this chain
    resumed_waiting[static_cast<std::size_t>(chain)] = {};
  }
  // Points with many electrons take longest. They come first, so that they do not end the sweep.
  if (deck.run.scheme == StreamingScheme::kBeam) std::reverse(queue.begin(), queue.end());
}

void SweepState::resume() {
  std::vector<double> keeps{checkpoint.keeps() ? 1.0 : 0.0};
  ranks.broadcast(keeps, 0);
  keeps_pieces_ = keeps.at(0) > 0.0;
  if (!keeps_pieces_) {
    resumed_running.resize(chains.size());
    resumed_waiting.resize(chains.size());
    return;
  }
  const auto kept = [&](std::size_t count, std::string (*name)(int)) {
    std::vector<std::string> names;
    for (int k = 0; k < static_cast<int>(count); ++k) names.push_back(name(k));
    return kept_pieces(ranks, checkpoint, names);
  };
  const std::vector<Piece> results = kept(deck.points.size(), SweepPieces::finished);
  resumed_running = kept(chains.size(), SweepPieces::running);
  resumed_waiting = kept(chains.size(), SweepPieces::waiting);
  for (std::size_t k = 0; k < results.size(); ++k)
    if (results[k].data != nullptr) finished[static_cast<int>(k)] = unpack_result(results[k]);
  if (!ranks.leads() || checkpoint.names("").empty()) return;
  progress.log("resumed from the checkpoint: " + std::to_string(finished.size()) + " of " +
               std::to_string(deck.points.size()) + " points finished");
  if (options.on_finished && !finished.empty()) options.on_finished(finished);
  if (options.output_directory.empty()) return;
  for (int point = 0; point < static_cast<int>(deck.points.size()); ++point)
    for (int number = 0; number < static_cast<int>(deck.output.pdf_at_fs.size()); ++number)
      if (const auto piece = checkpoint.find(SweepPieces::snapshot(point, number)))
        write_snapshot(deck, problem, point, number, unpack_snapshot(*piece),
                       options.output_directory);
}

int SweepState::next_position_locked(int chain) const {
  int position = 0;
  while (position < static_cast<int>(chains[chain].size()) &&
         finished.contains(chains[chain][position]))
    ++position;
  return position;
}

BiasPoint SweepState::bias_at(int point, double t_fs) const {
  const BiasPoint& bias = deck.points[static_cast<std::size_t>(point)];
  return {bias.vgs_v + deck.gate_wave.at(t_fs), bias.vds_v + deck.drain_wave.at(t_fs)};
}

int SweepState::lanes_of(const Device& device) const {
  const auto pdf_size = static_cast<double>(problem.pdf_size());
  int lanes = options.lanes;
  // Four points hide each other's latencies at 9e6 cells each; small meshes need more points.
  if (lanes == 0)
    lanes = device.backend == Backend::kCuda ? std::clamp(static_cast<int>(3.6e7 / pdf_size), 4, 12)
                                             : 1;
  // Every device gets its share, so that none takes chains that another could begin at once.
  const auto n_devices = static_cast<int>(layout.size()),
             n_chains = static_cast<int>(chains.size());
  lanes = std::clamp((n_chains + n_devices - 1) / n_devices, 1, lanes);
  if (options.memory_budget_bytes <= 0) return lanes;
  const double nodes = static_cast<double>(structure.nx) * structure.nz;
  const auto bytes = static_cast<std::int64_t>(bytes_of_point(pdf_size, nodes, device.backend));
  return static_cast<int>(std::min<std::int64_t>(
      lanes, items_that_fit(options.memory_budget_bytes, 0, bytes, "a bias point")));
}

bool SweepState::is_turn(Checkpoint::Turn& turn) {
  if (ranks.leads()) return checkpoint.is_turn(turn);
  if (!keeps_pieces_) return false;
  const std::lock_guard lock(mutex);
  while (ranks.receive(kSweepDrain)) ++drains_asked;
  const auto now = std::chrono::steady_clock::now();
  turn.draining = turn.drains != drains_asked;
  const double elapsed_s = std::chrono::duration<double>(now - turn.last).count();
  if (!turn.draining && elapsed_s < deck.common.checkpoint_interval_s) return false;
  turn.last = now;
  turn.drains = drains_asked;
  return true;
}

void SweepState::publish(SweepNews news) {
  if (!ranks.leads()) return ranks.send(0, kSweepNews, pack(news));
  const std::lock_guard lock(mutex);
  apply(news);
}

void SweepState::apply(SweepNews& news) {
  std::vector<std::pair<std::string, Piece>> fresh;
  const auto number_after = [](const std::string& name, char mark) {
    return std::stoi(name.substr(name.find(mark) + 1));
  };
  std::map<int, PointResult> points;
  for (auto& [name, values] : news.fresh) {
    fresh.emplace_back(name, piece_of_values(std::move(values)));
    const Piece& piece = fresh.back().second;
    if (name.starts_with("finished/")) {
      const int point = number_after(name, '/');
      points[point] = finished[point] = unpack_result(piece);
    } else if (name.starts_with("pdf/") && !options.output_directory.empty()) {
      write_snapshot(deck, problem, number_after(name, '/'), number_after(name, '_'),
                     unpack_snapshot(piece), options.output_directory);
    }
  }
  if (!fresh.empty()) checkpoint.exchange(news.old, std::move(fresh), true);
  if (options.on_finished && !points.empty()) options.on_finished(points);
  if (!news.log.empty()) progress.log(news.log);
}

void SweepState::serve_ranks(const std::atomic<bool>& stop) {
  constexpr std::chrono::milliseconds kPollInterval{1};
  Checkpoint::Turn turn;
  int n_running = ranks.size() - 1;
  while (n_running > 0 && !stop) {
    bool idle = true;
    while (auto message = ranks.receive(kSweepNews)) {
      idle = false;
      if (message->values.empty())
        --n_running;
      else
        publish(unpack_news(message->values));
    }
    if (checkpoint.is_turn(turn) && turn.draining)
      for (int rank = 1; rank < ranks.size(); ++rank) ranks.send(rank, kSweepDrain, {});
    progress.throw_if_cancelled();
    if (ranks.peer_failed()) throw PeerFailed();
    if (idle) std::this_thread::sleep_for(kPollInterval);
  }
}

void SweepState::tell_done() { ranks.send(0, kSweepNews, {}); }

}  // namespace quasi::mosfet
