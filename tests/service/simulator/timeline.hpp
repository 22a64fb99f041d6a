#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "proto/wire/digest.hpp"

/// Begin here: the simulator runs a server, three workers, three clients and an operator in one
/// thread, on a clock of its own and with random numbers from one seed. The queue core with its
/// database, the supervisor of the workers and the journal of the clients are those of production.
/// Network, disks, processes and clocks are simulated. story.hpp decides what happens, and
/// judge.hpp compares it with the invariants.
namespace quasi::sim {

/// Random numbers of one story.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// A number in [0, n).
  std::uint64_t draw(std::uint64_t n) { return engine_() % n; }
  bool one_in(std::uint64_t n) { return draw(n) == 0; }
  std::int64_t draw(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(most - least + 1)));
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

/// The events of a story in the order of their times. Equal times keep the order of their calls.
class Timeline {
 public:
  /// Milliseconds since the story began.
  std::int64_t now() const { return now_ms_; }
  /// Plans an event of the story.
  void plan_event(std::int64_t delay_ms, std::function<void()> action);
  /// Plans the end of a wait, which does not count as an event.
  void plan_timeout(std::int64_t delay_ms, std::function<void()> action);
  /// Runs what comes next. @return false if nothing is planned
  bool step();

  /// Number of events so far.
  std::int64_t events() const { return events_; }

  /// Adds a line to the history.
  void record(const std::string& line);
  /// The last lines of the history.
  std::string last_lines() const;
  /// Digest of the whole history.
  std::string digest() { return history_.finish_hex(); }

 private:
  struct Planned {
    bool is_event = false;
    std::function<void()> action;
  };
  std::int64_t now_ms_ = 0;
  std::uint64_t planned_ = 0;
  std::int64_t events_ = 0;
  std::map<std::pair<std::int64_t, std::uint64_t>, Planned> plan_;
  std::deque<std::string> lines_;
  wire::Sha256 history_;
};

}  // namespace quasi::sim
