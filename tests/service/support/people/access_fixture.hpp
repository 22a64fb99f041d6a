#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>
#include <vector>

#include "quasi/v1/access_service.grpc.pb.h"
#include "quasi/v1/admin_service.grpc.pb.h"
#include "tests/service/support/calls_fixture.hpp"

namespace quasi::server {

namespace pb = google::protobuf;

/// Every method of the services of the project, from their descriptors.
inline std::vector<const pb::MethodDescriptor*> all_methods() {
  std::vector<const pb::MethodDescriptor*> methods;
  for (const pb::FileDescriptor* file :
       {v1::SubmitJobsRequest::descriptor()->file(), v1::ReadBlobRequest::descriptor()->file(),
        v1::RegisterRequest::descriptor()->file(), v1::Principal::descriptor()->file(),
        v1::RedeemCodeRequest::descriptor()->file()})
    for (int i = 0; i < file->service_count(); ++i)
      for (int k = 0; k < file->service(i)->method_count(); ++k)
        methods.push_back(file->service(i)->method(k));
  return methods;
}

inline const pb::MethodDescriptor& method_of(const std::string& service, const std::string& name) {
  return *pb::DescriptorPool::generated_pool()->FindMethodByName("quasi.v1." + service + "." +
                                                                 name);
}

/// A server that asks every call for a token, on a Unix socket and on TCP.
class Access : public Calls {
 protected:
  Access() {
    server_.reset();
    options_.api.require_tokens = true;
    options_.api.failed_logins_per_minute = 1'000'000;  // tests of refusals make many
    options_.api.submits_per_second = options_.api.calls_per_second = 1'000'000;
    options_.listen = {"unix:" + root_ + "/s", "127.0.0.1:0"};
    start();
  }
  std::string tcp() const { return server_->addresses().at(1); }

  /// Makes one call with this token, or with none, and an empty request.
  grpc::Status call(const pb::MethodDescriptor& method, const std::string& token) {
    if (!tcp_channel_ || tcp_address_ != tcp()) {
      tcp_address_ = tcp();
      tcp_channel_ = wire::open_channel(tcp_address_);
    }
    grpc::GenericStub stub(tcp_channel_);
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    // An admitted watch has no end of its own.
    const bool is_endless = method.name() == "WatchJobs";
    context.set_deadline(std::chrono::system_clock::now() +
                         (is_endless ? std::chrono::seconds(2) : kHang));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    const auto stream = stub.PrepareCall(
        &context, "/" + method.service()->full_name() + "/" + method.name(), &queue);
    void* tag = nullptr;
    bool ok = false;
    const auto done = [&] { return queue.Next(&tag, &ok) && ok; };
    stream->StartCall(nullptr);
    if (done()) {
      const grpc::Slice empty("");
      stream->Write(grpc::ByteBuffer(&empty, 1), nullptr);
      if (done()) {
        stream->WritesDone(nullptr);
        done();
      }
    }
    // The status comes after the last message.
    grpc::ByteBuffer response;
    do {
      stream->Read(&response, nullptr);
    } while (done());
    grpc::Status status;
    stream->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    return status;
  }
  grpc::Status capabilities(const std::string& token) {
    return call(method_of("JobService", "GetCapabilities"), token);
  }

  /// Saves a principal through the server's admin on the Unix socket.
  grpc::Status save(const std::string& name, v1::Role role, const std::string& tenant = "phonons",
                    const std::string& pool = "") {
    grpc::ClientContext context;
    v1::SavePrincipalRequest request;
    request.mutable_principal()->set_name(name);
    request.mutable_principal()->set_role(role);
    request.mutable_principal()->set_tenant(tenant);
    request.mutable_principal()->set_pool(pool);
    v1::SavePrincipalResponse response;
    return v1::AdminService::NewStub(channel_)->SavePrincipal(&context, request, &response);
  }
  /// Makes a token through the same admin. @param scopes  none: every scope
  grpc::Status make_token_for(const std::string& name, const std::vector<v1::TokenScope>& scopes,
                              std::int64_t lifetime_s, v1::CreateTokenResponse* response) {
    grpc::ClientContext context;
    v1::CreateTokenRequest request;
    request.set_principal(name);
    request.mutable_lifetime()->set_seconds(lifetime_s);
    for (const v1::TokenScope scope : scopes) request.add_scopes(scope);
    return v1::AdminService::NewStub(channel_)->CreateToken(&context, request, response);
  }
  /// Creates a principal of this role with a token.
  std::string token_of(const std::string& name, v1::Role role, std::int64_t lifetime_s = 3'600,
                       const std::string& tenant = "phonons",
                       const std::vector<v1::TokenScope>& scopes = {}) {
    const grpc::Status saved = save(name, role, tenant);
    EXPECT_TRUE(saved.ok()) << saved.error_message();
    v1::CreateTokenResponse response;
    const grpc::Status status = make_token_for(name, scopes, lifetime_s, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.token();
  }
  void revoke(const std::string& token) {
    grpc::ClientContext context;
    v1::RevokeTokenRequest request;
    request.set_key_id(token.substr(4, 12));
    v1::RevokeTokenResponse response;
    EXPECT_TRUE(
        v1::AdminService::NewStub(channel_)->RevokeToken(&context, request, &response).ok());
  }

  std::string tcp_address_;
  std::shared_ptr<grpc::Channel> tcp_channel_;
};

}  // namespace quasi::server
