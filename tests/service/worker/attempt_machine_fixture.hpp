#pragma once

#include <gtest/gtest.h>

#include "workers/daemon/attempt/attempt_machine.hpp"

namespace quasi::test {

using Acts = AttemptMachine::Acts;
using State = AttemptMachine::State;
using Answer = AttemptMachine::Answer;
using Kind = Ending::Kind;

/// The state machine of one attempt and a clock that a test moves.
class AttemptMachineTest : public testing::Test {
 protected:
  static constexpr Milliseconds kTimeLimit{1'000'000};
  static constexpr Milliseconds kStageTimeout{30'000};

  Acts leave(int status) { return machine.exited({.exit_status = status}, now); }
  Acts pass(Milliseconds time) {
    now += time;
    return machine.tick(now);
  }

  MonotonicTime now{std::chrono::hours(1)};
  AttemptMachine machine{AttemptTimes{}, kTimeLimit, kStageTimeout};
};

}  // namespace quasi::test
