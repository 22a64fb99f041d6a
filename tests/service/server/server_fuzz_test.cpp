// Malformed requests to every call of the four services, streams included. Each is a sound request
// with up to three hostile fields that reflection finds. The server never crashes, and every
// refusal names a field.
//
// QUASI_FUZZ_RUNS is the number of requests, and QUASI_SEED chooses them; both are printed.

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

#include "tests/service/server/hostile_message.hpp"
#include "tests/service/server/request_templates.hpp"

namespace quasi::server {
namespace {

namespace pb = google::protobuf;
using test::Messages;

/// True if `path` ("jobs[3].spec.resources.gpus", "labels[…]", "header.digest") names a field or a
/// oneof of the message type.
bool leads_somewhere(const pb::Descriptor* type, std::string path) {
  while (!path.empty()) {
    std::size_t end = path.find_first_of(".[");
    const std::string name = path.substr(0, end);
    if (type == nullptr) return true;  // Below a map or a text the rest is a key.
    if (name != "spec") {              // Job specs are called ".spec", which is no field.
      if (type->FindOneofByName(name) != nullptr) return true;
      const pb::FieldDescriptor* field = type->FindFieldByName(name);
      if (field == nullptr) return false;
      type = field->message_type() != nullptr && !field->is_map() ? field->message_type() : nullptr;
    }
    if (end != std::string::npos && path[end] == '[') end = path.find(']', end);
    if (end == std::string::npos) break;
    if (path[end] == ']') ++end;
    path = end < path.size() ? path.substr(end + 1) : "";
  }
  return true;
}

class Fuzz : public test::RequestTemplates {
 protected:
  struct Answer {
    grpc::Status status;
    bool cut = false;  ///< an accepted stream or poll that was still open when the test left it
  };

