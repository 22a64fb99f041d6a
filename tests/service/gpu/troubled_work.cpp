// Test work of the program troubled_engine, which is quasi-engine in all else. Three kinds of it
// bring real trouble upon the GPU, and the engine reports what CUDA said.
//
//   exit 13    a kernel writes to an address that is not mapped
//   exit 12    the attempt takes memory until the device has none
//   sleep      the attempt leaves 8 GiB of the device for this time

#include <thread>

#include "tests/service/gpu/gpu_trouble.hpp"
#include "workers/backend/error.hpp"
#include "workers/engine/run_task.hpp"
#include "workers/engine/test_work.hpp"

namespace quasi {
namespace {

constexpr std::int64_t kLeftBytes = std::int64_t{8} << 30;

void sleep_until_over(const google::protobuf::Duration& duration, const Progress& progress) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(duration.seconds()) +
                   std::chrono::nanoseconds(duration.nanos());
  while (Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    progress.throw_if_cancelled();
  }
}

}  // namespace

nlohmann::json run_test_work(const v1::TestWork& work, const TestWorkSite&, Progress& progress) {
  if (work.exit().status() == static_cast<int>(ExitStatus::kDeviceFault))
    test::write_to_unmapped_memory();
  if (work.exit().status() == static_cast<int>(ExitStatus::kOutOfMemory)) test::take_all_memory();
  if (work.has_sleep())
    test::hold_memory(kLeftBytes, [&] { sleep_until_over(work.sleep().duration(), progress); });
  return {{"action", "done"}};
}

}  // namespace quasi
