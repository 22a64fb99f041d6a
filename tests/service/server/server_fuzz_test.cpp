// Malformed requests to every call of the three services, streams included: valid requests of which
// one field, found by reflection, was made hostile. Each answer is judged: never a crash, never
// INTERNAL or UNKNOWN, and who is refused is told which field it was.

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>

#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {
namespace {

namespace pb = google::protobuf;
using Messages = std::vector<std::unique_ptr<pb::Message>>;

/// One place of a message tree: where it is, and what it is called in sentences.
struct Place {
  pb::Message* message;
  const pb::FieldDescriptor* field;
};

void collect(pb::Message& message, std::vector<Place>& places) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    if (field->real_containing_oneof() != nullptr && !reflection.HasField(message, field)) continue;
    places.push_back({&message, field});
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE || field->is_map()) continue;
    if (field->is_repeated()) {
      for (int k = 0; k < reflection.FieldSize(message, field); ++k)
        collect(*reflection.MutableRepeatedMessage(&message, field, k), places);
    } else if (reflection.HasField(message, field)) {
      collect(*reflection.MutableMessage(&message, field), places);
    }
  }
}

class Hostile {
 public:
  explicit Hostile(std::uint64_t seed) : random_(seed) {}
  std::uint64_t next() { return random_(); }

  /// Makes one field of the request hostile; returns its name.
  std::string spoil(pb::Message& request) {
    std::vector<Place> places;
    collect(request, places);
    if (places.empty()) return "";
    const Place place = places[random_() % places.size()];
    const pb::Reflection& reflection = *place.message->GetReflection();
    if (place.field->is_repeated())
      spoil_list(*place.message, *place.field, reflection);
    else
      spoil_one(*place.message, *place.field, reflection);
    return place.field->name();
  }

 private:
  std::string text() {
    switch (random_() % 9) {
      case 0:
        return "";
      case 1:
        return "bell\x07";
      case 2:
        return std::string(300 + random_() % 5'000, 'x');
      case 3:
        return "../../etc/passwd";
      case 4:
        return std::string("nul\0", 4);
      case 5:
        return "j_00000000000000000000000000";
      case 6:
        return "w_zzzz";
      case 7:
        return "two\nlines";
      default:
        return "κ " + std::to_string(random_());
    }
  }
  std::int64_t integer() {
    static constexpr std::int64_t kOnes[]{-1,
                                          0,
                                          1,
                                          17,
                                          99'999,
                                          std::numeric_limits<std::int32_t>::min(),
                                          std::numeric_limits<std::int64_t>::max(),
                                          std::numeric_limits<std::int64_t>::min()};
    return kOnes[random_() % std::size(kOnes)];
  }
  double real() {
    static constexpr double kOnes[]{-1.0, std::numeric_limits<double>::quiet_NaN(),
                                    std::numeric_limits<double>::infinity(), 1e300};
    return kOnes[random_() % std::size(kOnes)];
  }

  void spoil_one(pb::Message& message, const pb::FieldDescriptor& field,
                 const pb::Reflection& reflection) {
    using Field = pb::FieldDescriptor;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_STRING:
        reflection.SetString(&message, &field,
                             field.type() == Field::TYPE_BYTES
                                 ? std::string(random_() % (2U << 20), '\xff')
                                 : text());
        break;
      case Field::CPPTYPE_INT32:
        reflection.SetInt32(&message, &field, static_cast<std::int32_t>(integer()));
        break;
      case Field::CPPTYPE_INT64:
        reflection.SetInt64(&message, &field, integer());
        break;
      case Field::CPPTYPE_UINT32:
        reflection.SetUInt32(&message, &field, static_cast<std::uint32_t>(integer()));
        break;
      case Field::CPPTYPE_UINT64:
        reflection.SetUInt64(&message, &field, static_cast<std::uint64_t>(integer()));
        break;
      case Field::CPPTYPE_DOUBLE:
        reflection.SetDouble(&message, &field, real());
        break;
      case Field::CPPTYPE_FLOAT:
        reflection.SetFloat(&message, &field, static_cast<float>(real()));
        break;
      case Field::CPPTYPE_BOOL:
        reflection.SetBool(&message, &field, random_() % 2 == 0);
        break;
      case Field::CPPTYPE_ENUM:
        reflection.SetEnumValue(&message, &field, static_cast<int>(random_() % 3) * 99);
        break;
      case Field::CPPTYPE_MESSAGE:
        if (random_() % 3 != 0 && field.message_type()->file()->package() == "google.protobuf")
          spoil(*reflection.MutableMessage(&message, &field));
        else
          reflection.ClearField(&message, &field);
        break;
    }
  }

