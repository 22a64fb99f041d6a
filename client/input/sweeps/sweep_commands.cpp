// The commands and flags of sweeps, and of jobs that wait for others.

#include "client/input/command_tree.hpp"

namespace quasi::client {

void CommandTree::add_sweep_options(CLI::App* app, SweepArguments& sweep) {
  list_option(app, "--sweep", sweep.axes,
              "one job for each value of a key: 1,2,3 or start:stop:count or log:start:stop:count",
              "KEY=VALUES");
  app->add_option("--sweep-table", sweep.table, "CSV: keys in its first line, a job in each other")
      ->type_name("FILE");
  app->add_option("--stop-after-failures", sweep.stop_after_failures,
                  "cancel the waiting jobs of a sweep after so many failures")
      ->type_name("N");
  list_option(app, "--stop-when", sweep.stop_when,
              "cancel them once a figure of a result is beyond a value: 'kappa_w_per_mk.xx<50'",
              "FIGURE<VALUE[:JOBS]");
}

void CommandTree::add_wait_options(CLI::App* app, JobArguments& job) {
  list_option(app, "--after", job.after, "start after this job has succeeded", "JOB");
  list_option(app, "--after-any", job.after_any, "start after this job has ended in any way",
              "JOB");
  list_option(app, "--take", job.takes, "take a file that another job makes as an input",
              "SLOT=JOB:FILE");
}

void CommandTree::add_sweeps(CLI::App* submit) {
  SubmitOptions& options = arguments_.submit;
  add_wait_options(submit, options.job);
  add_sweep_options(submit, options.job.sweep);
  submit
      ->add_option("--max-concurrent", options.job.sweep.max_concurrent,
                   "jobs of a sweep that run at a time")
      ->type_name("N");
}

void CommandTree::add_table() {
  CLI::App* app =
      add_command("table", "print a sweep as CSV: axes, states, figures", "Results", Words::kJobs);
  add_job_ids(app, arguments_.table.jobs);
  app->add_option("-o,--output", arguments_.table.output, "file to write")->type_name("FILE");
  app->footer(
      "\nExamples:\n"
      "  quasi submit KIND DECK --sweep KEY=1:5:9\n"
      "  quasi table last -o sweep.csv");
}

}  // namespace quasi::client
