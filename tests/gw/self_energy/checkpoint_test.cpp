// One job on several devices, cancelled and resumed or not, gives the bits of the undisturbed job
// on one device.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "tests/gw/support/interrupter.hpp"
#include "tests/support/gw_decks.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

/// Runs a deck on `devices` CPU devices; an empty path keeps no checkpoint.
Calculation run(const std::string& text, int devices, Progress& progress,
                const std::filesystem::path& checkpoint = {}) {
  DeviceTeam team(std::vector<Device>(static_cast<std::size_t>(devices), find_device("cpu")));
  return run_calculation(parse_deck(text, {}, "test", "."),
                         {.team = team,
                          .memory_budget_bytes = std::int64_t{1} << 30,
                          .checkpoint_directory = checkpoint},
                         progress);
}

/// Expects equal bits in ε⁻¹, in every part of the quasiparticles and in the full matrices.
void expect_same_bits(const Calculation& a, const Calculation& b) {
  ASSERT_EQ(a.epsilon.size(), b.epsilon.size());
  for (std::size_t iq = 0; iq < a.epsilon.size(); ++iq) {
    EXPECT_EQ(a.epsilon[iq].inverse, b.epsilon[iq].inverse) << iq;
    EXPECT_EQ(a.epsilon[iq].epsilon_diagonal, b.epsilon[iq].epsilon_diagonal) << iq;
  }
  ASSERT_EQ(a.quasiparticles.size(), b.quasiparticles.size());
  for (std::size_t i = 0; i < a.quasiparticles.size(); ++i) {
    EXPECT_EQ(a.quasiparticles[i].x_ev, b.quasiparticles[i].x_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].sigma_ev, b.quasiparticles[i].sigma_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].ch_ev, b.quasiparticles[i].ch_ev) << i;
    EXPECT_EQ(a.quasiparticles[i].z, b.quasiparticles[i].z) << i;
  }
  EXPECT_EQ(a.statistics.invalid, b.statistics.invalid);
  ASSERT_EQ(a.matrices.size(), b.matrices.size());
  for (std::size_t i = 0; i < a.matrices.size(); ++i) {
    EXPECT_EQ(a.matrices[i].x_ry, b.matrices[i].x_ry) << i;
    EXPECT_EQ(a.matrices[i].correlation_ry, b.matrices[i].correlation_ry) << i;
  }
  EXPECT_EQ(a.matrix_report.pairs, b.matrix_report.pairs);
  ASSERT_EQ(a.displacements.has_value(), b.displacements.has_value());
  if (!a.displacements) return;
  ASSERT_EQ(a.displacements->at.size(), b.displacements->at.size());
  for (std::size_t d = 0; d < a.displacements->at.size(); ++d)
    for (std::size_t k = 0; k < a.displacements->at[d].size(); ++k) {
      const ElementsAtK &x = a.displacements->at[d][k], &y = b.displacements->at[d][k];
      EXPECT_EQ(x.mean_field, y.mean_field) << d;
      EXPECT_EQ(x.sigma_bra, y.sigma_bra) << d;
      EXPECT_EQ(x.sigma_ket, y.sigma_ket) << d;
      EXPECT_EQ(x.fixed_energies, y.fixed_energies) << d;
    }
}

// Two and five devices give the bits of one.
TEST(DeviceTeam, AnyNumberOfDevicesGivesTheSameBits) {
  SilentProgress silent;
  for (const std::string& deck :
       {test::kGwGamma, test::kGwGrid, test::kGwMatrix, test::kGwPerturbation}) {
    const Calculation one = run(deck, 1, silent);
    ASSERT_FALSE(one.quasiparticles.empty());
    ASSERT_EQ(one.matrices.empty(), deck != test::kGwMatrix);
    for (const int devices : {2, 5}) {
      SCOPED_TRACE(std::to_string(devices) + " devices");
      expect_same_bits(one, run(deck, devices, silent));
    }
  }
}

