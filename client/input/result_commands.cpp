#include "client/input/command_tree.hpp"

namespace quasi::client {

void CommandTree::add_results() {
  FetchOptions& options = arguments_.fetch;
  CLI::App* app = add_command("fetch", "download result files and check their digests", "Results",
                              Words::kJobs);
  add_job_ids(app, options.jobs);
  app->add_option("-d,--directory", options.directory, "directory for the files (named by the id)")
      ->type_name("DIR");
  list_option(app, "--artifact", options.artifacts, "fetch only this file", "NAME");
  app->add_flag("--inputs", options.inputs, "fetch the inputs of the job instead of its results");
  app->add_flag("--force", options.force, "replace files that differ");
  app->footer("\nA broken download is continued by the same command.");

  CancelOptions& cancel = arguments_.cancel;
  app = add_command("cancel", "stop jobs, or take them out of the queue", "Results", Words::kJobs);
  add_job_ids(app, cancel.jobs);
  app->add_option("--reason", cancel.reason, "reason for the job's history")->type_name("TEXT");
  app->add_flag("-y,--yes", cancel.yes, "do not ask, even for several jobs");

  DeleteOptions& deletion = arguments_.delete_jobs;
  app = add_command("delete", "remove ended jobs with their results and logs from the server",
                    "Results", Words::kJobs);
  add_job_ids(app, deletion.jobs);
  app->add_flag("--force", deletion.force, "cancel jobs that have not ended first");
  app->add_option("--reason", deletion.reason, "reason for watchers")->type_name("TEXT");
  app->add_flag("-y,--yes", deletion.yes, "do not ask, even for several jobs");
  app->footer("\nExample:\n  quasi list --state ended --until 90d -o name | quasi delete @ --yes");
}

void CommandTree::add_pictures() {
  PlotOptions& plot = arguments_.plot;
  CLI::App* app =
      add_command("plot", "draw a figure of one or several results", "Results", Words::kFiles);
  app->add_option("RESULT", plot.words, "folders, result.h5 files or jobs; then a FIGURE or all")
      ->required()
      ->type_name("");
  app->add_option("-o,--output", plot.output, "file to write: .svg, .pdf or .png")
      ->type_name("FILE");
  list_option(app, "--label", plot.labels, "name of a result in the legend", "TEXT");
  app->add_flag("--list", plot.list, "print the names of the figures that a result has");
  app->footer(
      "\nExamples:\n"
      "  quasi plot out -o kappa.pdf\n"
      "  quasi plot last rates\n"
      "  quasi plot coarse fine --label 8x8x8 --label 16x16x16");

  PlotOptions& report = arguments_.report;
  app = add_command("report", "write one HTML page about a result", "Results", Words::kFiles);
  app->add_option("RESULT", report.words, "a folder, a result.h5 file or a job")
      ->required()
      ->type_name("");
  app->add_option("-o,--output", report.output, "file to write (report.html beside the result)")
      ->type_name("FILE");
  app->footer("\nThe page holds tables and figures and opens offline.");
}

}  // namespace quasi::client
