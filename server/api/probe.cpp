#include "server/api/probe.hpp"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <vector>

#include "proto/wire/channel.hpp"

namespace quasi::server {

std::string probe(const std::string& address, const std::string& ca_file) {
  grpc::GenericStub stub(wire::open_channel(address, "", ca_file));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  const grpc::Slice nothing(
      std::string{});  // an empty HealthCheckRequest asks for the whole server
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return "no answer from " + address + ": " + status.error_message();
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (response.Dump(&slices).ok())
    for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  // These two bytes are HealthCheckResponse{status = 1: SERVING}.
  return bytes == std::string{'\x08', '\x01'} ? "SERVING" : "NOT_SERVING";
}

}  // namespace quasi::server
