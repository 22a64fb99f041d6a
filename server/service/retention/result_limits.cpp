#include "server/service/retention/result_limits.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "server/queue/refused.hpp"
#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr std::size_t kStep = 32;  ///< jobs of one transaction

void report(const std::exception_ptr& error) {
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    log(Level::kWarning, "results_not_deleted", {{"what", failure.what()}});
  }
}

/// Holds the jobs that are being deleted, with the work that remains.
struct Round {
  std::vector<ExcessResult> results;
  std::size_t next = 0;
};

void delete_step(Writer& writer, const std::shared_ptr<Round>& round, std::atomic<bool>& busy) {
  if (round->next >= round->results.size()) {
    busy = false;
    return;
  }
  const std::size_t begin = round->next;
  round->next = std::min(begin + kStep, round->results.size());
  const bool posted = writer.post({.body =
                                       [round, begin](WriteContext& write) {
                                         for (std::size_t i = begin; i < round->next; ++i)
                                           delete_excess_result(write, round->results[i]);
                                       },
                                   .done =
                                       [round, &writer, &busy](const std::exception_ptr& error) {
                                         report(error);
                                         if (error)
                                           busy = false;
                                         else
                                           delete_step(writer, round, busy);
                                       }});
  if (!posted) busy = false;
}

}  // namespace

ResultLimits result_limits(const RetentionOptions& options, std::int64_t now_ms) {
  return {.user_bytes = options.user_result_bytes,
          .total_bytes = options.total_result_bytes,
          .ended_before_ms = now_ms - options.result_grace_ms};
}

void delete_excess_result(WriteContext& write, const ExcessResult& result) {
  if (!write.store.find_job(Scope::everything(), result.uid)) return;
  delete_by_server(write, {result.uid},
                   result.of_user ? "the files of its owner's jobs exceed user_result_bytes"
                                  : "the files of all jobs exceed total_result_bytes");
}

void delete_excess_results(Readers& readers, Writer& writer, const RetentionOptions& options,
                           std::int64_t now_ms, std::atomic<bool>& busy) {
  if (options.user_result_bytes <= 0 && options.total_result_bytes <= 0) return;
  if (busy.exchange(true)) return;
  const bool posted =
      readers.read([limits = result_limits(options, now_ms), &writer, &busy](ReadStore& store) {
        try {
          auto round = std::make_shared<Round>(Round{.results = store.excess_results(limits)});
          if (!round->results.empty())
            log(Level::kInfo, "results_deleted", {{"jobs", std::to_string(round->results.size())}});
          delete_step(writer, round, busy);
        } catch (const std::exception& failure) {
          log(Level::kWarning, "results_not_deleted", {{"what", failure.what()}});
          busy = false;
        }
      });
  if (!posted) busy = false;
}

}  // namespace quasi::server
