// What is kept of the four-phonon collision operator and of its applications, and what is made
// again.

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/support/every_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/four_phonon/solved_deck_4ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/solver/three_phonon/remembered_operator.hpp"
#include "workers/thermal/solver/three_phonon/running_sums.hpp"

namespace quasi::thermal {
namespace {

/// Cancels after some reports of the operator's sums, asks for a checkpoint always, and remembers
/// what the first report said, the lines of the log and the newest file.
class Watching : public SilentProgress {
 public:
  explicit Watching(int reports = 1 << 30) : left_(reports) {}
  bool checkpoint_wanted() override { return true; }
  bool cancelled() const override { return left_ < 0; }
  void log(std::string_view line) override { lines += std::string(line) + '\n'; }
  void checkpoint_ready(const std::string& path, std::int64_t) override { file = path; }
  std::int64_t first_done = -1;
  std::string lines;
  std::filesystem::path file;

 protected:
  void on_report(std::string_view phase, std::int64_t done, std::int64_t) override {
    if (phase != "collision 4ph") return;
    --left_;
    if (first_done < 0) first_done = done;
  }

 private:
  int left_;
};

class CollisionCheckpoint : public quasi::test::OnEveryDevice {
 protected:
  void SetUp() override {
    whole = test::solve_deck_4ph(test::model("silicon-sw"),
                                 {"ngrid=4,4,4", "four_phonon_iteration=T"}, {GetParam()});
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    field.resize(static_cast<std::size_t>(3 * whole->run.modes.n_modes()));
    for (double& x : field) x = normal(random);
    const FourPhononRun& four = *whole->four_phonon;
    bytes =
        collision_bytes(static_cast<std::int64_t>(four.rates.n_rows), whole->run.modes.n_modes());
    applied = four.collision->in_scattering(0, field);
    rates = four.collision->out_scattering(0);
  }
  /// One attempt at applying the operator, on the files that are there.
  std::vector<double> attempt(Watching& progress, double limit_bytes) {
    FourPhononRun& four = *whole->four_phonon;
    Checkpoint checkpoint = open_checkpoint({directory.path(), 0.0}, progress);
    Collision4ph collision(four.problem, whole->deck.control.constants(),
                           {four.kernels.front().get()}, four.rates, true, progress);
    collision.keep_in(checkpoint, limit_bytes);
    const std::vector<double> result = collision.in_scattering(0, field);
    EXPECT_EQ(collision.out_scattering(0), rates);
    return result;
  }

