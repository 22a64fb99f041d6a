#pragma once

#include <string>

#include "proto/wire/sweeps/figures.hpp"
#include "quasi/v1/sweep.pb.h"

namespace quasi::client {

/// The rule of one --stop-when: "FIGURE<VALUE" with one of <, <=, > and >=, and ":JOBS" after it if
/// several jobs have to meet it.
/// @throws Failure (kUsage) naming the flag, the text and the form
v1::StopRule stop_rule_of(const std::string& text);

/// The condition of a rule, for its text and its evaluation.
wire::StopCondition condition_of(const v1::StopRule& rule);

}  // namespace quasi::client
