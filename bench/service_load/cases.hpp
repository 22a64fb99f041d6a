#pragma once

#include <filesystem>

/// Begin here: each case starts a server in an empty folder, measures, and prints one JSON line.
/// `size` is the number that the command line gives, or 0 for the usual size.
namespace quasi::bench {

/// 200 clients that make 25 calls a second each, for `size` seconds (60).
void many_clients(const std::filesystem::path& folder, int size);
/// 200 clients that make 10 calls a second each, for `size` seconds (60). A machine of two cores
/// bears that beside the clients themselves.
void calm_clients(const std::filesystem::path& folder, int size);
/// The times of 100 clients, alone and beside callers of malformed requests, `size` seconds each.
void malformed_requests(const std::filesystem::path& folder, int size);
/// The times of 100 clients, alone and beside 20 readers of a file of 2 GiB at 1 MB/s each, and the
/// memory that the readers cost; `size` seconds each (20).
void slow_readers(const std::filesystem::path& folder, int size);
/// 200 watchers that are cut now and then read `size` events (100,000).
void watchers(const std::filesystem::path& folder, int size);
/// `size` jobs (1,000), half of them running, are cancelled at once by a call each.
void cancels(const std::filesystem::path& folder, int size);
/// `size` submissions (1,000) take the result of an equal job.
void cache_hits(const std::filesystem::path& folder, int size);
/// Memory, start and listings of a server with `size` jobs in its queue (1,000,000).
void long_queue(const std::filesystem::path& folder, int size);
/// Memory and open files of a server while `size` jobs (72,000: an hour at 20 a second) go through
/// it and are deleted.
void soak(const std::filesystem::path& folder, int size);

}  // namespace quasi::bench
