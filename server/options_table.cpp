#include "server/options_table.hpp"

#include <pwd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "server/option_entries.hpp"

namespace quasi::server {
namespace {

using O = ServerOptions;
constexpr double kDay = 86'400;

using option::addresses;
using option::bad;
using option::boolean;
using option::integer;
using option::path;
using option::quota;
using option::seconds;
using option::shown;
using option::shown_number;
using option::to_integer;

/// The id of a user of this machine, given by number or by name.
std::int64_t uid_of(const std::string& text) {
  const bool is_number = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '-' || c == '+';
  });
  if (is_number) return to_integer("worker_uids", text, 0, 4'294'967'294);
  if (const passwd* user = ::getpwnam(text.c_str())) return user->pw_uid;
  bad("worker_uids", text, "numbers or names of users of this machine");
}

void set_worker_uids(O& o, const std::string& text) {
  o.api.worker_uids.clear();
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::size_t first = text.find_first_not_of(' ', start);
    o.api.worker_uids.push_back(uid_of(text.substr(first, end - first)));
    start = end + 1;
  }
}

Entry metrics_entry() {
  return {
      .key = "metrics_listen",
      .help = "HOST:PORT for metrics, e.g. 127.0.0.1:9464; none: no such address",
      .set =
          [](O& o, const std::string& text) {
            if (text != "none") require_address(text);
            if (text.starts_with("unix:")) bad("metrics_listen", text, "HOST:PORT or none");
            o.metrics_listen = text == "none" ? "" : text;
          },
      .show =
          [](const O& o) { return shown(o.metrics_listen.empty() ? "none" : o.metrics_listen); }};
}

Entry sharing_entry() {
  return {.key = "result_cache",
          .help = "who takes results of equal jobs: tenant (its members), owner (alone) or off",
          .unit = "WHO",
          .set =
              [](O& o, const std::string& text) {
                ResultSharing& sharing = o.queue.results.sharing;
                if (text == "tenant")
                  sharing = ResultSharing::kTenant;
                else if (text == "owner")
                  sharing = ResultSharing::kOwner;
                else if (text == "off")
                  sharing = ResultSharing::kNone;
                else
                  bad("result_cache", text, "one of tenant, owner, off");
              },
          .show =
              [](const O& o) {
                const ResultSharing sharing = o.queue.results.sharing;
                return shown(std::string(sharing == ResultSharing::kTenant  ? "tenant"
                                         : sharing == ResultSharing::kOwner ? "owner"
                                                                            : "off"));
              }};
}

Entry log_level_entry() {
  return {.key = "log_level",
          .help = "debug, info, warning or error",
          .set =
              [](O& o, const std::string& text) {
                if (text != "debug" && text != "info" && text != "warning" && text != "error")
                  bad("log_level", text, "one of debug, info, warning, error");
                o.log_level = text;
              },
          .show = [](const O& o) { return shown(o.log_level); }};
}

/// Entries for the data directory, the addresses and the accepted work.
std::vector<Entry> place_entries() {
  return {
      {.key = "data_directory",
       .help = "directory of all data; one server owns it",
       .set =
           [](O& o, const std::string& text) {
             if (text.empty()) bad("data_directory", text, "a path");
             o.data_directory = text;
           },
       .show = [](const O& o) { return shown(o.data_directory); }},
      addresses(
          "listen", "addresses, separated by commas: 127.0.0.1:7460, [::1]:7460, unix:/path",
          [](O & o) -> auto& { return o.listen; }),
      addresses(
          "worker_listen",
          "addresses for workers alone; those of `listen` then serve clients alone; none: workers "
          "call at `listen`",
          [](O & o) -> auto& { return o.worker_listen; }),
      metrics_entry(),
      path(
          "public_address", "address by which others reach this server; codes contain it",
          [](O & o) -> auto& { return o.api.public_address; }, "HOST:PORT"),
      path(
          "tls_certificate", "certificate of the TCP addresses, in PEM; without one, no TLS",
          [](O & o) -> auto& { return o.tls.certificate; }),
      path(
          "tls_key", "private key of that certificate, in PEM, mode 0600",
          [](O & o) -> auto& { return o.tls.key; }),
      path(
          "tls_ca", "CA that signed the certificate, in PEM; --probe and join codes need it",
          [](O & o) -> auto& { return o.tls.ca; }),
      boolean(
          "enable_test_work", "accept jobs of kind test, for trying the service out",
          [](O & o) -> auto& { return o.api.enable_test_work; }),
      sharing_entry(),
      boolean(
          "reflection", "answer gRPC server reflection",
          [](O & o) -> auto& { return o.reflection; }),
      boolean(
          "allow_network_file_system",
          "accept a data directory on a network file system, at your own risk",
          [](O & o) -> auto& { return o.allow_network_file_system; }),
      boolean(
          "require_tokens",
          "calls on a Unix socket need a token, too; users get theirs there by themselves",
          [](O & o) -> auto& { return o.api.require_tokens; }),
      {.key = "worker_uids",
       .help = "users of this machine who are workers on a Unix socket, by comma",
       .unit = "UIDS",
       .set = set_worker_uids,
       .show =
           [](const O& o) {
             std::string list;
             for (const std::int64_t uid : o.api.worker_uids)
               list += (list.empty() ? "" : ", ") + std::to_string(uid);
             return "[" + list + "]";
           }},
      boolean(
          "enrol_users", "whoever reaches the Unix socket becomes a user of the server",
          [](O & o) -> auto& { return o.api.enrol_users; }),
      log_level_entry(),
  };
}

