// The flags of the commands about users and tokens.

#include "client/input/command_tree.hpp"

namespace quasi::client {

void CommandTree::add_access() {
  add_command("whoami", "print your name, role and group, as the server sees you", "Access",
              Words::kNothing);
  CLI::App* entry = add_command("login", "exchange a code for a token and write a context",
                                "Access", Words::kNothing);
  entry->add_option("CODE", arguments_.login.code, "the code; '-' or none: read standard input")
      ->type_name("");
  entry->add_option("--name", arguments_.login.context, "name of the context (the server's host)")
      ->type_name("NAME");
  entry->add_flag("--renew", arguments_.login.renew, "replace the token of the context");
  AdminOptions& options = arguments_.admin;
  CLI::App* app = add_command("admin", "manage users, quotas, workers and running jobs", "Access",
                              Words::kNothing);
  app->add_option("ACTION", options.words,
                  "users, user NAME, code NAME, token NAME, revoke KEY, quota user NAME, "
                  "quota tenant NAME, drain WORKER, undrain WORKER, cordon WORKER DEVICE, "
                  "uncordon WORKER DEVICE, preempt JOB")
      ->required()
      ->type_name("");
  app->add_option("--role", options.role, "viewer, user, operator, admin or worker")
      ->type_name("ROLE");
  app->add_option("--tenant", options.tenant, "group of the user (default)")->type_name("NAME");
  app->add_option("--uid", options.uid, "this user of the server's machine is meant")
      ->type_name("N");
  app->add_flag("--disable", options.disable, "refuse all tokens of the user");
  app->add_flag("--enable", options.enable, "accept them again");
  app->add_option("--lifetime", options.lifetime,
                  "of a new token (90d; worker: 365d) or code (15m)")
      ->type_name("TIME");
  app->add_option("--scope", options.scopes,
                  "what a new token or code is for: read, submit, cancel, admin")
      ->type_name("SCOPE,…");
  app->add_option("--pool", options.pool, "the only pool of a worker; '': any pool")
      ->type_name("POOL");
  app->add_option("--delay", options.delay, "a revoked token ends after this time (at once)")
      ->type_name("TIME");
  app->add_option("--output", options.output, "write the token to a new file of mode 0600")
      ->type_name("FILE");
  app->add_option("--within", options.order.within,
                  "drain: jobs whose time limit ends within this time go on (none does)")
      ->type_name("TIME");
  app->add_flag("--evict", options.order.evict, "cordon: the jobs of the device leave it");
  app->add_option("--reason", options.order.reason, "drain, cordon, preempt: shown to users")
      ->type_name("TEXT");
  QuotaOptions& quota = options.quota;
  const auto add_quota = [&](const char* flag, std::string& value, const char* text) {
    app->add_option(flag, value, std::string("quota: ") + text + "; 'default': the server's")
        ->type_name("N");
  };
  add_quota("--shares", quota.shares, "part of the machines; 100 is usual");
  add_quota("--jobs", quota.jobs, "jobs that wait or run");
  add_quota("--gpus", quota.gpus, "GPUs on which jobs run");
  add_quota("--gpu-hours", quota.gpu_hours, "GPU-hours in 30 days");
  add_quota("--bytes", quota.bytes, "bytes of held files");
  app->footer(
      "\nExamples:\n"
      "  quasi admin user ada --role user --tenant phonons\n"
      "  quasi admin code ada\n"
      "  quasi admin quota user ada --gpus 2 --gpu-hours 500\n"
      "  quasi admin token ada --scope read,submit --output ada.token\n"
      "  quasi admin drain gpu-host-3 --within 30m --reason 'new fan'");
}

}  // namespace quasi::client
