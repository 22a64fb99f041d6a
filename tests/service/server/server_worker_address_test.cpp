// Tests that the addresses of `worker_listen` ask for the tokens of workers, and serve them alone.

#include "tests/service/support/people/access_fixture.hpp"

namespace quasi::server {
namespace {

using grpc::StatusCode;

/// Runs a server with addresses for workers, on TCP and on a Unix socket.
class WorkerAddress : public Access {
 protected:
  WorkerAddress() {
    server_.reset();
    options_.worker_listen = {"127.0.0.1:0", "unix:" + root_ + "/w"};
    start();
    channel_of_workers_ = wire::open_channel(server_->worker_addresses().at(0));
  }

  /// Makes a call without streams and with an empty request.
  static grpc::Status call_at(const std::shared_ptr<grpc::Channel>& channel,
                              const pb::MethodDescriptor& method, const std::string& token) {
    grpc::GenericStub stub(channel);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    limit(context);
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    const grpc::Slice empty("");
    const auto call =
        stub.PrepareUnaryCall(&context, "/" + method.service()->full_name() + "/" + method.name(),
                              grpc::ByteBuffer(&empty, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  std::shared_ptr<grpc::Channel> channel_of_workers_;
};

TEST_F(WorkerAddress, EveryCallOfAWorkerNeedsTheTokenOfAWorker) {
  const std::string worker = token_of("willi", v1::ROLE_WORKER);
  const std::string user = token_of("ursula", v1::ROLE_USER);
  int calls = 0;
  for (const pb::MethodDescriptor* method : all_methods()) {
    if (method->service()->name() != "WorkerService") continue;
    SCOPED_TRACE(method->name());
    const auto reason = [&](const std::string& token) {
      return wire::reason_of(call_at(channel_of_workers_, *method, token));
    };
    EXPECT_EQ(reason(""), "TOKEN_MISSING");
    EXPECT_EQ(reason("qsi_AAAAAAAAAAAA_" + std::string(43, 'A')), "TOKEN_INVALID");
    EXPECT_EQ(reason(user), "ROLE_REQUIRED");
    // An empty request is wrong, and the server says so to a worker alone.
    EXPECT_EQ(call_at(channel_of_workers_, *method, worker).error_code(),
              StatusCode::INVALID_ARGUMENT);
    ++calls;
  }
  EXPECT_EQ(calls, 8);
  const pb::MethodDescriptor& find = method_of("BlobService", "FindMissingBlobs");
  EXPECT_EQ(wire::reason_of(call_at(channel_of_workers_, find, "")), "TOKEN_MISSING");
  EXPECT_TRUE(call_at(channel_of_workers_, find, worker).ok());
}

TEST_F(WorkerAddress, NoTokenOpensTheCallsOfTheOtherAddress) {
  const std::string admin = token_of("ada", v1::ROLE_ADMIN);
  const auto channel_of_clients = wire::open_channel(tcp());
  const pb::MethodDescriptor& capabilities = method_of("JobService", "GetCapabilities");
  const pb::MethodDescriptor& registration = method_of("WorkerService", "Register");
  EXPECT_TRUE(call_at(channel_of_clients, capabilities, admin).ok());
  const grpc::Status job = call_at(channel_of_workers_, capabilities, admin);
  EXPECT_EQ(job.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_NE(job.error_message().find("`listen`"), std::string::npos) << job.error_message();
  const grpc::Status work = call_at(channel_of_clients, registration, admin);
  EXPECT_EQ(work.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_NE(work.error_message().find("`worker_listen`"), std::string::npos);
  EXPECT_EQ(
      call_at(channel_of_workers_, method_of("AdminService", "CreateToken"), admin).error_code(),
      StatusCode::UNIMPLEMENTED);
}

// The kernel names the users of the Unix socket of workers, too. The server's own user may work.
TEST_F(WorkerAddress, TheUserOfItsSocketIsKnownByTheKernel) {
  const pb::MethodDescriptor& registration = method_of("WorkerService", "Register");
  const auto channel = wire::open_channel("unix:" + root_ + "/w");
  EXPECT_EQ(call_at(channel, registration, "").error_code(), StatusCode::INVALID_ARGUMENT);
  const auto unknown =
      grpc::CreateChannel("unix:" + root_ + "/w", grpc::InsecureChannelCredentials());
  EXPECT_EQ(wire::reason_of(call_at(unknown, registration, "")), "TOKEN_MISSING");
}

}  // namespace
}  // namespace quasi::server
