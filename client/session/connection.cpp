#include "client/session/connection.hpp"

#include <grpcpp/channel.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <stdexcept>

#include "proto/wire/access/tls.hpp"
#include "proto/wire/channel.hpp"
#include "proto/wire/identity.hpp"
#include "proto/wire/status.hpp"

namespace quasi::client {
namespace {

using grpc::StatusCode;
namespace reason = wire::reason;

ExitStatus exit_status_of(const grpc::Status& status, const wire::ErrorDetails& details) {
  if (details.reason == "LOCAL_FILE") return ExitStatus::kLocalFile;
  if (details.reason == reason::kUnschedulable) return ExitStatus::kEngineUnavailable;
  switch (status.error_code()) {
    case StatusCode::INVALID_ARGUMENT:
      return ExitStatus::kInvalidInput;
    case StatusCode::NOT_FOUND:
      return ExitStatus::kNotFound;
    case StatusCode::ALREADY_EXISTS:
    case StatusCode::FAILED_PRECONDITION:
    case StatusCode::ABORTED:
    case StatusCode::OUT_OF_RANGE:
      return ExitStatus::kConflict;
    case StatusCode::UNAUTHENTICATED:
    case StatusCode::PERMISSION_DENIED:
      return ExitStatus::kNotAllowed;
    case StatusCode::RESOURCE_EXHAUSTED:
      return ExitStatus::kQuota;
    case StatusCode::CANCELLED:
      // A connection that breaks during a call gives this code. The server itself would give a
      // reason.
      return details.reason.empty() ? ExitStatus::kUnreachable : ExitStatus::kUnexpected;
    case StatusCode::UNAVAILABLE:
    case StatusCode::DEADLINE_EXCEEDED:
      return ExitStatus::kUnreachable;
    case StatusCode::DATA_LOSS:
      return ExitStatus::kDataIntegrity;
    default:
      return ExitStatus::kUnexpected;
  }
}

std::string remedy_of(const grpc::Status& status, const wire::ErrorDetails& details,
                      const std::string& address) {
  const std::string& why = details.reason;
  if (why == reason::kStarting) return "the server is starting; try again in a few seconds";
  if (why == reason::kDraining) return "the server is shutting down; try again when it is back";
  if (why == reason::kInputsMissing)
    return "submit the job file again: its inputs are uploaded anew";
  if (why == reason::kUnschedulable) return "see the devices: quasi devices";
  if (why == reason::kStorageLow || why == reason::kStorageFull)
    return "the server's disk is full; tell its operator";
  if (why.starts_with("QUOTA_")) return "see your use and your quotas: quasi usage";
  if (why == reason::kTokenMissing)
    return "name your token's file by token_file in the context or by QUASI_TOKEN_FILE; the "
           "operator of the server makes tokens with: quasi admin token NAME";
  if (why == reason::kTokenExpired || why == reason::kTokenInvalid)
    return "ask the operator of the server for a new token: quasi admin token NAME";
  if (why == reason::kRoleRequired) return "see your role: quasi whoami";
  if (why == reason::kScopeRequired) return "see the scopes of your token: quasi whoami";
  if (why == reason::kJob) return "see your jobs: quasi list";
  if (why == "LOCAL_FILE")
    return "free space or choose another directory, then run the same command again";
  switch (status.error_code()) {
    case StatusCode::CANCELLED:
      return "try again; a submission is repeated safely by: quasi submit --resume";
    case StatusCode::UNAVAILABLE:
      return "start a server (quasi-server --help), or give its address: --server HOST:PORT or "
             "QUASI_SERVER";
    case StatusCode::DEADLINE_EXCEEDED:
      return "try again, with a longer --timeout if the server is busy";
    case StatusCode::INVALID_ARGUMENT:
      return "correct the fields it names, then try again; --verbose lists all of them";
    case StatusCode::RESOURCE_EXHAUSTED:
      if (why.empty()) return "submit fewer jobs at once: a request may have 4 MiB";
      return "try again later";
    case StatusCode::DATA_LOSS:
      return "run the job again, and tell the operator of " + address;
    case StatusCode::UNIMPLEMENTED:
      return "the server at " + address + " has another version: quasi version";
    case StatusCode::INTERNAL:
    case StatusCode::UNKNOWN:
      return details.metadata.contains("incident")
                 ? "tell the operator the incident " + details.metadata.at("incident")
                 : "check that a quasi server listens at " + address;
    default:
      return "";
  }
}

}  // namespace

Failure failure_of(const grpc::Status& status, const std::string& address) {
  if (interrupt::requested())
    return Failure(static_cast<ExitStatus>(interrupt::exit_status()), "interrupted");
  const wire::ErrorDetails details = wire::parse_details(status);
  std::string what = status.error_message();
  if (status.error_code() == StatusCode::UNAVAILABLE && details.reason.empty()) {
    if (address.starts_with("unix:") && ::access(address.c_str() + 5, W_OK) != 0 && errno == EACCES)
      return Failure(ExitStatus::kNotAllowed,
                     "the socket of the server at " + address + " does not admit you",
                     "ask its operator to add you to the group that the socket belongs to: ls -l " +
                         address.substr(5));
    what = "no answer from a server at " + address;
  }
  if (status.error_code() == StatusCode::CANCELLED && details.reason.empty())
    what = "no answer from a server at " + address + ": the connection ended under the call";
  if (status.error_code() == StatusCode::DEADLINE_EXCEEDED && details.reason.empty())
    what = "the server at " + address + " did not answer in time";
  if (!details.fields.empty())
    what = details.fields.front().field + ": " + details.fields.front().description;
  if (what.empty()) what = std::string(wire::code_name(status.error_code()));

  Failure failure(exit_status_of(status, details), what, remedy_of(status, details, address));
  failure.reason =
      details.reason.empty() ? std::string(wire::code_name(status.error_code())) : details.reason;
  for (const wire::FieldViolation& field : details.fields)
    failure.violations.push_back({field.field, field.description});
  for (const wire::PreconditionViolation& violation : details.preconditions)
    failure.violations.push_back({violation.subject, violation.description});
  failure.details.push_back("server " + address + " answered " +
                            std::string(wire::code_name(status.error_code())) + ": " +
                            status.error_message());
  for (const auto& [key, value] : details.metadata) failure.details.push_back(key + " = " + value);
  return failure;
}

bool is_transient(const grpc::Status& status) {
  const std::string why = wire::reason_of(status);
  if (why == reason::kServerBusy || why == reason::kRateLimited || why == reason::kSlowReader)
    return true;
  switch (status.error_code()) {
    case StatusCode::UNAVAILABLE:
      return true;
    // A stream whose connection breaks gives one of these codes, without details from the server.
    case StatusCode::CANCELLED:
    case StatusCode::UNKNOWN:
    case StatusCode::INTERNAL:
      return why.empty();
    default:
      return false;
  }
}

namespace {

/// The failure behind a TLS connection that gRPC could not make; nothing if TLS is sound.
std::optional<Failure> tls_failure(const std::string& address, const std::string& ca_file) {
  const std::string ca = ca_file.empty() ? "" : wire::read_certificates(ca_file);
  const wire::TlsView view = wire::view_tls(address, ca, std::chrono::seconds(5));
  const std::string server = "the server at " + address;
  std::string names;
  for (const std::string& name : view.names) names += (names.empty() ? "" : ", ") + name;
  if (ca_file.empty()) {
    if (view.chain_pem.empty()) return std::nullopt;
    return Failure(ExitStatus::kNotAllowed, server + " speaks TLS, and no CA is named for it",
                   "ask its operator for a code and run: quasi login CODE");
  }
  switch (view.verdict) {
    case wire::TlsVerdict::kAccepted:
    case wire::TlsVerdict::kNoAnswer:
      return std::nullopt;
    case wire::TlsVerdict::kNoTls:
      return Failure(ExitStatus::kNotAllowed,
                     server + " does not speak TLS 1.3 (" + view.reason +
                         "), and the context names a CA for it",
                     "compare the address with its operator; nothing was sent");
    case wire::TlsVerdict::kWrongCa:
      return Failure(ExitStatus::kNotAllowed,
                     "the certificate of " + server + " is not signed by the CA in " + ca_file,
                     "nothing was sent, because it may be another server; ask its operator whether "
                     "the CA is a new one, and for a code: quasi login CODE");
    case wire::TlsVerdict::kWrongName:
      return Failure(ExitStatus::kNotAllowed,
                     "the certificate of " + server + " is for other names: " + names,
                     "use one of these names in the address, or let its operator add yours: "
                     "quasi-server init --renew --hostname NAME");
    case wire::TlsVerdict::kNotYetValid:
      return Failure(ExitStatus::kNotAllowed,
                     "the certificate of " + server + " is not valid before " + view.not_before +
                         ", which is later than the clock of this machine",
                     "compare the clocks of both machines (date -u) and correct the wrong one");
    case wire::TlsVerdict::kExpired:
      return Failure(ExitStatus::kNotAllowed,
                     "the certificate of " + server + " expired on " + view.not_after,
                     "compare the clocks of both machines (date -u); if they agree, ask its "
                     "operator to renew it: quasi-server init --renew");
    case wire::TlsVerdict::kUnacceptable:
      break;
  }
  return Failure(ExitStatus::kNotAllowed,
                 "the certificate of " + server + " is not acceptable: " + view.reason,
                 "tell its operator");
}

}  // namespace

Failure Connection::refused(const grpc::Status& status) const {
  if (status.error_code() == StatusCode::UNAVAILABLE && wire::reason_of(status).empty() &&
      !address_.starts_with("unix:") && !interrupt::requested())
    if (const auto failure = tls_failure(address_, credentials_.ca_file)) return *failure;
  return failure_of(status, address_);
}

std::shared_ptr<grpc::Channel> Connection::channel() {
  try {
    if (!channel_)
      channel_ = wire::open_channel(address_, credentials_.token_file, credentials_.ca_file);
  } catch (const std::invalid_argument& error) {
    throw Failure(ExitStatus::kInvalidInput, error.what(),
                  "ask its operator for a code and run: quasi login CODE; or name the file of its "
                  "CA by ca in the context or by QUASI_CA");
  } catch (const wire::TlsFileError& error) {
    throw Failure(ExitStatus::kLocalFile, error.what(),
                  "correct ca in the context or QUASI_CA; quasi login CODE writes a new file");
  } catch (const wire::TokenFileError& error) {
    throw Failure(ExitStatus::kNotAllowed, error.what(),
                  "ask the operator of the server for a token, and name its file by token_file in "
                  "the context or by QUASI_TOKEN_FILE");
  }
  return channel_;
}

v1::JobService::Stub& Connection::jobs() {
  if (!jobs_) jobs_ = v1::JobService::NewStub(channel());
  return *jobs_;
}

v1::AdminService::Stub& Connection::admin() {
  if (!admin_) admin_ = v1::AdminService::NewStub(channel());
  return *admin_;
}

v1::AccessService::Stub& Connection::codes() {
  if (!codes_) codes_ = v1::AccessService::NewStub(channel());
  return *codes_;
}

v1::BlobService::Stub& Connection::blobs() {
  if (!blobs_) blobs_ = v1::BlobService::NewStub(channel());
  return *blobs_;
}

}  // namespace quasi::client
