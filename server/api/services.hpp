#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/access/call_rates.hpp"
#include "server/access/directory.hpp"
#include "server/access/failed_logins.hpp"
#include "server/access/open_streams.hpp"
#include "server/access/upload_rates.hpp"
#include "server/api/streams/event_pages.hpp"
#include "server/api/streams/idle_streams.hpp"
#include "server/figures/histogram.hpp"
#include "server/queue/clock.hpp"
#include "server/service/event_lines.hpp"
#include "server/service/hash_marks.hpp"
#include "server/service/hub.hpp"
#include "server/service/readers.hpp"
#include "server/service/uploads.hpp"
#include "server/service/writer.hpp"
#include "server/store/blob_store.hpp"
#include "server/store/data_directory.hpp"

namespace quasi::server {

struct ApiOptions {
  bool enable_test_work = false;
  std::int64_t lease_ttl_ms = 60'000;
  std::int64_t heartbeat_interval_ms = 1'000;
  std::int64_t stage_timeout_ms = 30 * 60'000;
  std::int64_t orphan_grace_ms = 10 * 60'000;
  std::int64_t orphan_limit_ms = 24 * 3'600'000;
  std::int64_t slow_reader_ms = 120'000;
  std::int64_t bookmark_ms = 15'000;
  std::int64_t storage_low_bytes = std::int64_t{2} << 30;
  double storage_low_share = 0.05;
  std::int64_t upload_stream_idle_ms = 60'000;
  std::int64_t keepalive_ms = 60'000;
  bool require_tokens = false;  ///< false: one on a Unix socket without a token is the owner's
  std::vector<std::int64_t> worker_uids;
  bool enrol_users = true;
  std::int64_t failed_logins_per_minute = 5;  ///< of one peer
  std::int64_t submits_per_second = 20;       ///< of one principal, ten times as many at once
  std::int64_t calls_per_second = 100;        ///< other unary calls of one principal, as above
  std::int64_t streams_per_principal = 128;   ///< open at once
  std::int64_t upload_bytes_per_second = 0;   ///< of one principal; 0: no limit
  std::string public_address;  ///< HOST:PORT by which others reach the server; codes contain it
  std::string tls_ca;          ///< file with the CA of the server's certificate
  std::string worker_port;     ///< of `worker_listen` on TCP; "": workers use that of clients
};

/// Begin here: server/api answers the gRPC calls. job_service.hpp, worker_service.hpp and
/// blob_service.hpp implement one service each, calls.hpp runs their unary calls, and streams/
/// holds the streaming ones. `Services` holds the objects that all calls use. They live longer than
/// the gRPC server.
struct Services {
  ApiOptions options;
  const Clock& clock;
  std::string store_id;
  std::string token_key;
  const EventLines& event_lines;
  Writer& writer;
  Readers& readers;
  WorkPool& files;  ///< threads for reading, writing and hashing blobs
  Hub& hub;
  BlobStore& blobs;
  Uploads& uploads;
  LogStore& logs;
  Directory& directory;
  /// Bytes that the disk can take before the server refuses new work; negative once it refuses.
  std::function<std::int64_t()> upload_room_bytes;
  IdleStreams idle_uploads = {};
  HashMarks hash_marks = {};
  std::atomic<bool> storage_low{false};
  std::atomic<bool> draining{false};
  std::atomic<int> watches{0};
  std::atomic<std::int64_t> refused_tokens{0};
  std::atomic<std::int64_t> refused_logged_s{-1};
  FailedLogins failed_logins{options.failed_logins_per_minute};
  CallRates call_rates{options.submits_per_second, options.calls_per_second};
  OpenStreams open_streams{options.streams_per_principal};
  UploadRates upload_rates{options.upload_bytes_per_second};
  FileFigures file_figures = {};
  EventPages event_pages = {};
};

}  // namespace quasi::server