  void spoil_list(pb::Message& message, const pb::FieldDescriptor& field,
                  const pb::Reflection& reflection) {
    if (random_() % 4 == 0) return reflection.ClearField(&message, &field);
    const int copies = random_() % 3 == 0 ? 1'500 : 1;
    for (int i = 0; i < copies; ++i) {
      if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
        reflection.AddString(&message, &field, text());
      } else if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) {
        reflection.AddEnumValue(&message, &field, 99);
      } else if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
        pb::Message* added = reflection.AddMessage(&message, &field);
        if (field.is_map()) {
          added->GetReflection()->SetString(added, field.message_type()->map_key(),
                                            text() + std::to_string(i));
          if (const auto* value = field.message_type()->map_value();
              value->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING)
            added->GetReflection()->SetString(added, value, text());
        }
      }
    }
  }

  std::mt19937_64 random_;
};

/// True if `path` ("jobs[3].spec.resources.gpus", "labels[…]", "header.digest") leads to a field or
/// a oneof of the message type.
bool leads_somewhere(const pb::Descriptor* type, std::string path) {
  while (!path.empty()) {
    std::size_t end = path.find_first_of(".[");
    const std::string name = path.substr(0, end);
    if (type == nullptr) return true;  // Below a map or a text: the rest is a key.
    if (name != "spec") {  // Job specs are said with ".spec", which is no field of theirs.
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

class Fuzz : public Calls {
 protected:
  struct Answer {
    grpc::Status status;
    bool cut = false;  ///< it was still going on when we left it: an accepted stream or poll
  };

  /// Any call by its name, as messages on the wire.
  Answer call(const pb::MethodDescriptor& method, const Messages& requests) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    const bool endless = method.name() == "WatchJobs" || method.name() == "ReadLogs" ||
                         method.name() == "AcquireLeases";
    context.set_deadline(std::chrono::system_clock::now() +
                         (endless ? std::chrono::milliseconds(250) : kHang));
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

  template <class Request>
  static Messages one(const Request& request) {
    Messages messages;
    messages.push_back(std::make_unique<Request>(request));
    return messages;
  }

  void prepare() {
    file_ = write_file("blob", 5'000);
    const auto digest = wire::digest_file(file_);
    digest_ = digest.digest;
    size_ = digest.size_bytes;
    ASSERT_TRUE(wire::upload_file(channel_, file_, digest_, size_).ok());
    worker_ = "w_" + std::string(26, '1');
    enlist();
  }

  /// As a daemon that was started anew: whatever a spoilt registration changed is as it should be.
  void enlist() {
    incarnation_ = wire::make_uuid();
    const v1::RegisterRequest request = registration();
    grpc::ClientContext context;
    limit(context);
    v1::RegisterResponse response;
    ASSERT_TRUE(workers_->Register(&context, request, &response).ok());
  }

  v1::RegisterRequest registration() const {
    v1::RegisterRequest request;
    request.set_worker_id(worker_);
    request.set_incarnation(incarnation_);
    request.set_name("node7");
    request.set_version("0.1.0");
    request.add_kinds("test");
    v1::Device& device = *request.add_devices();
    device.set_id("cpu");
    device.set_backend(v1::DEVICE_BACKEND_CPU);
    device.set_model("a processor");
    device.set_memory_bytes(1U << 30);
    device.set_slots(200);
    device.mutable_telemetry()->set_power_watts(20.0);
    return request;
  }

  /// A fresh lease: what was spoilt before may have ended the last one.
  v1::AttemptRef lease() {
    enlist();
    submit();
    v1::AcquireLeasesRequest request = acquisition();
    grpc::ClientContext context;
    limit(context);
    v1::AcquireLeasesResponse response;
    const grpc::Status status = workers_->AcquireLeases(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (response.grants().empty()) {
      ADD_FAILURE() << "no lease";
      return {};
    }
    job_ = response.grants(0).job_id();
    return response.grants(0).attempt();
  }

  v1::AcquireLeasesRequest acquisition() const {
    v1::AcquireLeasesRequest request;
    request.set_worker_id(worker_);
    request.set_incarnation(incarnation_);
    request.set_acquire_id(wire::make_uuid());
    request.add_slots()->set_device_id("cpu");
    return request;
  }

  v1::JobSpec full_spec() {
    v1::JobSpec spec = valid_spec();
    spec.mutable_inputs(0)->set_digest(digest_);
    spec.mutable_inputs(0)->set_size_bytes(size_);
    spec.mutable_resources()->set_gpus(0);
    spec.mutable_resources()->set_cpus(2);
    spec.mutable_max_runtime()->set_seconds(60);
    spec.mutable_retry()->set_max_attempts(2);
    spec.mutable_checkpoint()->set_keep(2);
    spec.mutable_not_before()->set_seconds(1'700'000'000);
    spec.set_priority(3);
    return spec;
  }

  /// A valid request of each call.
  std::map<std::string, std::function<Messages()>> templates() {
    std::map<std::string, std::function<Messages()>> all;
    all["GetCapabilities"] = [] { return one(v1::GetCapabilitiesRequest()); };
    all["ListPools"] = [] { return one(v1::ListPoolsRequest()); };
    all["SubmitJobs"] = [this] {
      v1::SubmitJobsRequest request;
      request.set_request_id(wire::make_uuid());
      *request.add_jobs() = full_spec();
      request.add_jobs()->mutable_test()->mutable_progress()->set_steps(3);
      return one(request);
    };
    all["ValidateJobs"] = [this] {
      v1::ValidateJobsRequest request;
      *request.add_jobs() = full_spec();
      return one(request);
    };
    all["GetJob"] = [this] {
      v1::GetJobRequest request;
      request.set_job_id(job_);
      return one(request);
    };
    const auto filter = [this](v1::JobFilter& wanted) {
      wanted.add_job_ids(job_);
      wanted.add_kinds("test");
      wanted.set_name_prefix("si");
      (*wanted.mutable_labels())["project"] = "kappa";
      wanted.mutable_created_after()->set_seconds(1'700'000'000);
    };
    all["ListJobs"] = [filter] {
      v1::ListJobsRequest request;
      filter(*request.mutable_filter());
      request.mutable_filter()->add_states(v1::JOB_STATE_QUEUED);
      request.set_page_size(10);
      return one(request);
    };
    all["CancelJobs"] = [this] {
      v1::CancelJobsRequest request;
      request.set_request_id(wire::make_uuid());
      request.add_job_ids(job_);
      request.set_reason("enough");
      return one(request);
    };
    all["WatchJobs"] = [filter] {
      v1::WatchJobsRequest request;
      filter(*request.mutable_filter());
      request.set_snapshot(true);
      return one(request);
    };
    all["ReadLogs"] = [this] {
      v1::ReadLogsRequest request;
      request.set_job_id(job_);
      request.set_attempt(1);
      return one(request);
    };
    all["ListArtifacts"] = [this] {
      v1::ListArtifactsRequest request;
      request.set_job_id(job_);
      request.set_page_size(5);
      return one(request);
    };
    all["FindMissingBlobs"] = [this] {
      v1::FindMissingBlobsRequest request;
      request.add_digests(digest_);
      return one(request);
    };
    all["QueryUpload"] = [] {
      v1::QueryUploadRequest request;
      request.set_upload_id(wire::make_uuid());
      return one(request);
    };
    all["ReadBlob"] = [this] {
      v1::ReadBlobRequest request;
      request.set_digest(digest_);
      request.set_offset(10);
      request.set_limit(100);
      return one(request);
    };
    all["WriteBlob"] = [this] {
      const std::string bytes = "new bytes " + std::to_string(++uploads_);
      Messages messages;
      v1::WriteBlobRequest request;
      request.mutable_header()->set_digest(wire::sha256_hex(bytes));
      request.mutable_header()->set_size_bytes(bytes.size());
      request.mutable_header()->set_upload_id(wire::make_uuid());
      messages.push_back(std::make_unique<v1::WriteBlobRequest>(request));
      for (std::size_t at = 0; at < bytes.size(); at += 6) {
        request.mutable_data()->set_offset(at);
        request.mutable_data()->set_data(bytes.substr(at, 6));
        messages.push_back(std::make_unique<v1::WriteBlobRequest>(request));
      }
      return messages;
    };
    all["Register"] = [this] { return one(registration()); };
    all["AcquireLeases"] = [this] { return one(acquisition()); };
    all["Heartbeat"] = [this] {
      const v1::AttemptRef attempt = lease();
      v1::HeartbeatRequest request;
      request.set_worker_id(worker_);
      request.set_incarnation(incarnation_);
      auto& status = *request.add_attempts();
      status.set_attempt_id(attempt.attempt_id());
      status.set_fence(attempt.fence());
      status.mutable_progress()->set_phase("rates");
      status.mutable_progress()->set_done(1);
      (*status.mutable_progress()->mutable_metrics())["residual"] = 0.5;
      *request.add_devices() = registration().devices(0);
      return one(request);
    };
    all["StartAttempt"] = [this] {
      v1::StartAttemptRequest request;
      *request.mutable_attempt() = lease();
      return one(request);
    };
    all["AppendLog"] = [this] {
      v1::AppendLogRequest request;
      *request.mutable_attempt() = lease();
      request.set_data("a line\n");
      return one(request);
    };
    all["RecordCheckpoint"] = [this] {
      v1::RecordCheckpointRequest request;
      *request.mutable_attempt() = lease();
      request.set_sequence(1);
      request.set_step(5);
      request.set_digest(digest_);
      request.set_size_bytes(size_);
      return one(request);
    };
    all["CompleteAttempt"] = [this] {
      v1::CompleteAttemptRequest request;
      *request.mutable_attempt() = lease();
      if (uploads_++ % 2 == 0) {
        auto& artifact = *request.mutable_succeeded()->add_artifacts();
        artifact.set_name("result.h5");
        artifact.set_digest(digest_);
        artifact.set_size_bytes(size_);
        request.mutable_succeeded()->set_summary_json("{}");
      } else {
        request.mutable_failed()->set_reason(v1::FAILURE_REASON_NUMERICAL);
        request.mutable_failed()->set_message("no convergence");
      }
      request.mutable_usage()->set_wall_seconds(2.0);
      return one(request);
    };
    all["ReleaseLease"] = [this] {
      v1::ReleaseLeaseRequest request;
      *request.mutable_attempt() = lease();
      request.set_reason(v1::RELEASE_REASON_DRAIN);
      request.set_message("stopping");
      return one(request);
    };
    return all;
  }

  std::string file_, digest_, worker_, incarnation_, job_;
  std::uint64_t size_ = 0;
  int uploads_ = 0;
};

/// Every call of the three services, from their descriptors: a new one without a template fails
/// here.
std::vector<const pb::MethodDescriptor*> all_methods() {
  std::vector<const pb::MethodDescriptor*> methods;
  for (const char* name : {"JobService", "BlobService", "WorkerService"}) {
    const pb::ServiceDescriptor* service =
        pb::DescriptorPool::generated_pool()->FindServiceByName(std::string("quasi.v1.") + name);
    for (int i = 0; service != nullptr && i < service->method_count(); ++i)
      methods.push_back(service->method(i));
  }
  return methods;
}

TEST_F(Fuzz, EveryCallRefusesWhatIsWrongByField) {
  const char* given = std::getenv("QUASI_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20'261;
  std::cout << "QUASI_SEED=" << seed << '\n';
  Hostile hostile(seed);
  prepare();
  job_ = submit();
  const auto templates = this->templates();
  const auto methods = all_methods();
  ASSERT_EQ(methods.size(), templates.size());
  std::map<std::string, int> codes;
  int sent = 0;
  int refused = 0;
  constexpr int kEach = 60;
  for (const pb::MethodDescriptor* method : methods) {
    ASSERT_TRUE(templates.contains(method->name())) << method->full_name() << " has no template";
    const auto& make = templates.at(method->name());
    // The template itself is taken: what is refused below is refused for what was spoilt.
    const Answer sound = call(*method, make());
    EXPECT_TRUE(sound.status.ok() || sound.cut || method->name() == "QueryUpload" ||
                method->name() == "ReadLogs")
        << method->name() << ": " << sound.status.error_message();
    if (method->input_type()->field_count() == 0) continue;
    for (int i = 0; i < kEach; ++i) {
      Messages requests = make();
      pb::Message& victim = *requests[hostile.next() % requests.size()];
      const std::string field = hostile.spoil(victim);
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
      const wire::ErrorDetails details = wire::parse_details(status);
      EXPECT_NE(reason, "");
      if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT) {
        bool led = false;
        for (const auto& violation : details.fields) {
          EXPECT_TRUE(leads_somewhere(method->input_type(), violation.field)) << violation.field;
          led = true;
        }
        // Refusals that need the store name the field at the beginning of their sentence.
        const std::string first =
            status.error_message().substr(0, status.error_message().find(':'));
        EXPECT_TRUE(led || leads_somewhere(method->input_type(), first)) << first;
      } else {
        // The object that is missing, fenced or in the wrong state is named by what the request
        // called it.
        EXPECT_GT(status.error_message().size(), 10U);
      }
    }
  }
  submit();  // Still well.
  std::cout << sent << " spoilt requests to " << methods.size() << " calls, " << refused
            << " refused\n";
  for (const auto& [code, count] : codes) std::cout << "  " << code << " " << count << '\n';
  EXPECT_GE(sent, 1'000);
  EXPECT_GE(refused, sent / 3);
}

// Bytes that are no message at all.
TEST_F(Fuzz, BytesThatAreNoMessageAreRefusedInOrder) {
  prepare();
  std::mt19937_64 random(77);
  grpc::GenericStub stub(channel_);
  std::map<std::string, int> codes;
  for (const pb::MethodDescriptor* method : all_methods()) {
    for (int i = 0; i < 10; ++i) {
      std::string bytes(1 + random() % 64, '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      bytes.insert(0, "\x0a\x7f");  // A field of 127 bytes that are not there.
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
