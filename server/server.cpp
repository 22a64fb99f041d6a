#include "server/server.hpp"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "server/access/rules.hpp"
#include "server/api/access/access_service.hpp"
#include "server/api/access/act.hpp"
#include "server/api/access/admin_service.hpp"
#include "server/api/access/admit.hpp"
#include "server/api/access/identities.hpp"
#include "server/api/bind.hpp"
#include "server/api/blob_service.hpp"
#include "server/api/job_service.hpp"
#include "server/api/metering/metered_calls.hpp"
#include "server/api/refused_calls.hpp"
#include "server/api/starting_server.hpp"
#include "server/api/status.hpp"
#include "server/api/tls_credentials.hpp"
#include "server/api/worker_service.hpp"
#include "server/service/key_file.hpp"
#include "server/service/log.hpp"
#include "server/service/recurring_task.hpp"
#include "server/service/retention/result_limits.hpp"
#include "server/store/syncs/strict_syncs.hpp"
#include "server/web/web_door.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kFleetShownMs = 1'000;

/// The status of a call to a service that an address does not serve.
grpc::Status other_address(const std::string& method) {
  using grpc::StatusCode;
  if (method.starts_with("/quasi.v1.WorkerService/"))
    return {StatusCode::PERMISSION_DENIED,
            "this address of the server serves clients alone; set the worker's key `server` to an "
            "address of the server's key `worker_listen`"};
  if (method.starts_with("/quasi.v1.JobService/"))
    return {StatusCode::PERMISSION_DENIED,
            "this address of the server serves workers alone; use an address of the server's key "
            "`listen`"};
  return {StatusCode::UNIMPLEMENTED, "the server knows no call " + method.substr(0, 200)};
}

/// The options of the calls, with those that follow from the addresses and the certificate.
ApiOptions api_options(const ServerOptions& options) {
  ApiOptions api = options.api;
  api.tls_ca = options.tls.ca;
  for (const std::string& address : options.worker_listen)
    if (api.worker_port.empty() && !address.starts_with("unix:"))
      api.worker_port = address.substr(address.rfind(':') + 1);
  return api;
}

std::vector<std::string> names_of_methods() {
  std::vector<std::string> names;
  for (const Rule& rule : rules()) names.emplace_back(rule.method);
  return names;
}

std::vector<std::string> both_lists(std::vector<std::string> listen,
                                    const std::vector<std::string>& worker_listen) {
  listen.insert(listen.end(), worker_listen.begin(), worker_listen.end());
  return listen;
}

[[noreturn]] void end_process(const StorageFatal& error) {
  log(Level::kError, error.exit_status == 65 ? "database_corrupt" : "storage_failed",
      {{"what", error.what()},
       {"do", error.exit_status == 65
                  ? "restore the data directory from a backup, or have SQLite recover quasi.db"
                  : "check the disk; acknowledged work is in the data directory"}});
  // No destructor may run: the state of the disk is unknown, and no byte more may be written.
  ::_exit(error.exit_status);
}

}  // namespace