// The parts of a sum that devices share add up to the undivided sum, to the rounding of another
// order of additions.
TEST(DeviceTeam, PartsAddUpToTheWhole) {
  SilentProgress silent;
  for (const std::string& deck : {test::kGwGamma, test::kGwGrid}) {
    const Calculation parts = run(deck, 2, silent);
    const auto kernels = make_gw_kernels(find_device("cpu"));
    const CoulombInteraction coulomb(parts.field.crystal(), parts.field.waves.k_grid, {});
    const auto whole =
        self_energy(parts.field, parts.epsilon, parts.plan.sigma, {coulomb, *kernels, silent});
    ASSERT_EQ(whole.size(), parts.sigma.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (std::size_t l = 0; l < whole[i].x_ry.size(); ++l) {
        EXPECT_NEAR(whole[i].x_ry[l], parts.sigma[i].x_ry[l], 1e-13);
        EXPECT_NEAR(std::abs(whole[i].ch_ry[0][l] - parts.sigma[i].ch_ry[0][l]), 0.0, 1e-12);
        EXPECT_NEAR(std::abs(whole[i].sx_ry[0][l] - parts.sigma[i].sx_ry[0][l]), 0.0, 1e-12);
      }
  }
}

// An exception of one task ends the run on all devices with that exception.
TEST(DeviceTeam, AFailureOnOneDeviceEndsTheJob) {
  DeviceTeam team(std::vector<Device>(3, find_device("cpu")));
  EXPECT_THROW(team.run(9,
                        [](std::int64_t task, GwKernels&) {
                          if (task == 4) throw NotConverged("task 4");
                        }),
               NotConverged);
}

// One device is slow. The others take its tasks from the end, every task is done once, and a device
// does its own tasks in order.
TEST(DeviceTeam, IdleDevicesTakeWhatIsLeftOfOthers) {
  DeviceTeam team(std::vector<Device>(3, find_device("cpu")));
  std::vector<std::atomic<int>> done(24);
  std::atomic<int> n_done{0};
  std::vector<std::vector<std::int64_t>> of_member(3);
  team.run(
      24,
      [&](std::int64_t task, GwKernels& kernels) {
        const auto member = static_cast<std::size_t>(
            std::find(team.members().begin(), team.members().end(), &kernels) -
            team.members().begin());
        // The slow device ends its first task after the others have done their sixteen and one of
        // its own.
        for (int left = 10'000; member == 0 && left > 0 && n_done < 17; --left)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ++n_done;
        ++done[static_cast<std::size_t>(task)];
        of_member[member].push_back(task);
      },
      DeviceTeam::Order::kBalanced);
  for (const auto& count : done) EXPECT_EQ(count, 1);
  EXPECT_LT(of_member[0].size(), 8u) << "of 8 that were its own";
  for (std::size_t i = 0; i < of_member[0].size(); ++i)
    EXPECT_EQ(of_member[0][i], static_cast<std::int64_t>(i));
}

// A job is cancelled at many points and resumed on another number of devices: the result has the
// bits of the undisturbed job, and no checkpoint is left.
TEST(Checkpoint, AResumedJobGivesTheSameBits) {
  SilentProgress silent;
  for (const std::string& deck :
       {test::kGwGamma, test::kGwGrid, test::kGwMatrix, test::kGwPerturbation}) {
    const Calculation whole = run(deck, 1, silent);
    int interruptions = 0;
    for (int after = 1; after < 200; after += 7) {
      quasi::test::TemporaryDirectory directory;
      Interrupter interrupter(after);
      try {
        run(deck, 1, interrupter, directory.path());
        break;
      } catch (const Cancelled&) {
        ++interruptions;
      }
      expect_same_bits(whole, run(deck, 1 + after % 2, silent, directory.path()));
      EXPECT_TRUE(std::filesystem::is_empty(directory.path()))
          << "a finished job leaves no checkpoint";
    }
    EXPECT_GE(interruptions, 2);
  }
}

/// Keeps the lines of the log.
class LogProgress : public SilentProgress {
 public:
  void log(std::string_view line) override { lines += std::string(line) + "\n"; }
  std::string lines;
};

// Truncated and altered checkpoint files, and those of another deck, are reported and not used.
TEST(Checkpoint, DamagedFilesAndThoseOfOtherInputAreNotUsed) {
  SilentProgress silent;
  const auto interrupted = [&](const std::filesystem::path& directory) {
    Interrupter interrupter(6);
    EXPECT_THROW(run(test::kGwGamma, 1, interrupter, directory), Cancelled);
  };
  const Calculation whole = run(test::kGwGamma, 1, silent);
  for (const std::string damage : {"truncated", "flipped", "other"}) {
    SCOPED_TRACE(damage);
    quasi::test::TemporaryDirectory directory;
    interrupted(directory.path());
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
      const auto size = std::filesystem::file_size(entry.path());
      if (damage == "truncated") std::filesystem::resize_file(entry.path(), size - 9);
      if (damage == "flipped") {
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(size / 2));
        file.put('\x5a');
      }
    }
    LogProgress log;
    if (damage == "other") {
      std::string other = test::kGwGamma;
      other.replace(other.find("cutoff_ry = 2.5"), 15, "cutoff_ry = 2.0");
      run(other, 1, log, directory.path());
    } else {
      expect_same_bits(whole, run(test::kGwGamma, 1, log, directory.path()));
    }
    EXPECT_NE(log.lines.find("it is not used"), std::string::npos) << log.lines;
    EXPECT_EQ(log.lines.find("resumed"), std::string::npos) << log.lines;
  }
}

}  // namespace
}  // namespace quasi::gw
