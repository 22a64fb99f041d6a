// The commands that change the turns of jobs.

#include "client/input/command_tree.hpp"

namespace quasi::client {

void CommandTree::add_turns() {
  add_job_ids(add_command("why", "explain why jobs do not run yet", "Turns", Words::kJobs),
              arguments_.why.jobs);
  add_command("usage", "show your use of the machines beside your quotas", "Turns", Words::kNothing)
      ->add_flag("--all", arguments_.usage.all, "of all users and tenants, for operators");
  CLI::App* compare =
      add_command("cache", "explain why two jobs do not share their result", "Turns", Words::kJobs);
  compare->add_option("WORDS", arguments_.cache.words, "explain JOB JOB")
      ->required()
      ->type_name("");
  compare->footer("\nExample:\n  quasi cache explain j_01J9QK j_01J8ZZ");
  const auto add_hold = [&](const char* name, const char* text, HoldOptions& options) {
    CLI::App* app = add_command(name, text, "Turns", Words::kJobs);
    add_job_ids(app, options.jobs);
    app->add_option("--reason", options.reason, "reason for the job's history")->type_name("TEXT");
  };
  add_hold("hold", "keep waiting jobs from starting", arguments_.hold);
  add_hold("release", "let held jobs wait for a worker again", arguments_.release);
  ReprioritiseOptions& options = arguments_.reprioritise;
  CLI::App* app =
      add_command("reprioritise", "change the priority of a job", "Turns", Words::kJobs);
  app->add_option("JOB", options.job, "id or name of a job, 'last', or '@' for standard input")
      ->required()
      ->type_name("");
  app->add_option("PRIORITY", options.priority,
                  "-100 to 100, higher is sooner; only operators raise it")
      ->required()
      ->check(CLI::Range(-100, 100))
      ->type_name("");
  app->footer("\nExample:\n  quasi reprioritise last -5");
}

}  // namespace quasi::client