/// Entries for the rates of calls and for the times of leases, attempts and streams.
std::vector<Entry> lease_entries() {
  return {
      integer(
          "failed_logins_per_minute",
          "calls without a valid token that one peer may make in a minute; more must wait", 1,
          1'000'000, [](O & o) -> auto& { return o.api.failed_logins_per_minute; }),
      integer(
          "submits_per_second",
          "submissions of one principal in a second; ten times as many may come at once", 1,
          1'000'000, [](O & o) -> auto& { return o.api.submits_per_second; }),
      integer(
          "calls_per_second",
          "other calls of one principal in a second; ten times as many may come at once", 1,
          1'000'000, [](O & o) -> auto& { return o.api.calls_per_second; }),
      integer(
          "streams_per_principal", "watches, logs and transfers that one principal has open", 1,
          1'000'000, [](O & o) -> auto& { return o.api.streams_per_principal; }),
      integer(
          "upload_bytes_per_second",
          "bytes that one principal sends in a second; ten times as many may come at once; 0: no "
          "limit",
          0, 1'000'000'000'000, [](O & o) -> auto& { return o.api.upload_bytes_per_second; }),
      seconds(
          "lease_ttl", "a worker that is silent for this time loses its jobs", 0.5, 3'600,
          [](O & o) -> auto& { return o.queue.lease_ttl_ms; }),
      seconds(
          "heartbeat_interval", "how often workers report; at most a third of lease_ttl counts",
          0.1, 1'200, [](O & o) -> auto& { return o.api.heartbeat_interval_ms; }),
      seconds(
          "restart_grace", "added to lease_ttl for leases that were open when the server stopped",
          0, 3'600, [](O & o) -> auto& { return o.queue.restart_grace_ms; }),
      seconds(
          "requeue_delay", "delay before a job is granted again after its lease expired", 0, 3'600,
          [](O & o) -> auto& { return o.queue.requeue_delay_ms; }),
      seconds(
          "retry_back_off", "delay after the first failed attempt; it doubles with each failure", 0,
          3'600, [](O & o) -> auto& { return o.queue.retry_back_off_ms; }),
      seconds(
          "default_max_runtime", "time limit of jobs that state none", 1, 30 * kDay,
          [](O & o) -> auto& { return o.queue.default_max_runtime_ms; }),
      seconds(
          "stage_timeout", "time for a worker to fetch a job's inputs", 1, kDay,
          [](O & o) -> auto& { return o.api.stage_timeout_ms; }),
      seconds(
          "orphan_grace", "a worker without contact makes checkpoints after this", 1, 30 * kDay,
          [](O & o) -> auto& { return o.api.orphan_grace_ms; }),
      seconds(
          "orphan_limit", "a worker without contact stops its children after this", 1, 30 * kDay,
          [](O & o) -> auto& { return o.api.orphan_limit_ms; }),
      seconds(
          "slow_reader", "a download whose reader takes no bytes for this time is cut", 1, kDay,
          [](O & o) -> auto& { return o.api.slow_reader_ms; }),
      seconds(
          "bookmark_interval", "longest interval between two messages of an idle watch", 0.1, kDay,
          [](O & o) -> auto& { return o.api.bookmark_ms; }),
      seconds(
          "upload_stream_idle", "an upload that sends no bytes for this time is ended", 1, kDay,
          [](O & o) -> auto& { return o.api.upload_stream_idle_ms; }),
      seconds(
          "keepalive", "a silent connection is pinged after this time", 1, kDay,
          [](O & o) -> auto& { return o.api.keepalive_ms; }),
  };
}

/// Entries for retention times and for the resources that the server may use.
std::vector<Entry> retention_entries() {
  return {
      seconds(
          "blob_grace", "unreferenced files are kept for this time", 0, 365 * kDay,
          [](O & o) -> auto& { return o.retention.blob_grace_ms; }),
      seconds(
          "result_retention",
          "jobs are deleted with their results this long after they ended; 0: never", 0,
          3'650 * kDay, [](O & o) -> auto& { return o.retention.result_retention_ms; }),
      integer(
          "user_result_bytes",
          "the oldest ended jobs of a user are deleted while their files hold more; 0: no limit", 0,
          std::numeric_limits<std::int64_t>::max(),
          [](O & o) -> auto& { return o.retention.user_result_bytes; }),
      integer(
          "total_result_bytes",
          "the oldest ended jobs are deleted while the files of all hold more; 0: no limit", 0,
          std::numeric_limits<std::int64_t>::max(),
          [](O & o) -> auto& { return o.retention.total_result_bytes; }),
      seconds(
          "result_grace", "no job is deleted by these limits earlier after its end", 0,
          3'650 * kDay, [](O & o) -> auto& { return o.retention.result_grace_ms; }),
      seconds(
          "upload_idle", "broken uploads are kept for this time", 1, 365 * kDay,
          [](O & o) -> auto& { return o.retention.upload_idle_ms; }),
      seconds(
          "passing_events", "progress, log and checkpoint events are kept for this time", 60,
          365 * kDay, [](O & o) -> auto& { return o.retention.passing_events_ms; }),
      seconds(
          "audit_retention", "rows of the audit are kept for this time", kDay, 3'650 * kDay,
          [](O & o) -> auto& { return o.retention.audit_ms; }),
      seconds(
          "scrub_period", "every file is read and hashed again once in this time", 60, 3650 * kDay,
          [](O & o) -> auto& { return o.scrub.period_ms; }),
      integer(
          "scrub_bytes_per_second", "highest rate of that reading", 1 << 20, std::int64_t{1} << 40,
          [](O & o) -> auto& { return o.scrub.bytes_per_second; }),
      seconds(
          "garbage_interval", "between collections", 1, kDay,
          [](O & o) -> auto& { return o.garbage_interval_ms; }),
      seconds(
          "shutdown_time", "time for open calls to end when the server is asked to stop", 0, 600,
          [](O & o) -> auto& { return o.shutdown_ms; }),
      integer(
          "storage_low_bytes", "new work is refused while less space than this is free", 0,
          std::numeric_limits<std::int64_t>::max(),
          [](O & o) -> auto& { return o.api.storage_low_bytes; }),
      {.key = "storage_low_share",
       .help = "new work is also refused while less than this share of the disk is free",
       .unit = "SHARE",
       .set =
           [](O& o, const std::string& text) {
             char* end = nullptr;
             const double value = std::strtod(text.c_str(), &end);
             if (text.empty() || *end != '\0' || !(value >= 0.0 && value <= 1.0))
               bad("storage_low_share", text, "a number in 0...1");
             o.api.storage_low_share = value;
           },
       .show = [](const O& o) { return shown_number(o.api.storage_low_share); }},
      integer(
          "readers", "threads that read the database", 1, 64,
          [](O & o) -> auto& { return o.readers; }),
      integer(
          "file_threads", "threads that read, write and hash files", 1, 64,
          [](O & o) -> auto& { return o.file_threads; }),
  };
}

/// Entries for the quotas of users and tenants for whom none was set, and for fair shares.
std::vector<Entry> turn_entries() {
  using A = Allowance;
  constexpr auto kUser = &QuotaDefaults::user, kTenant = &QuotaDefaults::tenant;
  return {
      seconds(
          "fair_share_half_life", "past use of the machines counts half after this time", 3'600,
          365 * kDay, [](O & o) -> auto& { return o.queue.fair_share_half_life_ms; }),
      quota("user_jobs", "jobs that wait or run", kUser, &A::unfinished_jobs),
      quota("user_running_gpus", "GPUs on which jobs run", kUser, &A::running_gpus),
      quota("user_gpu_hours", "GPU-hours in 30 days", kUser, &A::gpu_ms, 3'600'000),
      quota("user_stored_bytes", "bytes of held files", kUser, &A::stored_bytes),
      quota("tenant_jobs", "jobs that wait or run", kTenant, &A::unfinished_jobs),
      quota("tenant_running_gpus", "GPUs on which jobs run", kTenant, &A::running_gpus),
      quota("tenant_gpu_hours", "GPU-hours in 30 days", kTenant, &A::gpu_ms, 3'600'000),
      quota("tenant_stored_bytes", "bytes of held files", kTenant, &A::stored_bytes),
  };
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> kEntries = [] {
    std::vector<Entry> all = place_entries();
    for (auto& group : {lease_entries(), retention_entries(), turn_entries()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return kEntries;
}

}  // namespace quasi::server
