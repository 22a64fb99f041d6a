#include "workers/engine/test_work.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "workers/backend/error.hpp"
#include "workers/files/durable_file.hpp"

namespace quasi {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

Clock::duration to_duration(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
}

/// Waits until `end` and checks for a cancellation every 20 ms.
void wait_until(Clock::time_point end, const Progress& progress) {
  progress.throw_if_cancelled();
  while (Clock::now() < end) {
    std::this_thread::sleep_until(std::min(end, Clock::now() + std::chrono::milliseconds(20)));
    progress.throw_if_cancelled();
  }
}

/// Returns the `index`-th number of SplitMix64 started at `seed`. It is a pure function of both.
std::uint64_t split_mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw StorageError("cannot write '" + path.string() + "'; is the disk full?");
}

void emit(const v1::TestWork::Emit& work, const fs::path& path, Progress& progress) {
  constexpr std::uint64_t kWords = 1 << 17;  // 1 MiB in each step
  std::ofstream out(path, std::ios::binary);
  std::vector<std::uint64_t> words(kWords);
  const auto total = static_cast<std::int64_t>(work.bytes());
  for (std::uint64_t written = 0, next = 0; written < work.bytes();) {
    for (auto& word : words) word = split_mix(work.seed(), next++);
    const std::uint64_t size = std::min(kWords * 8, work.bytes() - written);
    out.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(size));
    if (!out) break;
    written += size;
    progress.report("emit", static_cast<std::int64_t>(written), total);
  }
  if (!out.flush()) throw StorageError("cannot write '" + path.string() + "'; is the disk full?");
}

/// Checkpoints of test work are text files "ckpt-<step>". The first line names format and step. The
/// rest is the history that is written to steps.txt.
class TestCheckpoints {
 public:
  explicit TestCheckpoints(fs::path directory) : directory_(std::move(directory)) {}

  struct Found {
    std::int64_t step = 0;
    std::string history;
  };

  std::optional<Found> newest() const {
    std::optional<Found> best;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (!entry.path().filename().string().starts_with("ckpt-")) continue;
      std::ifstream in(entry.path());
      std::string magic;
      Found found;
      in >> magic >> found.step;
      in.ignore(1);
      if (!in || magic != kMagic)
        throw InvalidInput("'" + entry.path().string() + "' is not a checkpoint of test work");
      std::stringstream rest;
      rest << in.rdbuf();
      found.history = rest.str();
      if (!best || found.step > best->step) best = std::move(found);
    }
    return best;
  }

  std::string write(std::int64_t step, const std::string& history) const {
    const fs::path temporary = directory_ / "ckpt.tmp";
    write_file(temporary, std::string(kMagic) + " " + std::to_string(step) + "\n" + history);
    const fs::path path = directory_ / ("ckpt-" + std::to_string(step));
    try {
      files::sync_file(temporary);
      files::publish(temporary, path);
    } catch (const files::FileFailure& failure) {
      throw StorageError(failure.sentence());
    }
    return path.string();
  }

 private:
  static constexpr const char* kMagic = "quasi-test-checkpoint-1";
  fs::path directory_;
};

std::int64_t run_steps(std::uint32_t steps, Clock::duration interval, const TestWorkSite& site,
                       Progress& progress, bool checkpoints) {
  const TestCheckpoints store(site.checkpoint_directory);
  TestCheckpoints::Found state;
  if (checkpoints) state = store.newest().value_or(TestCheckpoints::Found{});
  const std::int64_t first = state.step + 1;
  const std::string before = state.history;
  for (std::int64_t step = first; step <= steps; ++step) {
    wait_until(Clock::now() + interval, progress);
    progress.report("steps", step, steps);
    progress.metric("residual", 1.0 / static_cast<double>(step));
    state.step = step;
    if (!checkpoints) continue;
    state.history = before + "attempt " + std::to_string(site.attempt_number) + ": " +
                    std::to_string(first) + ".." + std::to_string(step) + "\n";
    progress.checkpoint_ready(store.write(step, state.history), step);
  }
  if (checkpoints) write_file(site.output_directory / "steps.txt", state.history);
  return state.step;
}

[[noreturn]] void hang(bool ignore_sigterm) {
  std::signal(SIGTERM, ignore_sigterm ? SIG_IGN : SIG_DFL);
  while (true) pause();
}

}  // namespace

nlohmann::json run_test_work(const v1::TestWork& work, const TestWorkSite& site,
                             Progress& progress) {
  const auto start = Clock::now();
  switch (work.action_case()) {
    case v1::TestWork::kNoop:
      return {{"action", "noop"}};
    case v1::TestWork::kSleep:
      progress.log("sleeping");
      wait_until(start + to_duration(work.sleep().duration()), progress);
      return {{"action", "sleep"}};
    case v1::TestWork::kSpin: {
      std::uint64_t value = 1;
      const auto end = start + to_duration(work.spin().duration());
      while (Clock::now() < end) {
        for (std::uint64_t i = 0; i < 100000; ++i) value = split_mix(value, i);
        progress.throw_if_cancelled();
      }
      return {{"action", "spin"}, {"value", value}};
    }
    case v1::TestWork::kEmit:
      emit(work.emit(), site.output_directory / "data.bin", progress);
      return {{"action", "emit"}, {"bytes", work.emit().bytes()}};
    case v1::TestWork::kProgress:
      return {{"action", "progress"},
              {"steps", run_steps(work.progress().steps(), to_duration(work.progress().interval()),
                                  site, progress, false)}};
    case v1::TestWork::kCheckpointing:
      return {
          {"action", "checkpointing"},
          {"steps", run_steps(work.checkpointing().steps(),
                              to_duration(work.checkpointing().interval()), site, progress, true)}};
    case v1::TestWork::kExit:
      _exit(work.exit().status());
    case v1::TestWork::kSignal:
      std::signal(work.signal().number(), SIG_DFL);
      raise(work.signal().number());
      return {{"action", "signal"}, {"survived", work.signal().number()}};
    case v1::TestWork::kHang:
      hang(work.hang().ignore_sigterm());
    case v1::TestWork::kFlaky:
      if (site.attempt_number <= work.flaky().failures()) _exit(work.flaky().status());
      return {{"action", "flaky"}, {"attempt", site.attempt_number}};
    case v1::TestWork::kGarbageIpc: {
      // Field number 0 exists in no protobuf message, so zero bytes are never a valid message.
      const std::string garbage(std::clamp<std::size_t>(work.garbage_ipc().bytes(), 1, 1 << 17),
                                '\0');
      site.daemon.send_bytes(garbage.data(), garbage.size());
      wait_until(start + std::chrono::minutes(1), progress);
      return {{"action", "garbage_ipc"}};
    }
    case v1::TestWork::ACTION_NOT_SET:
      break;
  }
  throw InvalidInput("test: no action is set; name one, e.g. noop");
}

}  // namespace quasi
