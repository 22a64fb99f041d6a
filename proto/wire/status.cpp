#include "proto/wire/status.hpp"

#include "proto/wire/limits.hpp"
#include "quasi/v1/error_details.pb.h"

namespace quasi::wire {
namespace {

constexpr char kPrefix[] = "type.googleapis.com/google.rpc.";

template <class Message>
void pack(v1::Status& status, const char* name, const Message& message) {
  google::protobuf::Any& any = *status.add_details();
  any.set_type_url(std::string(kPrefix) + name);
  message.SerializeToString(any.mutable_value());
}

template <class Message>
bool unpack(const google::protobuf::Any& any, const char* name, Message& message) {
  return any.type_url() == std::string(kPrefix) + name && message.ParseFromString(any.value());
}

/// Cuts a string that would fill the details by itself, at the boundary of a character.
std::string shortened(const std::string& text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

grpc::Status make_status(grpc::StatusCode code, const std::string& message,
                         const ErrorDetails& details) {
  const std::string sentence = shortened(message, 1'024);
  // The budget leaves room for a second copy of the message, which is a trailer of its own, and for
  // the fixed parts.
  const std::size_t budget = limits::kErrorDetailsBytes - sentence.size() - 512;
  std::size_t used = 0;
  std::size_t total = 0;

  v1::BadRequest bad_request;
  for (const FieldViolation& violation : details.fields) {
    ++total;
    v1::BadRequest::FieldViolation entry;
    entry.set_field(shortened(violation.field, 256));
    entry.set_description(shortened(violation.description, 512));
    used += entry.ByteSizeLong() + 4;
    if (used > budget) continue;
    *bad_request.add_field_violations() = std::move(entry);
  }
  v1::PreconditionFailure precondition;
  for (const PreconditionViolation& violation : details.preconditions) {
    ++total;
    v1::PreconditionFailure::Violation entry;
    entry.set_type(shortened(violation.type, 64));
    entry.set_subject(shortened(violation.subject, 256));
    entry.set_description(shortened(violation.description, 256));
    used += entry.ByteSizeLong() + 4;
    if (used > budget) continue;
    *precondition.add_violations() = std::move(entry);
  }

  v1::Status status;
  status.set_code(code);
  status.set_message(sentence);
  v1::ErrorInfo info;
  info.set_reason(details.reason);
  info.set_domain("quasi");
  info.mutable_metadata()->insert(details.metadata.begin(), details.metadata.end());
  if (used > budget) (*info.mutable_metadata())["violations"] = std::to_string(total);
  pack(status, "ErrorInfo", info);
  if (bad_request.field_violations_size() > 0) pack(status, "BadRequest", bad_request);
  if (precondition.violations_size() > 0) pack(status, "PreconditionFailure", precondition);
  if (details.retry_after) {
    v1::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(details.retry_after->count() / 1000);
    retry.mutable_retry_delay()->set_nanos(
        static_cast<std::int32_t>(details.retry_after->count() % 1000 * 1'000'000));
    pack(status, "RetryInfo", retry);
  }
  return grpc::Status(code, sentence, status.SerializeAsString());
}

ErrorDetails parse_details(const grpc::Status& status) {
  ErrorDetails details;
  v1::Status wire;
  if (!wire.ParseFromString(status.error_details())) return details;
  for (const google::protobuf::Any& any : wire.details()) {
    v1::ErrorInfo info;
    v1::BadRequest bad_request;
    v1::PreconditionFailure precondition;
    v1::RetryInfo retry;
    if (unpack(any, "ErrorInfo", info)) {
      details.reason = info.reason();
      details.metadata.insert(info.metadata().begin(), info.metadata().end());
    } else if (unpack(any, "BadRequest", bad_request)) {
      for (const auto& violation : bad_request.field_violations())
        details.fields.push_back({violation.field(), violation.description()});
    } else if (unpack(any, "PreconditionFailure", precondition)) {
      for (const auto& violation : precondition.violations())
        details.preconditions.push_back(
            {violation.type(), violation.subject(), violation.description()});
    } else if (unpack(any, "RetryInfo", retry)) {
      details.retry_after = std::chrono::milliseconds(retry.retry_delay().seconds() * 1000 +
                                                      retry.retry_delay().nanos() / 1'000'000);
    }
  }
  return details;
}

std::string reason_of(const grpc::Status& status) { return parse_details(status).reason; }

bool token_ran_out(const grpc::Status& status) {
  const ErrorDetails details = parse_details(status);
  return details.reason == reason::kTokenExpired && details.metadata.contains("admitted");
}

std::string_view code_name(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::OK:
      return "OK";
    case grpc::StatusCode::CANCELLED:
      return "CANCELLED";
    case grpc::StatusCode::UNKNOWN:
      return "UNKNOWN";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "DEADLINE_EXCEEDED";
    case grpc::StatusCode::NOT_FOUND:
      return "NOT_FOUND";
    case grpc::StatusCode::ALREADY_EXISTS:
      return "ALREADY_EXISTS";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case grpc::StatusCode::FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case grpc::StatusCode::ABORTED:
      return "ABORTED";
    case grpc::StatusCode::OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case grpc::StatusCode::UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case grpc::StatusCode::INTERNAL:
      return "INTERNAL";
    case grpc::StatusCode::UNAVAILABLE:
      return "UNAVAILABLE";
    case grpc::StatusCode::DATA_LOSS:
      return "DATA_LOSS";
    case grpc::StatusCode::DO_NOT_USE:
      break;
  }
  return "UNKNOWN";
}

}  // namespace quasi::wire