  const quasi::test::TemporaryDirectory directory;
  std::unique_ptr<test::SolvedDeck4ph> whole;
  std::vector<double> field, applied, rates;
  double bytes = 0.0;
};

// Cancelled in the middle of its sums it goes on from there, and finished it is not summed again:
// the same bits. The file has the size that the plan says, within what stands beside the matrix.
TEST_P(CollisionCheckpoint, IsTakenUpWhereItWasEnded) {
  std::int64_t before = 0;
  for (const int reports : {2, 1 << 30, 1 << 30}) {
    Watching progress(reports);
    if (reports == 2) {
      EXPECT_THROW(attempt(progress, bytes), Cancelled);
      EXPECT_EQ(progress.first_done, 0);
      continue;
    }
    EXPECT_EQ(attempt(progress, bytes), applied);
    EXPECT_EQ(progress.lines.find("not checkpointed"), std::string::npos) << progress.lines;
    EXPECT_GT(progress.first_done, before);
    before = progress.first_done;
    if (!progress.file.empty()) {
      EXPECT_NEAR(static_cast<double>(std::filesystem::file_size(progress.file)) / bytes, 1.0,
                  0.02);
    }
  }
  EXPECT_EQ(before, TilePlan4ph::kProgressUnits);
}

// One byte above what is allowed: nothing is written, the log says what and why, and all is built
// again, to the same bits.
TEST_P(CollisionCheckpoint, AboveTheLimitItIsBuiltAgain) {
  Watching cancelled(2);
  EXPECT_THROW(attempt(cancelled, bytes - 1.0), Cancelled);
  EXPECT_TRUE(cancelled.file.empty());
  Watching progress;
  EXPECT_EQ(attempt(progress, bytes - 1.0), applied);
  EXPECT_EQ(progress.first_done, 0);
  EXPECT_NE(progress.lines.find("is not checkpointed: checkpoint_limit_mib allows"),
            std::string::npos)
      << progress.lines;
}

QUASI_ON_EVERY_DEVICE(CollisionCheckpoint);

/// State that is shared by ranks which are threads of this process.
struct Together {
  explicit Together(int n) : said(static_cast<std::size_t>(n)), all(n) {}
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<Ranks::Message>> mail;  ///< by rank and tag
  std::vector<std::vector<double>> said;
  std::barrier<> all;
  std::atomic<bool> failed{false};
};

class ThreadOf : public Ranks {
 public:
  ThreadOf(int rank, Together& together) : rank_(rank), together_(together) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(together_.said.size()); }
  int rank_on_host() const override { return rank_; }
  int ranks_on_host() const override { return size(); }
  void send(int to, int tag, std::vector<double> values) override {
    const std::lock_guard lock(together_.mutex);
    together_.mail[{to, tag}].push_back({rank_, std::move(values)});
  }
  std::optional<Message> receive(int tag) override {
    const std::lock_guard lock(together_.mutex);
    auto& box = together_.mail[{rank_, tag}];
    if (box.empty()) return {};
    Message first = std::move(box.front());
    box.pop_front();
    return first;
  }
  using Ranks::broadcast;
  void broadcast(void* data, std::size_t bytes, int root) override {
    std::vector<double> packed((bytes + sizeof(double) - 1) / sizeof(double));
    std::memcpy(packed.data(), data, bytes);
    std::memcpy(data, gather(packed)[static_cast<std::size_t>(root)].data(), bytes);
  }
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) override {
    together_.said[static_cast<std::size_t>(rank_)] = mine;
    together_.all.arrive_and_wait();
    auto heard = together_.said;
    together_.all.arrive_and_wait();
    if (together_.failed) throw PeerFailed();
    return heard;
  }
  bool peer_failed() override { return together_.failed; }
  Ending end(int status, const std::string& message) override { return {status, 0, message}; }

 protected:
  void meet_for(Step) override {}

 private:
  int rank_;
  Together& together_;
};

// Rank 0 keeps the sums of all ranks: cancelled in the middle all go on from there, and finished
// sums are not made again; the bits are those of one process.
TEST(CollisionOfRanks, IsTakenUpWhereItWasEnded) {
  const auto whole =
      test::solve_deck_4ph(test::model("silicon-sw"), {"ngrid=4,4,4", "four_phonon_iteration=T"});
  const FourPhononRun& four = *whole->four_phonon;
  const double bytes = collision_bytes(four.rates.n_rows, whole->run.modes.n_modes());
  std::vector<double> field(static_cast<std::size_t>(3 * whole->run.modes.n_modes()));
  std::mt19937 random(6);
  for (double& x : field) x = std::normal_distribution<double>()(random);
  const std::vector<double> applied = four.collision->in_scattering(0, field);
  constexpr int kRanks = 3;
  const quasi::test::TemporaryDirectory directory;
  std::int64_t before[kRanks] = {};
  for (const int reports : {2, 1 << 30, 1 << 30}) {
    Together together(kRanks);
    std::int64_t first_done[kRanks] = {};
    std::string lines;
    const auto attempt = [&](int rank) {
      ThreadOf ranks(rank, together);
      Watching progress(rank == 0 ? reports : 1 << 30);
      try {
        const auto kernels = make_scattering_kernels_4ph_cpu();
        kernels->load(four.problem);
        Checkpoint checkpoint = open_checkpoint(
            {rank == 0 ? directory.path() : std::filesystem::path(), 0.0}, progress);
        Collision4ph collision(four.problem, whole->deck.control.constants(),
                               Team4ph({kernels.get()}, ranks), four.rates, true, progress);
        collision.keep_in(checkpoint, bytes);
        EXPECT_EQ(collision.in_scattering(0, field), applied) << "rank " << rank;
        EXPECT_EQ(reports, 1 << 30);
      } catch (const Error&) {  // rank 0 is cancelled, the others hear of it
        EXPECT_EQ(reports, 2);
        together.failed = true;
        together.all.arrive_and_drop();
      }
      first_done[rank] = progress.first_done;
      if (rank == 0) lines = progress.lines;
    };
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(attempt, rank);
    }
    EXPECT_EQ(lines.find("not checkpointed"), std::string::npos) << lines;
    if (reports == 2) continue;
    EXPECT_GT(first_done[0], 0) << "rank 0 began again";
    for (int rank = 0; rank < kRanks; ++rank) before[rank] = first_done[rank];
  }
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(before[rank], TilePlan4ph::kProgressUnits)
        << "rank " << rank << " made its sums again";
}

