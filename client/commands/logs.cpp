#include "client/commands/logs.hpp"

#include <nlohmann/json.hpp>
#include <thread>

#include "client/input/job_ids.hpp"
#include "client/views/job_view.hpp"
#include "client/views/readable.hpp"
#include "proto/wire/status.hpp"

namespace quasi::client {
namespace {

constexpr double kPatience_s = 300.0;

/// The position of reading, which survives broken streams.
struct Position {
  std::uint32_t attempt = 0;  ///< 0: the newest
  std::uint64_t offset = 0;
};

class Output {
 public:
  explicit Output(Console& console) : console_(console) {}

  void take(const v1::ReadLogsResponse& part) {
    if (console_.format() == Format::kJson) {
      text_ += part.data();
      return;
    }
    if (console_.format() != Format::kJsonl && !console_.terminal().out) {
      console_.data(part.data());
      return console_.flush();
    }
    // Pages of the server may end within a character. An incomplete character waits for the next
    // page.
    if (part.attempt() != attempt_) write_held();
    attempt_ = part.attempt();
    if (held_.empty()) held_offset_ = part.offset();
    held_ += part.data();
    const std::size_t whole = whole_characters(held_);
    write(held_.substr(0, whole));
    held_.erase(0, whole);
    held_offset_ += whole;
    console_.flush();
  }

  void end(const std::string& job_id, std::uint32_t attempt) {
    write_held();
    if (console_.format() == Format::kJson)
      console_.document({{"job", job_id}, {"attempt", attempt}, {"text", text_}});
  }

 private:
  /// Length of the text without a last character whose bytes have not all arrived.
  static std::size_t whole_characters(const std::string& text) {
    std::size_t start = text.size();
    while (start > 0 && text.size() - start < 3 &&
           (static_cast<unsigned char>(text[start - 1]) & 0xC0) == 0x80)
      --start;
    if (start == 0) return text.size();
    const auto first = static_cast<unsigned char>(text[start - 1]);
    const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    return text.size() - (start - 1) < length ? start - 1 : text.size();
  }
  void write(const std::string& text) {
    if (text.empty()) return;
    if (console_.format() == Format::kJsonl)
      console_.record({{"attempt", attempt_}, {"offset", held_offset_}, {"text", text}});
    else
      console_.data(printable(text));
  }
  void write_held() {
    write(held_);
    held_.clear();
  }

  Console& console_;
  std::string text_;  ///< the whole log, for one document
  std::string held_;  ///< bytes that are not written yet
  std::uint64_t held_offset_ = 0;
  std::uint32_t attempt_ = 0;
};

/// Reads one stream to its end. `at` advances with the received bytes.
grpc::Status read_once(Session& session, const std::string& job_id, bool follow, Position& at,
                       Output& output) {
  grpc::ClientContext context;
  const interrupt::Scope cancel([&context] { context.TryCancel(); });
  v1::ReadLogsRequest request;
  request.set_job_id(job_id);
  request.set_attempt(at.attempt);
  request.set_offset(at.offset);
  request.set_follow(follow);
  const auto reader = session.server.jobs().ReadLogs(&context, request);
  v1::ReadLogsResponse part;
  while (reader->Read(&part)) {
    at.attempt = part.attempt();
    at.offset = part.offset() + part.data().size();
    output.take(part);
  }
  return reader->Finish();
}

v1::Job current(Session& session, const std::string& job_id) {
  v1::GetJobRequest request;
  request.set_job_id(job_id);
  return session.server.call(&Jobs::GetJob, request).job();
}

std::uint32_t newest_attempt(const v1::Job& job) {
  return job.attempt_history().empty()
             ? 0
             : job.attempt_history(job.attempt_history_size() - 1).number();
}

void explain_empty_log(Session& session, const std::string& id) {
  const v1::Job job = current(session, id);
  session.console.note(newest_attempt(job) == 0
                           ? "no attempt of " + id + " has begun; it is " + state_word(job.state())
                           : "the log of " + id +
                                 " is empty: the engine had nothing to tell; results: quasi show " +
                                 id);
}

bool pause(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end && !interrupt::requested())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return !interrupt::requested();
}

[[noreturn]] void interrupted(const std::string& job_id) {
  throw Failure(static_cast<ExitStatus>(interrupt::exit_status()), "interrupted",
                "the job continues; follow it again with: quasi logs -f " + job_id);
}

}  // namespace

ExitStatus logs(Session& session, const LogsOptions& options) {
  const std::string id = resolve_job_id(session, options.job);
  Output output(session.console);
  Position at{.attempt = options.attempt, .offset = 0};
  auto last_contact = std::chrono::steady_clock::now();
  bool away = false;
  while (true) {
    const Position before = at;
    const grpc::Status status = read_once(session, id, options.follow, at, output);
    if (interrupt::requested()) interrupted(id);
    if (status.ok() || at.offset != before.offset) {
      last_contact = std::chrono::steady_clock::now();
      if (std::exchange(away, false)) session.console.note("the server is back");
    }
    if (status.ok()) {
      if (!options.follow || options.attempt != 0) break;
      // The attempt has ended. The job may have ended too, or it may get another attempt.
      const v1::Job job = current(session, id);
      if (newest_attempt(job) > at.attempt) {
        if (at.attempt != 0)
          session.console.note("attempt " + std::to_string(newest_attempt(job)) + " of " + id);
        at = {.attempt = newest_attempt(job), .offset = 0};
        continue;
      }
      if (is_final(job.state())) break;
    } else if (options.follow && wire::token_ran_out(status)) {
      // The next call carries the newest token of its source.
    } else if (options.follow && is_transient(status)) {
      const double gone =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - last_contact).count();
      if (gone > kPatience_s) throw failure_of(status, session.server.address());
      if (!std::exchange(away, true))
        session.console.note(std::string(failure_of(status, session.server.address()).what()) +
                             "; trying again");
    } else {
      throw failure_of(status, session.server.address());
    }
    if (!pause(0.3)) interrupted(id);
  }
  if (at.attempt == 0 && at.offset == 0) explain_empty_log(session, id);
  output.end(id, at.attempt);
  return ExitStatus::kOk;
}

}  // namespace quasi::client
