#pragma once

#include <string>
#include <vector>

#include "client/commands/access.hpp"
#include "client/commands/cache/cache.hpp"
#include "client/commands/cancel.hpp"
#include "client/commands/devices.hpp"
#include "client/commands/fetch.hpp"
#include "client/commands/jobs.hpp"
#include "client/commands/logs.hpp"
#include "client/commands/plot.hpp"
#include "client/commands/run.hpp"
#include "client/commands/submit.hpp"
#include "client/commands/sweeps/table.hpp"
#include "client/commands/turns/hold.hpp"
#include "client/commands/turns/usage.hpp"
#include "client/commands/turns/why.hpp"
#include "client/commands/validate.hpp"
#include "client/commands/watch.hpp"
#include "client/diagnose/bug_report.hpp"
#include "client/input/config.hpp"
#include "client/views/console.hpp"

namespace quasi::client {

/// Begin here: client/input reads the command line, the configuration, job files and decks. This is
/// a parsed command line: the command and its options. The options of other commands are unset.
struct Arguments {
  std::string command;  ///< "text": print `text` and end
  std::string text;

  ConfigFlags config;
  Format format = Format::kTable;
  bool quiet = false;
  bool no_color = false;
  bool verbose = false;

  SubmitOptions submit;
  SubmitOptions resubmit;
  ValidateOptions validate;
  ListOptions list;
  ShowOptions show;
  WatchOptions watch;
  WaitOptions wait;
  LogsOptions logs;
  FetchOptions fetch;
  TableOptions table;
  CancelOptions cancel;
  DeleteOptions delete_jobs;
  HoldOptions hold;
  HoldOptions release;
  ReprioritiseOptions reprioritise;
  WhyOptions why;
  UsageOptions usage;
  CacheOptions cache;
  DevicesOptions devices;
  AdminOptions admin;
  LoginOptions login;
  PlotOptions plot;
  PlotOptions report;
  RunCommandOptions run;
  BugReportOptions bug_report;
};

/// Parses a command line.
/// @param words  the command line without the program's name
/// @throws Failure (kUsage) with the nearest command or flag for a mistyped one.
Arguments parse_arguments(const std::vector<std::string>& words);

}  // namespace quasi::client