  /// Sends the messages of one call, and waits for its end.
  Answer call(const pb::MethodDescriptor& method, const Messages& requests) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    const bool endless = method.name() == "WatchJobs" || method.name() == "ReadLogs" ||
                         method.name() == "AcquireLeases";
    context.set_deadline(std::chrono::system_clock::now() +
                         (endless ? std::chrono::milliseconds(50) : kHang));
    const auto stream = stub.PrepareCall(
        &context, "/" + method.service()->full_name() + "/" + method.name(), &queue);
    const auto done = [&] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    stream->StartCall(nullptr);
    bool open = done();
    for (std::size_t i = 0; open && i < requests.size(); ++i) {
      const grpc::Slice slice(requests[i]->SerializePartialAsString());
      stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
      open = done();
    }
    if (open) {
      stream->WritesDone(nullptr);
      done();
    }
    grpc::ByteBuffer response;
    do {
      stream->Read(&response, nullptr);
    } while (done());
    Answer answer;
    stream->Finish(&answer.status, nullptr);
    done();
    answer.cut = endless && answer.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED &&
                 wire::reason_of(answer.status).empty();
    return answer;
  }
};

/// Every call of the five services, from their descriptors. A new call without a template fails
/// the test.
std::vector<const pb::MethodDescriptor*> all_methods() {
  std::vector<const pb::MethodDescriptor*> methods;
  for (const char* name :
       {"JobService", "BlobService", "WorkerService", "AdminService", "AccessService"}) {
    const pb::ServiceDescriptor* service =
        pb::DescriptorPool::generated_pool()->FindServiceByName(std::string("quasi.v1.") + name);
    for (int i = 0; service != nullptr && i < service->method_count(); ++i)
      methods.push_back(service->method(i));
  }
  return methods;
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

/// A refusal has a reason. It names a field of the request, or the object that is missing, fenced
/// or in the wrong state.
void expect_named_field(const pb::MethodDescriptor& method, const grpc::Status& status) {
  EXPECT_NE(wire::reason_of(status), "");
  if (status.error_code() != grpc::StatusCode::INVALID_ARGUMENT) {
    EXPECT_GT(status.error_message().size(), 10U);
    return;
  }
  const wire::ErrorDetails details = wire::parse_details(status);
  for (const auto& violation : details.fields)
    EXPECT_TRUE(leads_somewhere(method.input_type(), violation.field)) << violation.field;
  // Refusals that need the store name the field at the beginning of their sentence.
  const std::string first = status.error_message().substr(0, status.error_message().find(':'));
  EXPECT_TRUE(!details.fields.empty() || leads_somewhere(method.input_type(), first)) << first;
}

// Sound requests are accepted. With hostile fields no request crashes the server or is answered
// with INTERNAL, UNKNOWN, UNIMPLEMENTED, UNAVAILABLE or CANCELLED, and each refusal names a field.
TEST_F(Fuzz, EveryCallRefusesWhatIsWrongByField) {
  const std::uint64_t seed = number_from("QUASI_SEED", 20'261);
  const std::uint64_t runs = number_from("QUASI_FUZZ_RUNS", 10'000);
  std::cout << "QUASI_SEED=" << seed << " QUASI_FUZZ_RUNS=" << runs << '\n';
  test::Hostile hostile(seed);
  prepare();
  job_ = submit();
  const auto templates = this->templates();
  const auto methods = all_methods();
  ASSERT_EQ(methods.size(), templates.size());
  std::map<std::string, int> codes;
  std::uint64_t sent = 0;
  std::uint64_t refused = 0;
  const auto is_empty = [](const pb::MethodDescriptor* method) {
    return method->input_type()->field_count() == 0;
  };
  const auto with_fields = methods.size() - static_cast<std::size_t>(std::count_if(
                                                methods.begin(), methods.end(), is_empty));
  const std::uint64_t each = (runs + with_fields - 1) / with_fields;
  for (const pb::MethodDescriptor* method : methods) {
    ASSERT_TRUE(templates.contains(method->name())) << method->full_name() << " has no template";
    const auto& make = templates.at(method->name());
    // The sound request is accepted, so that later refusals are due to the hostile fields.
    const Answer sound = call(*method, make());
    // This server has no public address for codes and no tokens.
    const bool is_of_codes = method->service()->name() == "AccessService";
    EXPECT_TRUE(sound.status.ok() || sound.cut || is_of_codes || method->name() == "QueryUpload" ||
                method->name() == "ReadLogs")
        << method->name() << ": " << sound.status.error_message();
    if (is_empty(method)) continue;
    for (std::uint64_t i = 0; i < each; ++i) {
      Messages requests = make();
      pb::Message& victim = *requests[hostile.next() % requests.size()];
      std::string field = hostile.spoil(victim);
      for (std::uint64_t more = hostile.next() % 6; more > 3; --more)
        field += " " + hostile.spoil(victim);
      std::string request_text = victim.ShortDebugString();
      request_text.resize(std::min<std::size_t>(request_text.size(), 300));
      const Answer answer = call(*method, requests);
      const grpc::Status& status = answer.status;
      ++sent;
      if (answer.cut) continue;
      const std::string reason = wire::reason_of(status);
      ++codes[std::string(wire::code_name(status.error_code())) + " " + reason];
      SCOPED_TRACE(method->name() + " #" + std::to_string(i) + " spoilt '" + field + "': " +
                   request_text + "\n-> " + std::string(wire::code_name(status.error_code())) +
                   " " + reason + ": " + status.error_message());
      for (const grpc::StatusCode never :
           {grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN, grpc::StatusCode::UNIMPLEMENTED,
            grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED})
        ASSERT_NE(status.error_code(), never);
      if (status.ok()) continue;
      ++refused;
      expect_named_field(*method, status);
    }
  }
  submit();  // The server still takes jobs.
  std::cout << sent << " spoilt requests to " << methods.size() << " calls, " << refused
            << " refused\n";
  for (const auto& [code, count] : codes) std::cout << "  " << code << " " << count << '\n';
  EXPECT_GE(sent, runs);
  EXPECT_GE(refused, sent / 3);
}

// Bytes that are no message at all are refused, without INTERNAL or UNKNOWN.
TEST_F(Fuzz, BytesThatAreNoMessageAreRefusedInOrder) {
  prepare();
  std::mt19937_64 random(77);
  grpc::GenericStub stub(channel_);
  std::map<std::string, int> codes;
  for (const pb::MethodDescriptor* method : all_methods()) {
    for (int i = 0; i < 10; ++i) {
      std::string bytes(1 + random() % 64, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      bytes.insert(0, "\x0a\x7f");  // The header of a field of 127 bytes, which are missing.
      const grpc::Slice slice(bytes);
      const grpc::ByteBuffer request(&slice, 1);
      grpc::ByteBuffer response;
      grpc::Status status;
      grpc::ClientContext context;
      limit(context);
      grpc::CompletionQueue queue;
      const auto call = stub.PrepareUnaryCall(
          &context, "/" + method->service()->full_name() + "/" + method->name(), request, &queue);
      call->StartCall();
      call->Finish(&response, &status, nullptr);
      void* tag = nullptr;
      bool ok = false;
      ASSERT_TRUE(queue.Next(&tag, &ok));
      ++codes[std::string(wire::code_name(status.error_code()))];
      EXPECT_NE(status.error_code(), grpc::StatusCode::INTERNAL)
          << method->name() << ": " << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::UNKNOWN)
          << method->name() << ": " << status.error_message();
      EXPECT_NE(status.error_code(), grpc::StatusCode::OK) << method->name();
    }
  }
  for (const auto& [code, count] : codes) std::cout << "  " << code << " " << count << '\n';
  submit();
}

}  // namespace
}  // namespace quasi::server