std::vector<double> doubled(std::vector<double> f) {
  for (double& x : f) x *= 2.0;
  return f;
}

// What was applied in an earlier attempt is not applied again, to the same field of the same
// operator; to any other it is.
TEST(RememberedOperator, KnowsItsApplications) {
  const quasi::test::TemporaryDirectory directory;
  SilentProgress silent;
  int applied = 0;
  const FieldOperator twice = [&](const std::vector<double>& f) {
    ++applied;
    return doubled(f);
  };
  const std::vector<double> f{1.0, 2.0}, g{1.0, 3.0};
  for (const int expected : {2, 2, 3}) {
    Checkpoint checkpoint = open_checkpoint({directory.path(), 0.0}, silent);
    const FieldOperator kept = remembered(checkpoint, "test", expected == 3 ? 8 : 7, twice);
    EXPECT_EQ(kept(f), (std::vector<double>{2.0, 4.0}));
    if (expected == 2) {
      EXPECT_EQ(kept(g), (std::vector<double>{2.0, 6.0}));
    }
    EXPECT_EQ(applied, expected);
  }
}

/// Two ranks, one call after the other: what rank 0 broadcasts, rank 1 hears.
class InTurn : public Ranks {
 public:
  explicit InTurn(int rank, std::vector<std::string>& said) : rank_(rank), said_(said) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  int rank_on_host() const override { return rank_; }
  int ranks_on_host() const override { return 2; }
  void send(int, int, std::vector<double>) override { throw Error("not asked for"); }
  std::optional<Message> receive(int) override { return {}; }
  using Ranks::broadcast;
  void broadcast(void* data, std::size_t bytes, int) override {
    if (rank_ == 0) {
      said_.emplace_back(static_cast<const char*>(data), bytes);
      return;
    }
    ASSERT_LT(heard_, said_.size());
    ASSERT_EQ(said_[heard_].size(), bytes);
    said_[heard_++].copy(static_cast<char*>(data), bytes);
  }
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) override {
    return {mine, mine};
  }
  bool peer_failed() override { return false; }
  Ending end(int status, const std::string& message) override { return {status, 0, message}; }

 protected:
  void meet_for(Step) override {}

 private:
  int rank_;
  std::vector<std::string>& said_;
  std::size_t heard_ = 0;
};

// Rank 1 has no checkpoint; it takes what rank 0 remembers, and applies where rank 0 does.
TEST(RememberedOperator, TellsTheOtherRanks) {
  const quasi::test::TemporaryDirectory directory;
  SilentProgress silent;
  for (const int expected : {1, 0}) {
    std::vector<std::string> said;
    int applied[2] = {};
    for (const int rank : {0, 1}) {
      InTurn ranks(rank, said);
      Checkpoint checkpoint =
          open_checkpoint({rank == 0 ? directory.path() : std::filesystem::path(), 0.0}, silent);
      const FieldOperator kept = remembered(
          checkpoint, "test", 7,
          [&](const std::vector<double>& f) {
            ++applied[rank];
            return doubled(f);
          },
          ranks);
      EXPECT_EQ(kept({1.0, 2.0}), (std::vector<double>{2.0, 4.0}));
      EXPECT_EQ(applied[rank], expected) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace quasi::thermal