struct Server::Parts {
  explicit Parts(const ServerOptions& options_)
      : options(options_),
        directory(options.data_directory, options.allow_network_file_system),
        identities(both_lists(options.listen, options.worker_listen), options.api.require_tokens),
        tls(tls_server_credentials(options.tls)),
        starting(std::make_unique<StartingServer>(options.listen, options.worker_listen, tls)),
        logs(disk, options.data_directory),
        blobs(disk, options.data_directory),
        uploads(blobs),
        mark(disk, options.data_directory),
        engine(
            {.database_path = directory.database_path(),
             .vfs = {},
             .mark = &mark,
             .before_writing = [this](SqliteStore& store) { reconcile_files(store, blobs, mark); }},
            logs, random, with_actions(options.queue), clock),
        readers(directory.database_path(), static_cast<std::size_t>(options.readers)),
        files(static_cast<std::size_t>(options.file_threads)),
        directory_of_callers(session_key(disk, options.data_directory)),
        writer((finish_deletions(engine.store(), blobs), engine),
               {.on_commit = [this](const GroupOutcome& outcome) { hub.commit(outcome); },
                .on_fatal = [](const StorageFatal& error) { end_process(error); },
                .figures = &writer_figures}),
        services{.options = api_options(options),
                 .clock = clock,
                 .store_id = engine.store_id(),
                 .token_key = engine.token_key(),
                 .event_lines = engine.event_lines(),
                 .writer = writer,
                 .readers = readers,
                 .files = files,
                 .hub = hub,
                 .blobs = blobs,
                 .uploads = uploads,
                 .logs = logs,
                 .directory = directory_of_callers,
                 .upload_room_bytes = [this] { return room_bytes(directory.space()); }},
        scrub(writer, files, blobs, options.scrub),
        jobs(services),
        workers(services),
        blob_calls(services),
        worker_blob_calls(services),
        admin(services),
        access(services),
        worker_access(services) {
    directory_of_callers.replace(engine.access().all());
    options.retention.data_directory = options.data_directory;
  }

  void listen();
  /// Binds addresses and serves these services at them.
  std::unique_ptr<grpc::Server> serve(const std::vector<std::string>& at, SocketRule rule,
                                      const std::vector<grpc::Service*>& calls,
                                      RefusedCalls& other_calls);
  void open_web();
  void run_timer();
  /// Posts what the writer does a few times a second.
  void post_tick(std::int64_t now_ms);
  void look_at_storage();
  /// Bytes that can be written before the server refuses new work; negative while it refuses.
  std::int64_t room_bytes(const DataDirectory::Space& space) const;

  ServerOptions options;
  SystemClock clock;
  SystemRandom random;
  DataDirectory directory;
  Identities identities;                         ///< bound before the server's own addresses
  std::shared_ptr<grpc::ServerCredentials> tls;  ///< of the TCP addresses; null: plain text
  std::unique_ptr<StartingServer> starting;      ///< until the store is open; requires the lock
  StrictSyncs disk{system_files(),
                   [](const FileError& error) { end_process(StorageFatal(74, error.what())); }};
  LogStore logs;
  BlobStore blobs;
  Uploads uploads;
  Hub hub;
  NewestMark mark;
  QueueEngine engine;
  Readers readers;
  WorkPool files;
  Directory directory_of_callers;
  CallFigures call_figures{names_of_methods()};
  WriterFigures writer_figures;
  FleetBoard fleet;
  Writer writer;
  RecurringTask ticks{writer};
  Services services;
  Scrub scrub;
  std::atomic<bool> folding{false};
  std::atomic<bool> deleting{false};
  JobServiceApi jobs;
  WorkerServiceApi workers;
  /// gRPC takes an object of a service for one server alone, and each server has its addresses.
  BlobServiceApi blob_calls;
  BlobServiceApi worker_blob_calls;
  RefusedCalls not_for_clients{other_address};
  RefusedCalls not_for_workers{other_address};
  AdminServiceApi admin;
  AccessServiceApi access;
  AccessServiceApi worker_access;
  std::unique_ptr<grpc::Server> grpc_server;
  /// Serves workers at addresses of their own; null if they call at those of clients.
  std::unique_ptr<grpc::Server> worker_server;
  std::unique_ptr<WebDoor> web;  ///< null without `metrics_listen`
  std::vector<std::string> addresses;
  std::vector<std::string> worker_addresses;

  std::mutex timer_mutex;
  std::condition_variable timer_changed;
  bool timer_stop = false;
  std::int64_t fleet_shown_ms = -kFleetShownMs;
  std::thread timer;
  bool stopped = false;
};

