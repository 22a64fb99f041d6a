#include "server/api/status.hpp"

#include <atomic>
#include <chrono>

#include "proto/wire/status.hpp"
#include "server/service/log.hpp"
#include "server/store/file_system.hpp"

namespace quasi::server {
namespace {

grpc::StatusCode code_of(Refusal kind) {
  switch (kind) {
    case Refusal::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case Refusal::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case Refusal::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case Refusal::kFailedPrecondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case Refusal::kAborted:
      return grpc::StatusCode::ABORTED;
    case Refusal::kOutOfRange:
      return grpc::StatusCode::OUT_OF_RANGE;
    case Refusal::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Refusal::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case Refusal::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Refusal::kDataLoss:
      return grpc::StatusCode::DATA_LOSS;
    case Refusal::kUnauthenticated:
      return grpc::StatusCode::UNAUTHENTICATED;
    case Refusal::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
  }
  return grpc::StatusCode::INTERNAL;
}

grpc::Status internal(const char* method, const std::string& what) {
  static std::atomic<unsigned> count{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string incident =
      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) + "-" +
      std::to_string(++count);
  log(Level::kError, "internal_error",
      {{"incident", incident}, {"method", method}, {"what", what}});
  return wire::make_status(
      grpc::StatusCode::INTERNAL,
      "a bug in the server; please report it with incident " + incident + " and the server's log",
      {.reason = std::string(wire::reason::kInternal), .metadata = {{"incident", incident}}});
}

}  // namespace

grpc::Status to_status(const Refused& refused) {
  wire::ErrorDetails details{.reason = refused.reason, .metadata = refused.metadata};
  for (const auto& [type, subject, description] : refused.preconditions)
    details.preconditions.push_back({type, subject, description});
  if (refused.retry_after_ms)
    details.retry_after = std::chrono::milliseconds(*refused.retry_after_ms);
  return wire::make_status(code_of(refused.kind), refused.what(), details);
}

grpc::Status to_status(const std::exception_ptr& error, const char* method) {
  if (!error) return grpc::Status::OK;
  try {
    std::rethrow_exception(error);
  } catch (const Refused& refused) {
    return to_status(refused);
  } catch (const FileError& failure) {
    if (failure.is_full())
      return to_status(Refused(Refusal::kUnavailable, wire::reason::kStorageFull,
                               "the server's disk is full; try again later")
                           .retry_in(10'000));
    return internal(method, failure.what());
  } catch (const std::exception& failure) {
    return internal(method, failure.what());
  } catch (...) {
    return internal(method, "an exception of no known type");
  }
}

grpc::Status to_status(const wire::Violations& violations) {
  wire::ErrorDetails details{.reason = violations.list().front().reason};
  bool only_disabled = true;
  for (const wire::Violation& violation : violations.list()) {
    details.fields.push_back({violation.field, violation.description});
    only_disabled = only_disabled && violation.reason == wire::reason::kKindDisabled;
    // A general reason replaces several different ones.
    if (violation.reason != details.reason)
      details.reason = std::string(wire::reason::kFieldInvalid);
  }
  const wire::Violation& first = violations.list().front();
  std::string message = first.field + ": " + first.description;
  if (violations.list().size() > 1)
    message += " (and " + std::to_string(violations.list().size() - 1) + " more)";
  return wire::make_status(
      only_disabled ? grpc::StatusCode::FAILED_PRECONDITION : grpc::StatusCode::INVALID_ARGUMENT,
      message, details);
}

grpc::Status busy_status(bool draining) {
  if (draining)
    return to_status(Refused(Refusal::kUnavailable, wire::reason::kDraining,
                             "the server is stopping; try again when it is back")
                         .retry_in(1'000));
  return to_status(Refused(Refusal::kResourceExhausted, wire::reason::kServerBusy,
                           "the server has too many open requests; try again")
                       .retry_in(500));
}

}  // namespace quasi::server