std::unique_ptr<grpc::Server> Server::Parts::serve(const std::vector<std::string>& at,
                                                   SocketRule rule,
                                                   const std::vector<grpc::Service*>& calls,
                                                   RefusedCalls& other_calls) {
  Bound bound =
      bind_server(at, {.keepalive_ms = options.api.keepalive_ms, .sockets = rule, .tls = tls},
                  [&](grpc::ServerBuilder& builder) {
                    for (grpc::Service* service : calls) builder.RegisterService(service);
                    if (!options.metrics_listen.empty()) meter_calls(builder, call_figures);
                    builder.RegisterCallbackGenericService(&other_calls);
                  });
  bound.server->GetHealthCheckService()->SetServingStatus(true);
  return std::move(bound.server);
}

void Server::Parts::listen() {
  addresses = starting->addresses();
  worker_addresses = starting->worker_addresses();
  // The next object binds the same addresses. A call in between finds no server for a moment and is
  // repeated.
  starting.reset();
  if (options.reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  if (worker_addresses.empty()) {
    grpc_server = serve(addresses, SocketRule::kGroup,
                        {&jobs, &workers, &blob_calls, &admin, &access}, not_for_clients);
  } else {
    grpc_server = serve(addresses, SocketRule::kGroup, {&jobs, &blob_calls, &admin, &access},
                        not_for_clients);
    worker_server = serve(worker_addresses, SocketRule::kOwnerOrDirectoryGroup,
                          {&workers, &worker_blob_calls, &worker_access}, not_for_workers);
  }
  identities.serve(services);
  for (const std::string& address : addresses)
    log(Level::kInfo, "listening", {{"address", address}});
  for (const std::string& address : worker_addresses)
    log(Level::kInfo, "listening", {{"address", address}, {"for", "workers"}});
  open_web();
  timer = std::thread([this] { run_timer(); });
}

void Server::Parts::open_web() {
  if (options.metrics_listen.empty()) return;
  web = std::make_unique<WebDoor>(
      options.metrics_listen, options.tls,
      WebParts{.database_path = directory.database_path(),
               .clock = clock,
               .directory = directory_of_callers,
               .failed_logins = services.failed_logins,
               .call_rates = services.call_rates,
               .calls = call_figures,
               .writer = writer_figures,
               .files = services.file_figures,
               .fleet = fleet,
               .logs = logs,
               .state =
                   [this] {
                     const DataDirectory::Space space = directory.space();
                     return ServerState{.is_stopping = services.draining,
                                        .storage_low = services.storage_low,
                                        .free_bytes = space.free_bytes,
                                        .total_bytes = space.total_bytes,
                                        .watches = services.watches,
                                        .corrupt_files = blobs.n_put_aside()};
                   },
               .scope_of = scope_of,
               .on_refused_login =
                   [this](const std::string& peer, const std::string& reason) {
                     record_failed_login(writer, peer, "StatusPage", reason);
                   }});
  log(Level::kInfo, "listening", {{"address", web->address()}, {"for", "metrics"}});
}

void Server::Parts::post_tick(std::int64_t now_ms) {
  const bool shows = web != nullptr && now_ms - fleet_shown_ms >= kFleetShownMs;
  const auto body = [this, shows](WriteContext& write) {
    write.queue.tick(write.now);
    if (shows) fleet.put(write.queue.fleet(write.now), write.now);
  };
  const auto done = [](const std::exception_ptr& error) { (void)to_status(error, "tick"); };
  if (ticks.post({.body = body, .done = done}) && shows) fleet_shown_ms = now_ms;
}

void Server::Parts::look_at_storage() {
  if (!directory.is_in_place()) {
    // Continuing would acknowledge work that is lost. A supervisor must not start an empty store at
    // this path either.
    log(Level::kError, "data_directory_gone",
        {{"what",
          directory.path() + " was removed or moved, or another directory lies in its place"},
         {"do", "put it back, or restore it from a backup, then start the server"}});
    ::_exit(65);
  }
  const DataDirectory::Space space = directory.space();
  const bool low = room_bytes(space) < 0;
  if (low != services.storage_low.exchange(low))
    log(low ? Level::kWarning : Level::kInfo, low ? "storage_low" : "storage_back",
        {{"free_bytes", std::to_string(space.free_bytes)}});
}

std::int64_t Server::Parts::room_bytes(const DataDirectory::Space& space) const {
  const auto share = static_cast<std::int64_t>(options.api.storage_low_share *
                                               static_cast<double>(space.total_bytes));
  return space.free_bytes - std::max(options.api.storage_low_bytes, share);
}

void Server::Parts::run_timer() {
  std::int64_t next_storage = 0;
  std::int64_t next_garbage = clock.now().monotonic_ms + options.garbage_interval_ms;
  std::unique_lock lock(timer_mutex);
  for (;;) {
    lock.unlock();
    const std::int64_t now = clock.now().monotonic_ms;
    post_tick(now);
    hub.tick(now);
    scrub.tick(clock.now());
    services.idle_uploads.end_lost();
    services.idle_uploads.cancel_idle(now, options.api.upload_stream_idle_ms);
    try {
      if (now >= next_storage) {
        next_storage = now + 1'000;
        look_at_storage();
        fold_logs(writer, files, logs, folding);
      }
      if (now >= next_garbage) {
        next_garbage = now + options.garbage_interval_ms;
        delete_excess_results(readers, writer, options.retention, clock.now().wall_ms, deleting);
        collect_garbage(writer, files, blobs, logs, options.retention);
      }
    } catch (const FileError& error) {
      log(Level::kWarning, "housekeeping_failed", {{"what", error.what()}});
    }
    lock.lock();
    timer_changed.wait_for(lock, std::chrono::milliseconds(options.tick_ms),
                           [this] { return timer_stop; });
    if (timer_stop) return;
  }
}

Server::Server(const ServerOptions& options) : parts_(std::make_unique<Parts>(options)) {
  if (parts_->directory.is_open_to_others())
    log(Level::kWarning, "data_directory_open",
        {{"what", parts_->directory.path() + " can be entered by other users of this machine"},
         {"do", "chmod 0700 " + parts_->directory.path()}});
  parts_->listen();
}

Server::~Server() { stop(); }

const std::vector<std::string>& Server::addresses() const { return parts_->addresses; }

const std::vector<std::string>& Server::worker_addresses() const {
  return parts_->worker_addresses;
}

std::string Server::metrics_address() const {
  return parts_->web == nullptr ? std::string() : parts_->web->address();
}

std::uint64_t Server::reads() const { return parts_->readers.done(); }

void Server::stop() {
  Parts& parts = *parts_;
  if (parts.stopped) return;
  parts.stopped = true;
  parts.services.draining = true;
  const auto deadline =
      std::chrono::system_clock::now() + std::chrono::milliseconds(parts.options.shutdown_ms);
  const auto servers = {parts.grpc_server.get(), parts.worker_server.get()};
  for (grpc::Server* server : servers)
    if (server != nullptr)
      if (auto* health = server->GetHealthCheckService()) health->SetServingStatus(false);
  // Streams and long polls end by themselves after this, and other calls at the deadline.
  if (parts.grpc_server) parts.hub.close();
  for (grpc::Server* server : servers)
    if (server != nullptr) server->Shutdown(deadline);
  if (parts.timer.joinable()) {
    {
      const std::lock_guard lock(parts.timer_mutex);
      parts.timer_stop = true;
    }
    parts.timer_changed.notify_one();
    parts.timer.join();
  }
  parts.identities.stop();
  parts.web.reset();
  parts.grpc_server.reset();
  parts.worker_server.reset();
  parts.files.close();
  parts.writer.close();
  parts.readers.close();
  for (const auto* list : {&parts.addresses, &parts.worker_addresses})
    for (const std::string& address : *list)
      if (address.starts_with("unix:")) remove_socket(address.substr(5));
}

}  // namespace quasi::server
